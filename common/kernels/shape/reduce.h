/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/shape/reduce.h - which elements a reduction joins, whatever it does with them. */
#ifndef WF_KERNELS_SHAPE_REDUCE_H
#define WF_KERNELS_SHAPE_REDUCE_H

#include "common/base/status.h"
#include "common/graph/graph.h"
#include "common/kernels/shape/walk.h"
#include "common/tensor/tensor.h"
#include <stdint.h>

/* Where the elements of one output lie: both walks have the input as operand 0. */
typedef struct wf_reduce_plan {
    wf_walk kept;    /* over the outputs, in their order */
    wf_walk reduced; /* from an output's first element, over all of them */
} wf_reduce_plan;

/* Reducing the axes in mask of a tensor of x's dims. */
void wf_reduce_plan_of(const wf_tensor *x, uint32_t mask, wf_reduce_plan *p);

/* The axes to reduce: those that `axes` lists (its content is known), all without it, or none with
 * attr noop_with_empty_axes. Errors: WF_UNSUPPORTED when they depend on the run. */
WF_MUST_USE wf_status wf_reduce_mask(const wf_node *n, const wf_tensor *x, const wf_tensor *axes,
                                     uint32_t *mask, wf_err *err);

#endif
