/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/layers/window.c - where windows of convolutions and poolings go.
 *
 * "same" is TensorFlow's: ceil(size / stride) outputs, the odd element of the padding behind. */
#include "common/compile/layers/layer.h"
#include <string.h>

static void set_attrs(wf_layer_window *w)
{
    w->attrs[0] = wf_attr_ints("kernel_shape", w->n, w->kernel);
    w->attrs[1] = wf_attr_ints("pads", (size_t)w->n * 2, w->pads);
    w->attrs[2] = wf_attr_ints("strides", w->n, w->stride);
    w->attrs[3] = wf_attr_ints("dilations", w->n, w->dilation);
}

bool wf_layer_read_window(wf_layer *l, const wf_value *x, uint32_t n, const char *size,
                          int64_t kernel_otherwise, int64_t strides_otherwise, wf_layer_window *w)
{
    const char *padding = wf_conf_text(l->item, "padding", "valid");

    *w = (wf_layer_window){.n = n};
    if (!x || !wf_layer_ints(l, size, n, kernel_otherwise, w->kernel) ||
        !wf_layer_ints(l, "strides", n, strides_otherwise, w->stride) ||
        !wf_layer_ints(l, "dilation_rate", n, 1, w->dilation))
        return false;
    for (uint32_t i = 0; i < n; i++) {
        int64_t extent = x->axes[i + 2].size, span = (w->kernel[i] - 1) * w->dilation[i] + 1, all;

        if (!w->stride[i])
            w->stride[i] = w->kernel[i];
        if (!strcmp(padding, "causal")) {
            w->pads[i] = span - 1;
        } else if (!strcmp(padding, "same")) {
            all = (extent + w->stride[i] - 1) / w->stride[i];
            all = (all - 1) * w->stride[i] + span - extent;
            w->pads[i] = all > 0 ? all / 2 : 0;
            w->pads[n + i] = all > 0 ? all - all / 2 : 0;
        } else if (span > extent) {
            wf_layer_refuse(l, WF_USAGE, "make it smaller, or write padding: same",
                            "its window covers %lld along axis %u, which has %lld", (long long)span,
                            i + 1, (long long)extent);
            return false;
        }
    }
    set_attrs(w);
    return true;
}
