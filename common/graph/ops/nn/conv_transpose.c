/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/nn/conv_transpose.c - ConvTranspose, ConvTransposeDataGrad and
 * ConvTransposeWeightGrad. */
#include "common/base/size.h"
#include "common/graph/infer.h"
#include "common/graph/ops/nn/spatial.h"
#include "common/graph/ops/ops.h"

#include <inttypes.h>

/* ConvTranspose: X [batch, channels, ...], W [channels, maps / group, ...]: what Conv's gradient
 * does with respect to its data, as an operation of its own. */

static wf_status check(const wf_node *n, wf_axis *maps, wf_err *err)
{
    const wf_value *x = n->in[0], *w = n->in[1];
    int64_t group = wf_node_int(n, "group", 1), channels = x->axes[1].size;
    wf_axis groups;
    char a[WF_VALUE_STR], b[WF_VALUE_STR];

    if (w->rank != x->rank || wf_axes_clash(&x->axes[1], &w->axes[0]))
        return wf_fail(err, WF_SHAPE, NULL,
                       "X is %s and W %s; they must have as many axes, and X's axis 1 be W's first",
                       wf_value_str(x, a, sizeof a), wf_value_str(w, b, sizeof b));
    if (group < 1 || group > INT32_MAX || (channels >= 0 && channels % group))
        return wf_fail(err, WF_SHAPE, NULL,
                       "X is %s and its channels do not divide into %" PRId64 " groups",
                       wf_value_str(x, b, sizeof b), group);
    groups = wf_axis_of(group);
    *maps = wf_axis_mul(&w->axes[1], &groups);
    if (wf_node_has_in(n, 2) && n->in[2]->rank >= 0 &&
        (n->in[2]->rank != 1 || wf_axes_clash(&n->in[2]->axes[0], maps)))
        return wf_fail(err, WF_SHAPE, NULL, "B is %s; it must have one element a map",
                       wf_value_str(n->in[2], b, sizeof b));
    return WF_OK;
}

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

static wf_status infer_conv_transpose(wf_graph *g, wf_node *n, wf_err *err)
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
    wf_kernel_of(w, kernel);
    WF_TRY(wf_window_read(n, (uint32_t)x->rank, kernel, &window, err));
    axes[0] = x->axes[0];
    WF_TRY(check(n, &axes[1], err));
    for (uint32_t i = 0; i < window.n; i++)
        WF_TRY(spatial(n, &window, i, &x->axes[i + 2], &axes[i + 2], err));
    wf_out_axes(n, 0, x->dtype, (uint32_t)x->rank, axes);
    return WF_OK;
}

static wf_status grad(wf_grads *g, const wf_node *n, wf_err *err)
{
    (void)err;
    return wf_grad_conv(g, n, "ConvTransposeDataGrad", "ConvTransposeWeightGrad");
}

const wf_op wf_op_conv_transpose =
    WF_FOLDABLE(WF_DOMAIN_ONNX, "ConvTranspose", 11, 2, 3, infer_conv_transpose,
                .attrs = wf_conv_transpose_rows, .grad = grad);

/* ai.weft ConvTransposeDataGrad(dy, W, X): ConvTranspose's gradient with respect to X, of which
 * only the shape is read. */

const wf_op wf_op_conv_transpose_data_grad =
    WF_FOLDABLE(WF_DOMAIN_WEFT, "ConvTransposeDataGrad", 1, 3, 3, wf_infer_grad_of_2,
                .means = "(dy, W, X) -> dX; ConvTranspose's attrs; of X only the shape is read",
                .attrs = wf_conv_transpose_rows);

/* ai.weft ConvTransposeWeightGrad(dy, X, W): ConvTranspose's gradient with respect to W, of which
 * only the shape is read. */

const wf_op wf_op_conv_transpose_weight_grad =
    WF_FOLDABLE(WF_DOMAIN_WEFT, "ConvTransposeWeightGrad", 1, 3, 3, wf_infer_grad_of_2,
                .means = "(dy, X, W) -> dW; ConvTranspose's attrs; of W only the shape is read",
                .attrs = wf_conv_transpose_rows);
