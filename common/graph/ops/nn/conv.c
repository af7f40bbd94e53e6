/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/nn/conv.c - Conv, ConvDataGrad and ConvWeightGrad. */
#include "common/graph/infer.h"
#include "common/graph/ops/nn/spatial.h"
#include "common/graph/ops/ops.h"

#include <inttypes.h>

/* Conv: X [batch, channels, ...], W [maps, channels / group, ...], with 1 to 3 spatial axes, and
 * an optional bias B [maps]. */

static wf_status check(const wf_node *n, wf_err *err)
{
    const wf_value *x = n->in[0], *w = n->in[1];
    int64_t group = wf_node_int(n, "group", 1), maps = w->axes[0].size;
    char a[WF_VALUE_STR], b[WF_VALUE_STR];

    if (w->rank != x->rank)
        return wf_fail(err, WF_SHAPE, NULL, "X is %s and W %s; they must have as many axes",
                       wf_value_str(x, a, sizeof a), wf_value_str(w, b, sizeof b));
    if (group < 1 || group > INT32_MAX || (maps >= 0 && maps % group))
        return wf_fail(err, WF_SHAPE, NULL,
                       "W is %s and its maps do not divide into %" PRId64 " groups",
                       wf_value_str(w, b, sizeof b), group);
    if (x->axes[1].size >= 0 && w->axes[1].size >= 0 &&
        (x->axes[1].size % group || x->axes[1].size / group != w->axes[1].size))
        return wf_fail(err, WF_SHAPE, "X's axis 1 must be W's axis 1 times group",
                       "X is %s, W %s and group %" PRId64, wf_value_str(x, a, sizeof a),
                       wf_value_str(w, b, sizeof b), group);
    if (wf_node_has_in(n, 2) && n->in[2]->rank >= 0 &&
        (n->in[2]->rank != 1 || wf_axes_clash(&n->in[2]->axes[0], &w->axes[0])))
        return wf_fail(err, WF_SHAPE, NULL, "W is %s and B %s; B must have one element a map",
                       wf_value_str(w, a, sizeof a), wf_value_str(n->in[2], b, sizeof b));
    return WF_OK;
}

static wf_status infer_conv(wf_graph *g, wf_node *n, wf_err *err)
{
    const wf_value *x = n->in[0], *w = n->in[1];
    int64_t kernel[WF_WINDOW_AXES];
    wf_axis axes[WF_MAX_RANK];
    wf_window window;

    (void)g;
    WF_TRY(wf_need_float(n, 0, "X", err));
    WF_TRY(wf_need_same_dtype(n, 0, 1, err));
    if (wf_node_has_in(n, 2))
        WF_TRY(wf_need_same_dtype(n, 0, 2, err));
    wf_out_unknown(n, 0, x->dtype);
    if (x->rank < 0 || w->rank < 0)
        return WF_OK;
    WF_TRY(check(n, err));
    wf_kernel_of(w, kernel);
    WF_TRY(wf_window_read(n, (uint32_t)x->rank, kernel, &window, err));
    axes[0] = x->axes[0];
    axes[1] = w->axes[0];
    for (uint32_t i = 0; i < window.n; i++)
        WF_TRY(wf_window_axis(&window, i, &x->axes[i + 2], &axes[i + 2], err));
    wf_out_axes(n, 0, x->dtype, (uint32_t)x->rank, axes);
    return WF_OK;
}

static wf_status grad(wf_grads *g, const wf_node *n, wf_err *err)
{
    (void)err;
    return wf_grad_conv(g, n, "ConvDataGrad", "ConvWeightGrad");
}

const wf_op wf_op_conv =
    WF_FOLDABLE(WF_DOMAIN_ONNX, "Conv", 11, 2, 3, infer_conv, .attrs = wf_conv_rows, .grad = grad);

/* ai.weft ConvDataGrad(dy, W, X): Conv's gradient with respect to X, of which only the shape is
 * read. */

const wf_op wf_op_conv_data_grad = WF_FOLDABLE(
    WF_DOMAIN_WEFT, "ConvDataGrad", 1, 3, 3, wf_infer_grad_of_2,
    .means = "(dy, W, X) -> dX; Conv's attrs; of X only the shape is read", .attrs = wf_conv_rows);

/* ai.weft ConvWeightGrad(dy, X, W): Conv's gradient with respect to W, of which only the shape is
 * read. */

const wf_op wf_op_conv_weight_grad = WF_FOLDABLE(
    WF_DOMAIN_WEFT, "ConvWeightGrad", 1, 3, 3, wf_infer_grad_of_2,
    .means = "(dy, X, W) -> dW; Conv's attrs; of W only the shape is read", .attrs = wf_conv_rows);
