/* SPDX-License-Identifier: Apache-2.0 */
/* worker/finite.h - gradients that stay on a device are looked at there for NaN and infinity, all
 * of a step at once behind the last one; the host reads a word for each.
 *
 * Belongs to one thread at a time.
 */
#ifndef WF_WORKER_FINITE_H
#define WF_WORKER_FINITE_H

#include "common/base/status.h"
#include "common/kernels/update.h"
#include "common/tensor/device.h"
#include <stddef.h>
#include <stdint.h>

typedef struct wf_finite wf_finite;

/* For at most so many gradients of a step; the caller owns *out. Errors: WF_NOMEM; what the device
 * says. */
WF_MUST_USE wf_status wf_finite_new(const wf_device *device, const wf_device_updates *updates,
                                    size_t most, wf_finite **out, wf_err *err);
/* Waits for work under way, frees *f and sets it to NULL; NULL is fine. */
void wf_finite_free(wf_finite **f);

/* A step begins, without gradients. */
void wf_finite_begin(wf_finite *f);
/* The gradient that output `i` of a plan is, [count] f32 at `data`: there when `done` is, which is
 * borrowed until wf_finite_start. Calls of a step come in the order in which the gradients become
 * final, on one stream. */
void wf_finite_add(wf_finite *f, uint32_t i, const float *data, uint64_t count,
                   wf_device_event *done);
/* Queues the look. Errors: what the device says. */
WF_MUST_USE wf_status wf_finite_start(wf_finite *f, wf_err *err);
/* Waits for it; *bad is the output of the first gradient that is not finite, or -1. Errors: what
 * the device says. */
WF_MUST_USE wf_status wf_finite_wait(wf_finite *f, int64_t *bad, wf_err *err);

#endif
