/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/layers/conv_transpose.c - conv1d_transpose and conv2d_transpose.
 *
 * The size that comes out is Keras's: size stride for "same", and for "valid" what the last window
 * reaches beyond that, too. The kernel is kept as ONNX has it, [in, out, ...]; Keras has
 * [..., out, in], and counts its fans by that. */
#include "common/compile/layers/layer.h"
#include <string.h>

static wf_flow build(wf_layer *l)
{
    uint32_t n = wf_layer_spatial(l);
    wf_value *in[3] = {wf_layer_image(l, n), NULL, NULL};
    int64_t filters = wf_conf_int(l->item, "filters", 1), kernel[3], stride[3], dilation[3];
    int64_t dims[5] = {0, filters}, pads[6] = {0}, extra[3] = {0};
    bool same = !strcmp(wf_conf_text(l->item, "padding", "valid"), "same");
    wf_fans fans = {.in = (double)filters, .out = 0, .out_first = true};
    wf_attr attrs[5];

    if (!in[0] || !wf_layer_ints(l, "kernel_size", n, 0, kernel) ||
        !wf_layer_ints(l, "strides", n, 1, stride) ||
        !wf_layer_ints(l, "dilation_rate", n, 1, dilation))
        return (wf_flow){0};
    dims[0] = in[0]->axes[1].size;
    fans.out = (double)dims[0];
    for (uint32_t i = 0; i < n; i++) {
        int64_t beyond = (kernel[i] - 1) * dilation[i] + 1 - stride[i];

        extra[i] = beyond < 0 ? -beyond : 0;
        pads[i] = same && beyond > 0 ? beyond / 2 : 0;
        pads[n + i] = same && beyond > 0 ? beyond - beyond / 2 : 0;
        dims[i + 2] = kernel[i];
        fans.in *= (double)kernel[i];
        fans.out *= (double)kernel[i];
    }
    attrs[0] = wf_attr_ints("kernel_shape", n, kernel);
    attrs[1] = wf_attr_ints("strides", n, stride);
    attrs[2] = wf_attr_ints("dilations", n, dilation);
    attrs[3] = wf_attr_ints("pads", (size_t)n * 2, pads);
    attrs[4] = wf_attr_ints("output_padding", n, extra);
    in[1] = wf_layer_variable(l, "kernel", n + 2, dims, "glorot_uniform", &fans);
    if (wf_layer_flag(l, "use_bias", true))
        in[2] = wf_layer_variable(l, "bias", 1, &filters, "zeros", NULL);
    in[0] = wf_emit_op(&l->e, "ConvTranspose", in[2] ? 3 : 2, in, 5, attrs);
    return wf_layer_activate(l, wf_layer_give_image(l, in[0]), "activation", "linear");
}

const wf_layer_row wf_layer_conv1d_transpose = {"conv1d_transpose", 1, 1, build};
const wf_layer_row wf_layer_conv2d_transpose = {"conv2d_transpose", 1, 1, build};
const wf_layer_row wf_layer_conv3d_transpose = {"conv3d_transpose", 1, 1, build};
