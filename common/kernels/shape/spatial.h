/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/shape/spatial.h - the geometry of a window over [batch, channels, d, h, w]: what
 * the kernels of convolution and pooling loop over. Fewer spatial axes have ones in front. */
#ifndef WF_KERNELS_SHAPE_SPATIAL_H
#define WF_KERNELS_SHAPE_SPATIAL_H

#include "common/graph/window.h"
#include "common/kernels/kernel.h"

typedef struct wf_spatial {
    wf_window w; /* of WF_WINDOW_AXES axes */
    int64_t in[WF_WINDOW_AXES], out[WF_WINDOW_AXES];
    int64_t in_size, out_size, taps; /* products */
} wf_spatial;

/* From a node's attributes, the input x and the output y of the window, and weights [m, c, taps...]
 * (NULL for a pooling). Errors: WF_SHAPE when they do not fit; what wf_window_read says. */
WF_MUST_USE wf_status wf_spatial_of(const wf_node *n, const wf_tensor *x, const wf_tensor *y,
                                    const wf_tensor *weights, wf_spatial *s, wf_err *err);
/* The same for ConvTranspose: x is its input and plays y's part. */
WF_MUST_USE wf_status wf_spatial_transposed(const wf_node *n, const wf_tensor *x,
                                            const wf_tensor *y, const wf_tensor *weights,
                                            wf_spatial *s, wf_err *err);

/* The outputs [*lo, *hi) along axis i whose tap k lies inside the input. */
void wf_spatial_inside(const wf_spatial *s, uint32_t i, int64_t tap, int64_t *lo, int64_t *hi);
/* The taps [*lo, *hi) along axis i that output o reads inside the input. */
void wf_spatial_taps(const wf_spatial *s, uint32_t i, int64_t o, int64_t *lo, int64_t *hi);
/* Where output o and tap k read along axis i; may lie outside. */
static inline int64_t wf_spatial_at(const wf_spatial *s, uint32_t i, int64_t o, int64_t k)
{
    return o * s->w.stride[i] + k * s->w.dilation[i] - s->w.before[i];
}

#endif
