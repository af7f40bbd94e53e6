/* SPDX-License-Identifier: Apache-2.0 */
/* worker/gradients.h - a step's gradients between the plan and the push: the mean over several
 * batches and over the replicas that share each of them, then clipping.
 *
 * This is not in the graph: clipping comes after the mean, as in Keras, and with
 * `gradient_accumulation_steps` a step is several runs of one plan. A gradient that needs neither
 * is written straight into the buffer that carries it.
 *
 * Replicas are added up in their order, batch after batch: the mean over two replicas has the bits
 * of that over two batches, each with the records of one replica.
 *
 * Sums are taken over blocks of one size, each in f64 in fixed lanes, and added in order: the
 * result does not depend on the number of threads.
 *
 * Threading: belongs to the thread of its trainer.
 */
#ifndef WF_WORKER_GRADIENTS_H
#define WF_WORKER_GRADIENTS_H

#include "common/base/status.h"
#include "common/kernels/pool.h"
#include "common/optim/rule.h"
#include "common/tensor/device.h"
#include <stdbool.h>
#include <stdint.h>

typedef struct wf_gradients wf_gradients;

typedef struct wf_gradients_variable {
    int64_t count; /* elements, f32 */
    bool clipped;  /* trainable; a statistic is not */
    bool apart; /* its gradients are memory of the replicas' devices: nothing is done to them here
                 * but to make room and to let them leave. Sums and clipping are made there */
} wf_gradients_variable;

typedef struct wf_gradients_conf {
    const wf_opt *opt;
    const wf_gradients_variable *variables; /* [n], copied */
    uint32_t n;
    const wf_device *const *devices; /* [n_replicas], copied: of what is apart; NULL: nothing is */
    uint32_t n_replicas;             /* 0: as 1 */
    bool checked;                    /* no gradient leaves before wf_gradients_end, so that
                                      * wf_gradients_finite can be asked first */
    wf_pool *pool;                   /* borrowed */
} wf_gradients_conf;

/* Batches to a step, from an optimizer's options: at least 1. */
uint64_t wf_gradients_batches(const wf_opt *opt);

/* The caller owns *out. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_gradients_new(const wf_gradients_conf *conf, wf_gradients **out,
                                       wf_err *err);
void wf_gradients_free(wf_gradients **g);

/* A batch begins, of a step that has `of` records in all. Replica i has records[i] of the batch,
 * and its gradients weigh records[i] / of. */
void wf_gradients_begin(wf_gradients *g, const uint64_t records[], uint64_t of, bool first,
                        bool last);
/* Where the plan of a replica is to write this batch's gradient of a variable; `push` is the buffer
 * of the step, the same at each batch, and of what is not apart the same for all replicas. NULL
 * when there is no memory. */
float *wf_gradients_into(wf_gradients *g, uint32_t replica, uint32_t variable, float *push);
/* The gradient of a variable is written by every replica that has records. True when `push` now
 * holds the step's gradient (of what is apart: each replica's part of it, weighed), which may
 * leave; otherwise a later batch or wf_gradients_end completes it. */
bool wf_gradients_take(wf_gradients *g, uint32_t variable);
/* What of a replica's batch the step's mean has, and which batch of the step it is. */
float wf_gradients_weight(const wf_gradients *g, uint32_t replica);
bool wf_gradients_is_first(const wf_gradients *g);
bool wf_gradients_is_last(const wf_gradients *g);
/* The buffer of the step for a variable: `push` of wf_gradients_into. */
float *wf_gradients_of_step(const wf_gradients *g, uint32_t replica, uint32_t variable);
/* Whether all gradients that have not left are finite, but for those on a device. */
bool wf_gradients_finite(const wf_gradients *g);
/* With global_clipnorm, of each gradient that has not left: its sum of squares into out[n], in the
 * order of variables; 0 of those that are not clipped, have left, or are on a device. */
void wf_gradients_squares(const wf_gradients *g, double out[]);
/* Whether the gradient of a variable is whole and has not left. */
bool wf_gradients_waits(const wf_gradients *g, uint32_t variable);
/* The step's last batch is done. Calls `leave` for each variable that did not leave before. */
WF_MUST_USE wf_status wf_gradients_end(wf_gradients *g,
                                       wf_status (*leave)(void *arg, uint32_t variable,
                                                          wf_err *err),
                                       void *arg, wf_err *err);
/* The same where these gradients are some of a step's, whose norm together is known. */
WF_MUST_USE wf_status wf_gradients_end_by(wf_gradients *g, double norm,
                                          wf_status (*leave)(void *arg, uint32_t variable,
                                                             wf_err *err),
                                          void *arg, wf_err *err);

#endif
