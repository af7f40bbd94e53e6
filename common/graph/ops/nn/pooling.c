/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/nn/pooling.c - AveragePool, AveragePoolGrad, GlobalAveragePool, GlobalMaxPool,
 * LpPool, LpPoolGrad, MaxPool and MaxPoolGrad. */
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"
#include "common/graph/window.h"

/* Output 0 of a pooling of input 0, as attributes say; whole windows without kernel_shape. */
static wf_status infer_pool(wf_node *n, wf_err *err)
{
    const wf_value *x = n->in[0];
    wf_axis axes[WF_MAX_RANK];
    wf_window w;

    wf_out_unknown(n, 0, x->dtype);
    if (x->rank < 0)
        return WF_OK;
    WF_TRY(wf_window_read(n, (uint32_t)x->rank, NULL, &w, err));
    axes[0] = x->axes[0];
    axes[1] = x->axes[1];
    for (uint32_t i = 0; i < w.n; i++)
        WF_TRY(wf_window_axis(&w, i, &x->axes[i + 2], &axes[i + 2], err));
    wf_out_axes(n, 0, x->dtype, (uint32_t)x->rank, axes);
    return WF_OK;
}

/* AveragePool: the mean of what lies under the window; elements of the padding count when attr
 * count_include_pad is set. LpPool: (sum |x|^p)^(1/p) of it. GlobalAveragePool and GlobalMaxPool:
 * of each whole channel; the gradient of the largest goes to the first of equals. */

static wf_status infer_pools(wf_graph *g, wf_node *n, wf_err *err)
{
    (void)g;
    WF_TRY(wf_need_float(n, 0, "X", err));
    return infer_pool(n, err);
}

/* Attributes of every window; the gradients serve the global poolings too, which have no kernel. */
#define WINDOW(has_kernel)                                                                         \
    {"auto_pad", WF_ATTR_STRING, false}, {"ceil_mode", WF_ATTR_INT, false},                        \
        {"dilations", WF_ATTR_INTS, false}, {"kernel_shape", WF_ATTR_INTS, has_kernel},            \
        {"pads", WF_ATTR_INTS, false},                                                             \
    {                                                                                              \
        "strides", WF_ATTR_INTS, false                                                             \
    }

static const wf_attr_row average[] = {WINDOW(true), {"count_include_pad", WF_ATTR_INT, false}, {0}};
static const wf_attr_row lp[] = {WINDOW(true), {"p", WF_ATTR_INT, false}, {0}};

#define ROW(id, name_, since_, attrs_, gradient, takes)                                            \
    const wf_op wf_op_##id = WF_FOLDABLE(WF_DOMAIN_ONNX, name_, since_, 1, 1, infer_pools,         \
                                         .attrs = attrs_, WF_GRAD_NODE(gradient, takes));

ROW(average_pool, "AveragePool", 19, average, "AveragePoolGrad", "d0 x0")
ROW(global_average_pool, "GlobalAveragePool", 1, NULL, "AveragePoolGrad", "d0 x0")
ROW(global_max_pool, "GlobalMaxPool", 1, NULL, "MaxPoolGrad", "d0 x0 y0")
ROW(lp_pool, "LpPool", 18, lp, "LpPoolGrad", "d0 x0 y0")

/* MaxPool: the largest element under the window. Output 1 is where it lies in X, flat; attr
 * storage_order 1 counts the spatial axes from the first. The gradient goes to the first of
 * equals. */

static wf_status infer_max_pool(wf_graph *g, wf_node *n, wf_err *err)
{
    (void)g;
    if (n->in[0]->dtype == WF_BOOL)
        return wf_fail(err, WF_SHAPE, "Cast it first", "X is bool, and must be a number");
    WF_TRY(infer_pool(n, err));
    if (n->out[0] && n->out[0]->rank >= 0)
        wf_out_like(n, 1, WF_I64, n->out[0]);
    else
        wf_out_unknown(n, 1, WF_I64);
    return WF_OK;
}

static const wf_attr_row max_pool_attrs[] = {
    WINDOW(true), {"storage_order", WF_ATTR_INT, false}, {0}};

const wf_op wf_op_max_pool =
    WF_OPERATION(WF_DOMAIN_ONNX, "MaxPool", 12, 1, 1, 1, 2, WF_OP_FOLDABLE, infer_max_pool,
                 .attrs = max_pool_attrs, WF_GRAD_NODE("MaxPoolGrad", "d0 x0 y0"));

/* ai.weft MaxPoolGrad(dy, x, y): dy goes to the first element of each window that equals y.
 * Without kernel_shape it is GlobalMaxPool's. */

static const wf_attr_row max_pool_grad_attrs[] = {
    WINDOW(false), {"storage_order", WF_ATTR_INT, false}, {0}};

const wf_op wf_op_max_pool_grad =
    WF_FOLDABLE(WF_DOMAIN_WEFT, "MaxPoolGrad", 1, 3, 3, wf_infer_grad_of_1,
                .means = "(dy, x, y) -> dx; MaxPool's attrs; without kernel_shape the window is "
                         "the whole of the input; dy goes to the first element of a window that "
                         "equals y",
                .attrs = max_pool_grad_attrs);

/* ai.weft AveragePoolGrad(dy, x): AveragePool's gradient; of x only the shape is read. Without
 * kernel_shape it is GlobalAveragePool's. */

static const wf_attr_row average_pool_grad_attrs[] = {
    WINDOW(false), {"count_include_pad", WF_ATTR_INT, false}, {0}};

const wf_op wf_op_average_pool_grad =
    WF_FOLDABLE(WF_DOMAIN_WEFT, "AveragePoolGrad", 1, 2, 2, wf_infer_grad_of_1,
                .means = "(dy, x) -> dx; AveragePool's attrs; without kernel_shape the window is "
                         "the whole of the input",
                .attrs = average_pool_grad_attrs);

/* ai.weft LpPoolGrad(dy, x, y): LpPool's gradient. */

static const wf_attr_row lp_pool_grad_attrs[] = {WINDOW(false), {"p", WF_ATTR_INT, false}, {0}};

const wf_op wf_op_lp_pool_grad =
    WF_FOLDABLE(WF_DOMAIN_WEFT, "LpPoolGrad", 1, 3, 3, wf_infer_grad_of_1,
                .means = "(dy, x, y) -> dx; LpPool's attrs; without kernel_shape the window is the "
                         "whole of the input",
                .attrs = lp_pool_grad_attrs);
