/* SPDX-License-Identifier: Apache-2.0 */
/* worker/replicas.h - the copies of its model that a worker computes with at once, each with a
 * share of a batch's records: under `strategy: mirrored` one for each of its devices, otherwise one
 * for all of them.
 *
 * Replicas on processors are driven by a thread each, and have threads of their own for kernels;
 * those on GPUs are driven by one thread, for their work is queued.
 *
 * Belongs to one thread.
 */
#ifndef WF_WORKER_REPLICAS_H
#define WF_WORKER_REPLICAS_H

#include "common/base/status.h"
#include "common/exec/exec.h"
#include "common/kernels/pool.h"
#include "worker/apart.h"
#include "worker/side.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WF_REPLICAS_MOST = 1 + WF_PLAN_DEVICES };

typedef struct wf_replica {
    wf_apart *apart;   /* of gradients on its device; NULL: there are none */
    wf_pool *pool;     /* of its own, for kernels; NULL: it has the worker's */
    wf_batch batch;    /* its share of the batch in hand; n is 0 if it has none */
    wf_tensor *fields; /* of that share, where there are several replicas */
    wf_plan *plan;     /* for it; NULL: there is no batch */
    wf_step_key key;
    int64_t bad_output; /* of its last run: a gradient that is no number; -1: none */
    wf_status rc;       /* of that run, */
    wf_err err;         /* and why */
} wf_replica;

/* {0} has none. */
typedef struct wf_replicas {
    uint32_t n;
    wf_side_replica on[WF_REPLICAS_MOST];        /* [n]: where plans run, for wf_side_spec */
    wf_replica of[WF_REPLICAS_MOST];             /* [n] */
    const wf_device *devices[WF_REPLICAS_MOST];  /* [n]: the first of each */
    const wf_device *distinct[WF_REPLICAS_MOST]; /* of a single one: all that it has */
    wf_pool *beside; /* a thread for each replica; NULL: the caller's drives them all */
} wf_replicas;

/* The records of a batch that replica `i` of `n` has: *begin and the count. Shares are contiguous,
 * in the order of the replicas, and differ by one record at most. */
uint64_t wf_replica_share(uint64_t records, uint32_t n, uint32_t i, uint64_t *begin);

/* Makes replicas for devices[n_devices], as a worker lists them: one for each, or with `mirrored`
 * false a single one for all. `pool` is borrowed; the replicas divide as many threads among
 * themselves, and each has one at least. Close them after an error as well. Errors: WF_UNSUPPORTED
 * for devices that do not mirror each other; WF_NOMEM; WF_IO. */
WF_MUST_USE wf_status wf_replicas_open(wf_replicas *r, const wf_device *const devices[],
                                       size_t n_devices, bool mirrored, wf_pool *pool, wf_err *err);
/* Ends threads and waits for work under way; {0} again. */
void wf_replicas_close(wf_replicas *r);

/* Divides a batch of the dataset among the replicas, which borrow it. Each has a key of its own for
 * random draws: that of the first is `key`. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_replicas_share(wf_replicas *r, const wf_batch *batch,
                                        const wf_dataset *data, const wf_step_key *key,
                                        wf_err *err);
/* Calls fn(arg, i) for each replica, at once where they have threads. */
void wf_replicas_each(const wf_replicas *r, void (*fn)(void *arg, uint32_t i), void *arg);

#endif
