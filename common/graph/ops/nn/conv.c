/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/nn/conv.c - Conv and ConvTranspose, each with its gradients by data and by
 * weights: ConvDataGrad, ConvWeightGrad, ConvTransposeDataGrad and ConvTransposeWeightGrad. */
#include "common/base/size.h"
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"
#include "common/graph/window.h"

#include <inttypes.h>

/* Conv: X [batch, channels, ...], W [maps, channels / group, ...], with 1 to 3 spatial axes, and
 * an optional bias B [maps]. ConvTranspose: W [channels, maps / group, ...]: what Conv's gradient
 * does with respect to its data, as an operation of its own. */

static const wf_attr_row attrs[] = {{"auto_pad", WF_ATTR_STRING, false},
                                    {"dilations", WF_ATTR_INTS, false},
                                    {"group", WF_ATTR_INT, false},
                                    {"kernel_shape", WF_ATTR_INTS, false},
                                    {"pads", WF_ATTR_INTS, false},
                                    {"strides", WF_ATTR_INTS, false},
                                    {0}};

static const wf_attr_row transpose_attrs[] = {{"auto_pad", WF_ATTR_STRING, false},
                                              {"dilations", WF_ATTR_INTS, false},
                                              {"group", WF_ATTR_INT, false},
                                              {"kernel_shape", WF_ATTR_INTS, false},
                                              {"output_padding", WF_ATTR_INTS, false},
                                              {"output_shape", WF_ATTR_INTS, false},
                                              {"pads", WF_ATTR_INTS, false},
                                              {"strides", WF_ATTR_INTS, false},
                                              {0}};

/* `size` channels or maps, of X or W, make as many groups. */
static wf_status check_group(const wf_node *n, uint32_t i, int64_t size, wf_err *err)
{
    int64_t group = wf_node_int(n, "group", 1);
    char text[WF_VALUE_STR];

    if (group >= 1 && group <= INT32_MAX && (size < 0 || size % group == 0))
        return WF_OK;
    return wf_fail(err, WF_SHAPE, "attr group must divide the channels and the maps",
                   "%s is %s and its %s do not divide into %" PRId64 " groups", i ? "W" : "X",
                   wf_value_str(n->in[i], text, sizeof text), i ? "maps" : "channels", group);
}

static wf_status check_bias(const wf_node *n, const wf_axis *maps, wf_err *err)
{
    const wf_value *bias = wf_node_has_in(n, 2) ? n->in[2] : NULL;
    char a[WF_VALUE_STR], b[WF_VALUE_STR];

    if (!bias || bias->rank < 0 || (bias->rank == 1 && !wf_axes_clash(&bias->axes[0], maps)))
        return WF_OK;
    return wf_fail(err, WF_SHAPE, "leave B out, or give it W's maps",
                   "W is %s and B %s; B must have one element a map",
                   wf_value_str(n->in[1], a, sizeof a), wf_value_str(bias, b, sizeof b));
}

static wf_status check(const wf_node *n, bool transposed, wf_axis *maps, wf_err *err)
{
    const wf_value *x = n->in[0], *w = n->in[1];
    wf_axis group = wf_axis_of(wf_node_int(n, "group", 1));
    char a[WF_VALUE_STR], b[WF_VALUE_STR];

    wf_value_str(x, a, sizeof a);
    wf_value_str(w, b, sizeof b);
    if (w->rank != x->rank)
        return wf_fail(err, WF_SHAPE, "W is [maps, channels / group, ...]",
                       "X is %s and W %s; they must have as many axes", a, b);
    if (transposed) {
        if (wf_axes_clash(&x->axes[1], &w->axes[0]))
            return wf_fail(err, WF_SHAPE, "W is [channels, maps / group, ...]",
                           "X is %s and W %s; X's axis 1 must be W's first", a, b);
        WF_TRY(check_group(n, 0, x->axes[1].size, err));
        *maps = wf_axis_mul(&w->axes[1], &group);
    } else {
        WF_TRY(check_group(n, 1, w->axes[0].size, err));
        if (x->axes[1].size >= 0 && w->axes[1].size >= 0 &&
            (x->axes[1].size % group.size || x->axes[1].size / group.size != w->axes[1].size))
            return wf_fail(err, WF_SHAPE, "X's axis 1 must be W's axis 1 times group",
                           "X is %s, W %s and group %" PRId64, a, b, group.size);
        *maps = w->axes[0];
    }
    return check_bias(n, maps, err);
}

