/* SPDX-License-Identifier: Apache-2.0 */
/* master/store/outbox.h - what may leave the master once the journal is on disk up to some record:
 * messages and events, in the order in which they were made. */
#ifndef WF_MASTER_STORE_OUTBOX_H
#define WF_MASTER_STORE_OUTBOX_H

#include "common/base/status.h"
#include "common/conf/run.h"
#include "common/wire/net.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct wf_outbox_row {
    uint64_t after; /* records of the journal that must be on disk before */
    wf_peer *to;    /* of a message */
    wf_msg *msg;    /* NULL: an event of a job */
    char *json;     /* of an event, malloc's; NULL: the job's files are to go */
    char job[WF_RUN_NAME];
} wf_outbox_row;

typedef struct wf_outbox {
    wf_outbox_row *rows; /* a ring */
    size_t first, n, room;
} wf_outbox;

/* Queues a message and takes *msg, which stays the caller's on failure. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_outbox_add_message(wf_outbox *b, uint64_t after, wf_peer *to, wf_msg **msg,
                                            wf_err *err);
/* Queues an event and takes json, or with NULL that a job's files are to go; it is dropped where
 * there is no memory. */
void wf_outbox_add_note(wf_outbox *b, uint64_t after, const char *job, char *json);
/* The oldest row, if it may leave when `durable` records are on disk; its content is the caller's.
 */
bool wf_outbox_next(wf_outbox *b, uint64_t durable, wf_outbox_row *out);
/* Drops what waits for a peer that is gone. */
void wf_outbox_purge(wf_outbox *b, wf_net *net, const wf_peer *peer);
/* Frees all; it is empty then. */
void wf_outbox_close(wf_outbox *b);

#endif
