/* SPDX-License-Identifier: Apache-2.0 */
/* worker/sessions/rendezvous.h - values that Sends of runs have left at this worker, until Recvs of
 * other runs take them, as the rendezvous of Abadi et al., "TensorFlow: Large-Scale Machine
 * Learning on Heterogeneous Distributed Systems" (2015), section 3.2.2: they lie where they were
 * sent, and whoever receives asks for them.
 *
 * A value has a name: a container, a key and the worker that may take it. Those of one name are
 * taken in the order in which they were sent, each once. What is asked for before it is sent waits.
 *
 * Sends and Recvs have an id, since a run may be asked for again when a link was lost: a Send that
 * was made is not made again, and a Recv gets what it has been given, until a later run of its
 * session receives, its time is over, or the room is needed. A run that ends because its time is
 * over gives up what it was given a little later than that time, so that is kept for longer.
 *
 * No socket, no clock: the time goes in, and what waited is fetched with wf_rendezvous_next.
 *
 * Invariants
 *   V1  values that are held or given never exceed `bytes` and `values` of the limits
 *   V2  a value is given to one id at most, until that gives it up
 *   V3  nothing waits beyond its time, nor is given WF_RENDEZVOUS_GIVEN_S beyond it,
 *       nor held beyond WF_RENDEZVOUS_REST_S
 */
#ifndef WF_WORKER_SESSIONS_RENDEZVOUS_H
#define WF_WORKER_SESSIONS_RENDEZVOUS_H

#include "common/base/status.h"
#include "common/tensor/tensor.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    WF_RENDEZVOUS_KEY = 1000,     /* bytes of a key, without the zero */
    WF_RENDEZVOUS_NUMBERS = 64,   /* Sends and Recvs of one run: their numbers are below */
    WF_RENDEZVOUS_WAITS = 4096,   /* at one time */
    WF_RENDEZVOUS_CLIENTS = 4096, /* whose last run's Sends are known */
    WF_RENDEZVOUS_GIVEN_S = 30, /* for the word that a Recv gives up to come, on a slow link too */
    WF_RENDEZVOUS_REST_S = 60 * 60, /* what nobody has taken by then is dropped */
};

typedef struct wf_rendezvous wf_rendezvous;

typedef struct wf_rendezvous_limits {
    size_t bytes;
    uint32_t values;
} wf_rendezvous_limits;

/* Strings are borrowed for the call. */
typedef struct wf_rendezvous_name {
    const char *container, *key;
    uint32_t to; /* the worker that may take it */
} wf_rendezvous_name;

/* A Send or a Recv of a run. */
typedef struct wf_rendezvous_id {
    uint64_t client, run; /* the session, and the number of its run, which rises */
    uint32_t number;      /* within the run */
} wf_rendezvous_id;

/* What a Recv wants. */
typedef struct wf_rendezvous_want {
    wf_rendezvous_name name;
    wf_rendezvous_id id;
    wf_dtype dtype;
    uint32_t rank;
    const int64_t *dims; /* [rank]; of a scalar NULL is fine */
    void *user;          /* who is told when it has waited, and by which number */
    uint32_t request;
    int64_t until_ns;
} wf_rendezvous_want;

/* How a wait ended: with a value, which is the caller's, or with an error. */
typedef struct wf_rendezvous_end {
    void *user;
    uint32_t request;
    wf_rendezvous_id id;
    wf_tensor *value; /* NULL: why */
    wf_err why;
} wf_rendezvous_end;

/* The caller owns *out. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_rendezvous_new(const wf_rendezvous_limits *limits, wf_rendezvous **out,
                                        wf_err *err);
/* Frees *r and sets it to NULL; NULL is fine. */
void wf_rendezvous_free(wf_rendezvous **r);

/* A Send: shares the storage of `value`, which nobody may write afterwards. One that was made
 * changes nothing. Errors: WF_FULL with the limit, before anything is kept; WF_INVALID for a name
 * that cannot be; WF_NOMEM. */
WF_MUST_USE wf_status wf_rendezvous_put(wf_rendezvous *r, const wf_rendezvous_name *name,
                                        const wf_rendezvous_id *id, const wf_tensor *value,
                                        int64_t now_ns, wf_err *err);
/* A Recv: *out is the value, which the caller owns; NULL when it waits. Asked again with the same
 * id, it waits anew for the user of that call. Errors: WF_SHAPE, with both dtypes or shapes, when
 * the next value is another than is wanted: the value stays; WF_FULL when too many wait; WF_INVALID
 * for a name that cannot be; WF_NOMEM. */
WF_MUST_USE wf_status wf_rendezvous_take(wf_rendezvous *r, const wf_rendezvous_want *want,
                                         wf_tensor **out, wf_err *err);
/* That Recv has ended without its value: it does not wait, and what it was given is the next
 * one's, at the place that it had. */
void wf_rendezvous_give_up(wf_rendezvous *r, const wf_rendezvous_id *id);
/* A wait that has ended; false: none has. It is over then. */
bool wf_rendezvous_next(wf_rendezvous *r, wf_rendezvous_end *out);
/* That user's waits are given up. */
void wf_rendezvous_forget(wf_rendezvous *r, const void *user);

/* Ends what has no time left (V3): waits without a word, since who waits has the same time. */
void wf_rendezvous_advance(wf_rendezvous *r, int64_t now_ns);
/* When there is something to end; INT64_MAX: never. */
int64_t wf_rendezvous_deadline(const wf_rendezvous *r);

/* For tests: values that are held or given, and their bytes. */
uint32_t wf_rendezvous_count(const wf_rendezvous *r);
size_t wf_rendezvous_bytes(const wf_rendezvous *r);

#endif