/* Axis i of what ConvTranspose makes. */
static wf_status spatial(const wf_node *n, const wf_window *window, uint32_t i, const wf_axis *in,
                         wf_axis *out, wf_err *err)
{
    wf_window w = *window;
    size_t count;
    int64_t size;
    bool fixed = wf_node_ints(n, "output_shape", &count) != NULL;

    if (w.kernel[i] < 0 || (in->size < 0 && !fixed)) {
        *out = wf_axis_unknown(-1);
        if (w.kernel[i] >= 0 && in->bound >= 0 &&
            wf_window_transposed(n, &w, i, in->bound, &size, NULL) == WF_OK)
            out->bound = size;
        return WF_OK;
    }
    WF_TRY(wf_window_transposed(n, &w, i, WF_MAX(in->size, (int64_t)0), &size, err));
    *out = wf_axis_of(size);
    return WF_OK;
}

static wf_status infer_either(wf_node *n, bool transposed, wf_err *err)
{
    const wf_value *x = n->in[0], *w = n->in[1];
    int64_t kernel[WF_WINDOW_AXES];
    wf_axis axes[WF_MAX_RANK];
    wf_window window;

    WF_TRY(wf_need_float(n, 0, "X", err));
    WF_TRY(wf_need_same_dtype(n, 0, 1, err));
    if (wf_node_has_in(n, 2))
        WF_TRY(wf_need_same_dtype(n, 0, 2, err));
    wf_out_unknown(n, 0, x->dtype);
    if (x->rank < 0 || w->rank < 0)
        return WF_OK;
    axes[0] = x->axes[0];
    WF_TRY(check(n, transposed, &axes[1], err));
    for (int32_t i = 0; i < WF_WINDOW_AXES; i++)
        kernel[i] = i + 2 < w->rank ? w->axes[i + 2].size : -1;
    WF_TRY(wf_window_read(n, (uint32_t)x->rank, kernel, &window, err));
    for (uint32_t i = 0; i < window.n; i++) {
        if (transposed)
            WF_TRY(spatial(n, &window, i, &x->axes[i + 2], &axes[i + 2], err));
        else
            WF_TRY(wf_window_axis(&window, i, &x->axes[i + 2], &axes[i + 2], err));
    }
    wf_out_axes(n, 0, x->dtype, (uint32_t)x->rank, axes);
    return WF_OK;
}

/* dX and dW, a node each, and dB: dy summed over everything but the channels. */
static wf_status grad_either(wf_grads *g, const wf_node *n, const char *by_data,
                             const char *by_weights)
{
    wf_emit *e = wf_grads_emit(g);
    wf_value *dy = wf_grads_upstream(g, n, 0);
    wf_value *data[] = {dy, n->in[1], n->in[0]}, *weights[] = {dy, n->in[0], n->in[1]};
    int64_t axes[WF_MAX_RANK];
    uint32_t count = 0;

    if (wf_grads_wanted(g, n, 0))
        WF_TRY(wf_grads_add(g, n, 0, wf_emit_op(e, by_data, 3, data, n->n_attrs, n->attrs)));
    if (wf_grads_wanted(g, n, 1))
        WF_TRY(wf_grads_add(g, n, 1, wf_emit_op(e, by_weights, 3, weights, n->n_attrs, n->attrs)));
    if (!wf_grads_wanted(g, n, 2) || n->in[0]->rank < 0)
        return WF_OK;
    for (int32_t k = 0; k < n->in[0]->rank; k++)
        if (k != 1)
            axes[count++] = k;
    return wf_grads_add(g, n, 2, wf_emit_reduce_sum(e, dy, count, axes, false));
}

/* An operation and its two gradients, of which each reads only the shape of what it is by. */
#define ROWS(id, name, transposed, attrs_)                                                         \
    static wf_status infer_##id(wf_graph *g, wf_node *n, wf_err *err)                              \
    {                                                                                              \
        (void)g;                                                                                   \
        return infer_either(n, transposed, err);                                                   \
    }                                                                                              \
    static wf_status grad_##id(wf_grads *g, const wf_node *n, wf_err *err)                         \
    {                                                                                              \
        (void)err;                                                                                 \
        return grad_either(g, n, name "DataGrad", name "WeightGrad");                              \
    }                                                                                              \
    const wf_op wf_op_##id = WF_FOLDABLE(WF_DOMAIN_ONNX, name, 11, 2, 3, infer_##id,               \
                                         .attrs = attrs_, .grad = grad_##id);                      \
    const wf_op wf_op_##id##_data_grad =                                                           \
        WF_FOLDABLE(WF_DOMAIN_WEFT, name "DataGrad", 1, 3, 3, wf_infer_grad_of_2, .attrs = attrs_, \
                    .means = "(dy, W, X) -> dX; " name "'s attrs; of X only the shape is read");   \
    const wf_op wf_op_##id##_weight_grad = WF_FOLDABLE(                                            \
        WF_DOMAIN_WEFT, name "WeightGrad", 1, 3, 3, wf_infer_grad_of_2, .attrs = attrs_,           \
        .means = "(dy, X, W) -> dW; " name "'s attrs; of W only the shape is read");

ROWS(conv, "Conv", false, attrs)
ROWS(conv_transpose, "ConvTranspose", true, transpose_attrs)
