/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/shm_note.h - what the two ends of a connection through shared memory tell each other
 * over their socket: descriptors, and that there is something in the ring. */
#ifndef WF_WIRE_SHM_NOTE_H
#define WF_WIRE_SHM_NOTE_H

#include <stdbool.h>
#include <stdint.h>

enum { WF_SHM_VERSION = 1 };

typedef enum wf_shm_note_kind {
    WF_NOTE_ASK = 1, /* the dialler: here is the memory of the rings; `number` is the version */
    WF_NOTE_TAKEN,   /* the answer: it is mapped */
    WF_NOTE_BLOCK,   /* here is the memory of block `number`, of `bytes` */
    WF_NOTE_FORGET,  /* block `number` is not used any more */
    WF_NOTE_BELL     /* look at the rings */
} wf_shm_note_kind;

typedef struct wf_shm_note {
    uint32_t kind, number;
    uint64_t bytes;
} wf_shm_note;

/* Sends a note with a descriptor (-1: none), on any thread; never waits. False with errno when it
 * cannot go. */
bool wf_shm_note_send(int socket, const wf_shm_note *note, int fd);
/* The next note, and the descriptor that came with it, the caller's, or -1. 1: there is one; 0:
 * there is none now; -1: the other side is gone, or has sent what is no note. */
int wf_shm_note_take(int socket, wf_shm_note *note, int *fd);
/* Drops all notes that are there; true when the other side is gone. */
bool wf_shm_note_is_end(int socket);

#endif
