/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/window.h - where the window of a convolution or a pooling goes: attributes
 * kernel_shape, strides, dilations, pads, auto_pad and ceil_mode, for shape inference and kernels
 * alike.
 *
 * Spatial axes are those after [batch, channels]. What a window covers of an axis: output o and tap
 * k read input o stride + k dilation - before; outside of [0, size) lies padding.
 */
#ifndef WF_GRAPH_WINDOW_H
#define WF_GRAPH_WINDOW_H

#include "common/base/status.h"
#include "common/graph/graph.h"
#include <stdbool.h>
#include <stdint.h>

enum { WF_WINDOW_AXES = 3 };

typedef enum wf_auto_pad {
    WF_PAD_EXPLICIT = 0, /* before and after are given */
    WF_PAD_SAME_UPPER,   /* as much as makes ceil(size / stride) outputs, the odd one behind */
    WF_PAD_SAME_LOWER    /* the same, the odd one in front */
} wf_auto_pad;

typedef struct wf_window {
    uint32_t n;       /* spatial axes: 1 to WF_WINDOW_AXES */
    bool ceil, whole; /* whole: no kernel is given, the window is all of the input */
    wf_auto_pad auto_pad;
    int64_t kernel[WF_WINDOW_AXES], stride[WF_WINDOW_AXES], dilation[WF_WINDOW_AXES];
    int64_t before[WF_WINDOW_AXES], after[WF_WINDOW_AXES];
} wf_window;

/* Reads a node's attributes for an input of `rank` axes. kernel [rank - 2]: what the weights say,
 * -1 where it is not known; NULL where attr kernel_shape alone says it, or nothing (whole).
 * Errors: WF_UNSUPPORTED for more than 3 spatial axes; WF_SHAPE, WF_INVALID. */
WF_MUST_USE wf_status wf_window_read(const wf_node *n, uint32_t rank, const int64_t kernel[],
                                     wf_window *w, wf_err *err);
/* Works out the outputs along spatial axis i of an input of `size`, and sets before and after where
 * auto_pad leaves them open. Errors: WF_SHAPE: the input is smaller than the window. */
WF_MUST_USE wf_status wf_window_outputs(wf_window *w, uint32_t i, int64_t size, int64_t *outputs,
                                        wf_err *err);
/* The same of an axis that may be known at run time only. */
WF_MUST_USE wf_status wf_window_axis(const wf_window *w, uint32_t i, const wf_axis *axis,
                                     wf_axis *out, wf_err *err);
/* The other way, for ConvTranspose: the size along axis i from `inputs`, with attrs output_padding
 * and output_shape; sets before and after. */
WF_MUST_USE wf_status wf_window_transposed(const wf_node *n, wf_window *w, uint32_t i,
                                           int64_t inputs, int64_t *size, wf_err *err);

#endif
