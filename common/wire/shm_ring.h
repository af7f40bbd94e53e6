/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/shm_ring.h - records from one writer to one reader through memory that both map.
 *
 * A record is contiguous and begins at a multiple of 64 bytes; its first word is its size. What
 * remains at the end of the ring, where the next record does not fit, is skipped by a record of its
 * own. Positions count all bytes ever written, so that full and empty differ.
 *
 * The other side may lie: each side keeps its own position in memory of its own, reads the other's
 * once, and checks it. A ring whose numbers cannot be right is broken, and gives no record any
 * more.
 *
 * A side that is to sleep says so first and looks again then; the other publishes first and looks
 * then whether it sleeps. All four are sequentially consistent, so one of the two sees the other.
 */
#ifndef WF_WIRE_SHM_RING_H
#define WF_WIRE_SHM_RING_H

#include "common/base/cc.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    WF_RING_ALIGN = 64,
    WF_RING_BYTES = 256 << 10,        /* stays in the second-level cache of a core */
    WF_RING_MOST = WF_RING_BYTES / 4, /* of a record */
    WF_RING_LOANS = 4096
};

/* In shared memory; all zero at the start. */
typedef struct wf_ring {
    WF_ALIGNED(64) _Atomic uint64_t head; /* the writer's */
    WF_ALIGNED(64) _Atomic uint64_t tail; /* the reader's */
    WF_ALIGNED(64) _Atomic uint32_t reader_sleeps;
    WF_ALIGNED(64) _Atomic uint32_t writer_waits; /* for room */
    /* 1: the reader uses memory that was lent to it under this number; it sets 0 when it is done */
    WF_ALIGNED(64) _Atomic uint32_t loans[WF_RING_LOANS];
    WF_ALIGNED(64) uint8_t bytes[WF_RING_BYTES];
} wf_ring;

typedef struct wf_ring_writer {
    wf_ring *ring;
    uint64_t head, tail; /* what is published; what the reader is known to have taken */
    uint64_t next;       /* where the reserved record begins */
    bool waits, broken;
} wf_ring_writer;

typedef struct wf_ring_reader {
    wf_ring *ring;
    uint64_t tail;
    uint32_t size; /* of the record that was peeked at */
    bool broken;
} wf_ring_reader;

/* Where a record of `size` bytes, a multiple of 64 and at most WF_RING_MOST, is to be written; NULL
 * when there is no room now: then the reader rings once it has made some. */
uint8_t *wf_ring_reserve(wf_ring_writer *w, uint32_t size);
/* Publishes the reserved record, whose first word this sets. True: the reader sleeps and is to be
 * woken. */
bool wf_ring_commit(wf_ring_writer *w, uint32_t size);
/* Whether room has come for a writer that found none. */
bool wf_ring_has_room(const wf_ring_writer *w);

bool wf_ring_ready(const wf_ring_reader *r);
/* The next record, of *size bytes, which the writer may still change; NULL when there is none. */
const uint8_t *wf_ring_peek(wf_ring_reader *r, uint32_t *size);
/* Gives the record's place back. True: the writer waits for room and is to be woken. */
bool wf_ring_next(wf_ring_reader *r);
/* Says that the reader will sleep. True: there is a record already. */
bool wf_ring_arm(const wf_ring_reader *r);
void wf_ring_disarm(const wf_ring_reader *r);

#endif
