/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/shape/axes.h - axes as attributes name them. */
#ifndef WF_KERNELS_SHAPE_AXES_H
#define WF_KERNELS_SHAPE_AXES_H

#include "common/tensor/tensor.h"
#include <stdint.h>

/* An axis attribute or index, -rank..rank-1, as 0..rank-1; inference has checked its bounds. */
static inline uint32_t wf_axis_at(int64_t axis, uint32_t rank)
{
    return (uint32_t)(axis < 0 ? axis + rank : axis);
}

/* A tensor around one axis: [outer, axis, inner]. */
typedef struct wf_around {
    int64_t outer, axis, inner;
} wf_around;
wf_around wf_around_axis(const wf_tensor *t, int64_t axis);

#endif
