/* SPDX-License-Identifier: Apache-2.0 */
/* worker/trainer.h - the arithmetic behind a worker's logic: data, plans, steps, evaluation.
 *
 * It fills a wf_worker_ops with functions that do their work at once: a step is computed within the
 * call, and each gradient is pushed as soon as its last kernel is done. Belongs to one thread.
 */
#ifndef WF_WORKER_TRAINER_H
#define WF_WORKER_TRAINER_H

#include "common/base/status.h"
#include "worker/worker.h"
#include <stdbool.h>
#include <stdint.h>

typedef struct wf_trainer wf_trainer;

typedef struct wf_trainer_conf {
    uint32_t threads;     /* of the executor */
    bool checksums;       /* of payloads: off when all peers are on this host */
    const char *loss_log; /* a file for each step's loss, bit for bit, or NULL: for tests */
    wf_status (*dial)(void *arg, wf_task task, const char *address, wf_transport **out,
                      wf_err *err);
    void *dial_arg;
    /* Sends queued messages, between two kernels. */
    void (*flush)(void *arg);
    void *flush_arg;
} wf_trainer_conf;

/* The caller owns *out. Errors: WF_NOMEM, WF_IO. */
WF_MUST_USE wf_status wf_trainer_new(const wf_trainer_conf *conf, wf_trainer **out, wf_err *err);
void wf_trainer_free(wf_trainer **t);
/* The operations for wf_worker_conf. */
wf_worker_ops wf_trainer_ops(wf_trainer *t);
/* The worker that the operations serve; set once it is made. */
void wf_trainer_set_worker(wf_trainer *t, wf_worker *w);

#endif
