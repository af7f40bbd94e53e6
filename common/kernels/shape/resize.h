/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/shape/resize.h - the passes of Resize and ResizeGrad, one axis after the other.
 *
 * Along an axis each output is a weighted sum of inputs near it: 1 for nearest, 2 for linear, 4 for
 * cubic, and more where antialias stretches the filter over what shrinks. Each pass goes over
 * [outer, axis, inner], first to last, and the gradient goes the same way back.
 */
#ifndef WF_KERNELS_SHAPE_RESIZE_H
#define WF_KERNELS_SHAPE_RESIZE_H

#include "common/kernels/kernel.h"
#include "common/kernels/shape/resize_taps.h"

/* One axis that changes. */
typedef struct wf_resize_pass {
    uint32_t axis, taps;
    int64_t outer, in, out, inner;
    wf_axis_rule rule;
} wf_resize_pass;

typedef struct wf_resize {
    uint32_t rank, n_passes;
    wf_resize_pass passes[WF_MAX_RANK];
    size_t half; /* bytes of one of the two buffers between passes */
    double extrapolation;
    bool extrapolates, is_nearest;
    bool late; /* only a run knows the roi: the rules lack it */
} wf_resize;

/* lists: roi, scales, sizes. Errors: WF_SHAPE, WF_INVALID, WF_UNSUPPORTED where scales or sizes
 * depend on the run; WF_NOMEM. */
WF_MUST_USE wf_status wf_resize_read(const wf_node *n, const wf_tensor *x, const wf_tensor *y,
                                     const wf_tensor *const lists[], wf_resize *v, wf_err *err);

/* Where a list for all axes or, with attr axes, for some has the entry of an axis; -1: it has none.
 * part: 0, of a roi its ends are part 1. */
int64_t wf_resize_listed(const wf_node *n, const wf_tensor *list, uint32_t axis, uint32_t rank,
                         int64_t part);
/* What a run says of a coordinate that is no number. */
wf_status wf_resize_no_number(wf_err *err);

#endif
