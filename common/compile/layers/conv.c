/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/layers/conv.c - convolutions: conv1d to conv3d, depthwise and separable ones.
 *
 * Kernels are kept as ONNX has them, [out, in / groups, ...]; Keras has [..., in / groups, out].
 * Fans are counted in Keras's shape. */
#include "common/compile/layers/layer.h"

/* A kernel [out, in, window...]; fans of Keras's [window..., of_in, of_out]. */
static wf_value *kernel_of(wf_layer *l, const char *part, const wf_layer_window *w, int64_t out,
                           int64_t in, int64_t of_in, int64_t of_out)
{
    int64_t dims[5] = {out, in};
    wf_fans fans = {.in = (double)of_in, .out = (double)of_out, .out_first = true};

    for (uint32_t i = 0; i < w->n; i++) {
        dims[i + 2] = w->kernel[i];
        fans.in *= (double)w->kernel[i];
        fans.out *= (double)w->kernel[i];
    }
    return wf_layer_variable(l, part, w->n + 2, dims, "glorot_uniform", &fans);
}

static wf_value *convolve(wf_layer *l, const wf_layer_window *w, int64_t groups, wf_value *x,
                          wf_value *kernel, wf_value *bias)
{
    wf_attr attrs[5] = {w->attrs[0], w->attrs[1], w->attrs[2], w->attrs[3],
                        wf_attr_int("group", groups)};
    wf_value *in[3] = {x, kernel, bias};

    return wf_emit_op(&l->e, "Conv", bias ? 3 : 2, in, 5, attrs);
}

static wf_value *bias_of(wf_layer *l, int64_t out)
{
    return wf_layer_flag(l, "use_bias", true) ? wf_layer_variable(l, "bias", 1, &out, "zeros", NULL)
                                              : NULL;
}

static wf_flow conv(wf_layer *l)
{
    uint32_t n = wf_layer_spatial(l);
    wf_value *x = wf_layer_image(l, n), *kernel;
    int64_t filters = wf_conf_int(l->item, "filters", 1);
    int64_t groups = wf_conf_int(l->item, "groups", 1), channels;
    wf_layer_window w;

    if (!wf_layer_read_window(l, x, n, "kernel_size", 0, 1, &w))
        return (wf_flow){0};
    channels = x->axes[1].size;
    if (channels % groups || filters % groups)
        return wf_layer_refuse(l, WF_USAGE, NULL,
                               "%lld channels and %lld filters do not divide into %lld groups",
                               (long long)channels, (long long)filters, (long long)groups);
    kernel = kernel_of(l, "kernel", &w, filters, channels / groups, channels / groups, filters);
    x = convolve(l, &w, groups, x, kernel, bias_of(l, filters));
    return wf_layer_activate(l, wf_layer_give_image(l, x), "activation", "linear");
}

/* Output channels of a depthwise convolution, bounded. */
static bool multiplied(wf_layer *l, const wf_value *x, int64_t *out)
{
    int64_t multiplier = wf_conf_int(l->item, "depth_multiplier", 1);

    *out = x->axes[1].size * multiplier;
    if (x->axes[1].size <= INT32_MAX / multiplier)
        return true;
    wf_layer_refuse(l, WF_USAGE, "lower \"depth_multiplier\"",
                    "%lld channels times %lld are too many", (long long)x->axes[1].size,
                    (long long)multiplier);
    return false;
}

static wf_flow depthwise(wf_layer *l)
{
    uint32_t n = wf_layer_spatial(l);
    wf_value *x = wf_layer_image(l, n), *kernel;
    int64_t channels, out;
    wf_layer_window w;

    if (!wf_layer_read_window(l, x, n, "kernel_size", 0, 1, &w) || !multiplied(l, x, &out))
        return (wf_flow){0};
    channels = x->axes[1].size;
    kernel = kernel_of(l, "depthwise_kernel", &w, out, 1, channels, out / channels);
    x = convolve(l, &w, channels, x, kernel, bias_of(l, out));
    return wf_layer_activate(l, wf_layer_give_image(l, x), "activation", "linear");
}

/* A depthwise convolution and one of a single point, with nothing between. */
static wf_flow separable(wf_layer *l)
{
    uint32_t n = wf_layer_spatial(l);
    wf_value *x = wf_layer_image(l, n), *depthwise_kernel, *pointwise_kernel;
    int64_t filters = wf_conf_int(l->item, "filters", 1), channels, between;
    wf_layer_window w, point = {.n = n};

    if (!wf_layer_read_window(l, x, n, "kernel_size", 0, 1, &w) || !multiplied(l, x, &between))
        return (wf_flow){0};
    channels = x->axes[1].size;
    for (uint32_t i = 0; i < n; i++)
        point.kernel[i] = point.stride[i] = point.dilation[i] = 1;
    point.attrs[0] = wf_attr_ints("kernel_shape", n, point.kernel);
    point.attrs[1] = wf_attr_ints("pads", (size_t)n * 2, point.pads);
    point.attrs[2] = wf_attr_ints("strides", n, point.stride);
    point.attrs[3] = wf_attr_ints("dilations", n, point.dilation);
    depthwise_kernel =
        kernel_of(l, "depthwise_kernel", &w, between, 1, channels, between / channels);
    pointwise_kernel = kernel_of(l, "pointwise_kernel", &point, filters, between, between, filters);
    x = convolve(l, &w, channels, x, depthwise_kernel, NULL);
    x = convolve(l, &point, 1, x, pointwise_kernel, bias_of(l, filters));
    return wf_layer_activate(l, wf_layer_give_image(l, x), "activation", "linear");
}

const wf_layer_row wf_layer_conv1d = {"conv1d", 1, 1, conv};
const wf_layer_row wf_layer_conv2d = {"conv2d", 1, 1, conv};
const wf_layer_row wf_layer_conv3d = {"conv3d", 1, 1, conv};
const wf_layer_row wf_layer_depthwise_conv1d = {"depthwise_conv1d", 1, 1, depthwise};
const wf_layer_row wf_layer_depthwise_conv2d = {"depthwise_conv2d", 1, 1, depthwise};
const wf_layer_row wf_layer_separable_conv1d = {"separable_conv1d", 1, 1, separable};
const wf_layer_row wf_layer_separable_conv2d = {"separable_conv2d", 1, 1, separable};
