/* SPDX-License-Identifier: Apache-2.0 */
/* worker/trainer.h - the arithmetic behind a worker's logic: data, plans, steps, evaluation.
 *
 * Its wf_worker_ops only note what is to be done; wf_trainer_work does it, and gives each gradient
 * to the exchange as soon as its last kernel is done. Belongs to one thread.
 */
#ifndef WF_WORKER_TRAINER_H
#define WF_WORKER_TRAINER_H

#include "common/base/status.h"
#include "common/kernels/pool.h"
#include "worker/worker.h"
#include <stdbool.h>
#include <stdint.h>

typedef struct wf_trainer wf_trainer;

typedef struct wf_trainer_conf {
    uint32_t index;             /* of the worker */
    wf_pool *pool;              /* borrowed: the executor's threads */
    const char *const *devices; /* [n_devices] of the plans, as cluster.yaml names them */
    size_t n_devices;           /* at least 1 */
    bool checksums;             /* of payloads: off when all peers are on this host */
    const char
        *jobs_dir;    /* borrowed: a step that made NaN is kept in JOBS_DIR/RUN; NULL: nowhere */
    const char *host; /* borrowed: where that is, for messages; NULL: where everybody is */
    const char *loss_log; /* a file for each step's loss, bit for bit, or NULL: for tests */
    const struct wf_memory *memory; /* borrowed: data of that format; NULL: there is none */
    int64_t long_ns;                /* steps that take so long may be computed two at a time */
    wf_status (*dial)(void *arg, wf_task task, const char *address, wf_transport **out,
                      wf_err *err);
    void *dial_arg;
    /* Sends queued messages, between two kernels. */
    void (*flush)(void *arg);
    void *flush_arg;
} wf_trainer_conf;

/* The caller owns *out. Errors: WF_NOMEM, WF_IO; WF_NOTFOUND: no such device. */
WF_MUST_USE wf_status wf_trainer_new(const wf_trainer_conf *conf, wf_trainer **out, wf_err *err);
void wf_trainer_free(wf_trainer **t);
/* The operations for wf_worker_conf. */
wf_worker_ops wf_trainer_ops(wf_trainer *t);
/* Does what was begun, if something was, and tells the worker that it has ended; or has it done by
 * a thread of its own, and tells that later. Errors: those of the worker's events. */
WF_MUST_USE wf_status wf_trainer_work(wf_trainer *t, wf_worker *w, wf_err *err);
/* Reads the batch of the next step while the worker waits for others, unless it was read or there
 * are tables, whose rows are asked for by batch. False: there was nothing to read. */
bool wf_trainer_read_ahead(wf_trainer *t);
/* Whether wf_trainer_work has more to do at once. */
bool wf_trainer_is_busy(const wf_trainer *t);
/* Readable when a step on a thread of its own has ended: wf_trainer_work is due. -1: there are
 * none.
 */
int wf_trainer_fd(const wf_trainer *t);

#endif
