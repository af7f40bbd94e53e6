/* SPDX-License-Identifier: Apache-2.0 */
/* worker/apart.h - gradients that stay on a device: there they are looked at for NaN and infinity,
 * and those of several batches are added up. All of a batch at once, behind its last gradient; the
 * host reads a word for each.
 *
 * Belongs to one thread at a time.
 */
#ifndef WF_WORKER_APART_H
#define WF_WORKER_APART_H

#include "common/base/status.h"
#include "common/kernels/update.h"
#include "common/tensor/device.h"
#include <stddef.h>
#include <stdint.h>

typedef struct wf_apart wf_apart;

/* For at most so many gradients of a batch; the caller owns *out. Errors: WF_NOMEM; what the device
 * says. */
WF_MUST_USE wf_status wf_apart_new(const wf_device *device, const wf_device_updates *updates,
                                   size_t most, wf_apart **out, wf_err *err);
/* Waits for work under way, frees *a and sets it to NULL; NULL is fine. */
void wf_apart_free(wf_apart **a);

/* A batch begins, without gradients. */
void wf_apart_begin(wf_apart *a);
/* The gradient that output `i` of a plan is, [count] f32 at `data`: there when `done` is, which is
 * borrowed until wf_apart_start; NULL: it is there behind what is queued here. Calls of a step come
 * in the order in which the gradients become final, on one stream. */
void wf_apart_look(wf_apart *a, uint32_t i, const float *data, uint64_t count,
                   wf_device_event *done);
/* The gradient of a batch is part of a sum: `to` is the mean over the step's batches at its end. */
void wf_apart_sum(wf_apart *a, float *to, const float *from, uint64_t count, wf_device_event *done);
/* Queues zeros into the sum of a step, when `after` is done: this device has no part in its first
 * batch. Errors: what the device says. */
WF_MUST_USE wf_status wf_apart_clear(wf_apart *a, float *sum, uint64_t count,
                                     wf_device_event *after, wf_err *err);
/* Queues the sums, in which this batch weighs `by` and is the first or another one, and then the
 * looks: they may be at sums. Errors: what the device says. */
WF_MUST_USE wf_status wf_apart_start(wf_apart *a, float by, bool first, wf_err *err);
/* Waits for both; *bad is the output of the first gradient that is not finite, or -1. Errors: what
 * the device says. */
WF_MUST_USE wf_status wf_apart_wait(wf_apart *a, int64_t *bad, wf_err *err);

#endif
