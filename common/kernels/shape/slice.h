/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/shape/slice.h - the part of a tensor that Slice takes: a walk with an offset. */
#ifndef WF_KERNELS_SHAPE_SLICE_H
#define WF_KERNELS_SHAPE_SLICE_H

#include "common/base/arena.h"
#include "common/base/status.h"
#include "common/kernels/shape/walk.h"
#include "common/tensor/tensor.h"
#include <stdint.h>

typedef struct wf_slice_plan {
    int64_t offset; /* of the first element taken */
    wf_walk walk;   /* over the part; the tensor is operand 0, from that element on */
} wf_slice_plan;

/* Of a tensor of x's dims, of which `taken` has the part; in the arena.
 *   bounds [4]  starts, ends, axes, steps; the last two may be NULL
 * Errors: WF_UNSUPPORTED when their content is not known; WF_NOMEM. */
WF_MUST_USE wf_status wf_slice_plan_make(const wf_tensor *x, const wf_tensor *const bounds[4],
                                         const wf_tensor *taken, wf_arena *arena,
                                         wf_slice_plan **out, wf_err *err);

#endif
