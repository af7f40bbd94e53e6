/* SPDX-License-Identifier: Apache-2.0 */
/* worker/gradients.h - a step's gradients between the plan and the push: the mean over several
 * batches, then clipping.
 *
 * This is not in the graph: clipping comes after the mean, as in Keras, and with
 * `gradient_accumulation_steps` a step is several runs of one plan. A gradient that needs neither
 * is written straight into the buffer that carries it.
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
    int64_t count;           /* elements, f32 */
    bool clipped;            /* trainable; a statistic is not */
    const wf_device *device; /* whose memory its gradients are; NULL: the host's. Of one that is not
                              * the host nothing is done here but to make room and to let it leave:
                              * sums and clipping by norms are made there, and the job asks for
                              * nothing else */
} wf_gradients_variable;

/* Batches to a step, from an optimizer's options: at least 1. */
uint64_t wf_gradients_batches(const wf_opt *opt);

/* The caller owns *out. With `checked` no gradient leaves before wf_gradients_end, so that
 * wf_gradients_finite can be asked first. `pool` is borrowed, `variables` [n] is copied. Errors:
 * WF_NOMEM. */
WF_MUST_USE wf_status wf_gradients_new(const wf_opt *opt, const wf_gradients_variable variables[],
                                       uint32_t n, bool checked, wf_pool *pool, wf_gradients **out,
                                       wf_err *err);
void wf_gradients_free(wf_gradients **g);

/* A batch of `records` begins, of a step that has `of` in all: its gradients weigh records / of. */
void wf_gradients_begin(wf_gradients *g, uint64_t records, uint64_t of, bool first, bool last);
/* Where the plan is to write this batch's gradient of a variable; `push` is the buffer of the step,
 * the same at each batch. NULL when there is no memory. */
float *wf_gradients_into(wf_gradients *g, uint32_t variable, float *push);
/* The gradient of a variable is written. True when `push` now holds the step's gradient, which may
 * leave; otherwise a later batch or wf_gradients_end completes it. */
bool wf_gradients_take(wf_gradients *g, uint32_t variable);
/* What of a batch the step's mean has, and which batch it is. */
float wf_gradients_weight(const wf_gradients *g);
bool wf_gradients_is_first(const wf_gradients *g);
bool wf_gradients_is_last(const wf_gradients *g);
/* The buffer of the step for a variable: `push` of wf_gradients_into. */
float *wf_gradients_of_step(const wf_gradients *g, uint32_t variable);
/* Whether all gradients that have not left are finite, but for those on a device. */
bool wf_gradients_finite(const wf_gradients *g);
/* The step's last batch is done. Calls `leave` for each variable that did not leave before. */
WF_MUST_USE wf_status wf_gradients_end(wf_gradients *g,
                                       wf_status (*leave)(void *arg, uint32_t variable,
                                                          wf_err *err),
                                       void *arg, wf_err *err);

#endif
