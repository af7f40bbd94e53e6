/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/nn/pooling.c - AveragePool, AveragePoolGrad, GlobalAveragePool, GlobalMaxPool,
 * LpPool, LpPoolGrad, MaxPool and MaxPoolGrad. */
#include "common/graph/infer.h"
#include "common/graph/ops/nn/spatial.h"
#include "common/graph/ops/ops.h"

/* AveragePool: the mean of what lies under the window; elements of the padding count when attr
 * count_include_pad is set. LpPool: (sum |x|^p)^(1/p) of it. GlobalAveragePool and GlobalMaxPool:
 * of each whole channel; the gradient of the largest goes to the first of equals. MaxPool, which
 * has indices, is in max_pool.c. */

static wf_status infer_pools(wf_graph *g, wf_node *n, wf_err *err)
{
    (void)g;
    WF_TRY(wf_need_float(n, 0, "X", err));
    return wf_infer_pool(n, err);
}

static const wf_attr_row average[] = {
    {"auto_pad", WF_ATTR_STRING, false},       {"ceil_mode", WF_ATTR_INT, false},
    {"count_include_pad", WF_ATTR_INT, false}, {"dilations", WF_ATTR_INTS, false},
    {"kernel_shape", WF_ATTR_INTS, true},      {"pads", WF_ATTR_INTS, false},
    {"strides", WF_ATTR_INTS, false},          {0}};
static const wf_attr_row lp[] = {
    {"auto_pad", WF_ATTR_STRING, false}, {"ceil_mode", WF_ATTR_INT, false},
    {"dilations", WF_ATTR_INTS, false},  {"kernel_shape", WF_ATTR_INTS, true},
    {"p", WF_ATTR_INT, false},           {"pads", WF_ATTR_INTS, false},
    {"strides", WF_ATTR_INTS, false},    {0}};

#define ROW(id, name_, since_, attrs_, gradient, by_result)                                        \
    static wf_status grad_##id(wf_grads *g, const wf_node *n, wf_err *err)                         \
    {                                                                                              \
        (void)err;                                                                                 \
        return wf_grad_pool(g, n, gradient, by_result);                                            \
    }                                                                                              \
    const wf_op wf_op_##id = {                                                                     \
        .name = name_,                                                                             \
        .domain = WF_DOMAIN_ONNX,                                                                  \
        .since = since_,                                                                           \
        .n_in_min = 1,                                                                             \
        .n_in_max = 1,                                                                             \
        .n_out_min = 1,                                                                            \
        .n_out_max = 1,                                                                            \
        .flags = WF_OP_FOLDABLE,                                                                   \
        .attrs = attrs_,                                                                           \
        .infer = infer_pools,                                                                      \
        .grad = grad_##id,                                                                         \
    };

ROW(average_pool, "AveragePool", 19, average, "AveragePoolGrad", false)
ROW(global_average_pool, "GlobalAveragePool", 1, NULL, "AveragePoolGrad", false)
ROW(global_max_pool, "GlobalMaxPool", 1, NULL, "MaxPoolGrad", true)
ROW(lp_pool, "LpPool", 18, lp, "LpPoolGrad", true)

/* MaxPool: the largest element under the window. Output 1 is where it lies in X, flat; attr
 * storage_order 1 counts the spatial axes from the first. The gradient goes to the first of
 * equals. */

static wf_status infer_max_pool(wf_graph *g, wf_node *n, wf_err *err)
{
    (void)g;
    if (n->in[0]->dtype == WF_BOOL)
        return wf_fail(err, WF_SHAPE, "Cast it first", "X is bool, and must be a number");
    WF_TRY(wf_infer_pool(n, err));
    if (n->out[0] && n->out[0]->rank >= 0)
        wf_out_like(n, 1, WF_I64, n->out[0]);
    else
        wf_out_unknown(n, 1, WF_I64);
    return WF_OK;
}

static wf_status grad(wf_grads *g, const wf_node *n, wf_err *err)
{
    (void)err;
    return wf_grad_pool(g, n, "MaxPoolGrad", true);
}

static const wf_attr_row max_pool_attrs[] = {
    {"auto_pad", WF_ATTR_STRING, false}, {"ceil_mode", WF_ATTR_INT, false},
    {"dilations", WF_ATTR_INTS, false},  {"kernel_shape", WF_ATTR_INTS, true},
    {"pads", WF_ATTR_INTS, false},       {"storage_order", WF_ATTR_INT, false},
    {"strides", WF_ATTR_INTS, false},    {0}};

const wf_op wf_op_max_pool = {
    .name = "MaxPool",
    .domain = WF_DOMAIN_ONNX,
    .since = 12,
    .n_in_min = 1,
    .n_in_max = 1,
    .n_out_min = 1,
    .n_out_max = 2,
    .flags = WF_OP_FOLDABLE,
    .attrs = max_pool_attrs,
    .infer = infer_max_pool,
    .grad = grad,
};

/* ai.weft MaxPoolGrad(dy, x, y): dy goes to the first element of each window that equals y.
 * Without kernel_shape it is GlobalMaxPool's. */

static const wf_attr_row max_pool_grad_attrs[] = {
    {"auto_pad", WF_ATTR_STRING, false}, {"ceil_mode", WF_ATTR_INT, false},
    {"dilations", WF_ATTR_INTS, false},  {"kernel_shape", WF_ATTR_INTS, false},
    {"pads", WF_ATTR_INTS, false},       {"storage_order", WF_ATTR_INT, false},
    {"strides", WF_ATTR_INTS, false},    {0}};

const wf_op wf_op_max_pool_grad =
    WF_FOLDABLE(WF_DOMAIN_WEFT, "MaxPoolGrad", 1, 3, 3, wf_infer_pool_grad,
                .means = "(dy, x, y) -> dx; MaxPool's attrs; without kernel_shape the window is "
                         "the whole of the input; dy goes to the first element of a window that "
                         "equals y",
                .attrs = max_pool_grad_attrs);

/* ai.weft AveragePoolGrad(dy, x): AveragePool's gradient; of x only the shape is read. Without
 * kernel_shape it is GlobalAveragePool's. */

static const wf_attr_row average_pool_grad_attrs[] = {
    {"auto_pad", WF_ATTR_STRING, false},       {"ceil_mode", WF_ATTR_INT, false},
    {"count_include_pad", WF_ATTR_INT, false}, {"dilations", WF_ATTR_INTS, false},
    {"kernel_shape", WF_ATTR_INTS, false},     {"pads", WF_ATTR_INTS, false},
    {"strides", WF_ATTR_INTS, false},          {0}};

const wf_op wf_op_average_pool_grad =
    WF_FOLDABLE(WF_DOMAIN_WEFT, "AveragePoolGrad", 1, 2, 2, wf_infer_pool_grad,
                .means = "(dy, x) -> dx; AveragePool's attrs; without kernel_shape the window is "
                         "the whole of the input",
                .attrs = average_pool_grad_attrs);

/* ai.weft LpPoolGrad(dy, x, y): LpPool's gradient. */

static const wf_attr_row lp_pool_grad_attrs[] = {
    {"auto_pad", WF_ATTR_STRING, false}, {"ceil_mode", WF_ATTR_INT, false},
    {"dilations", WF_ATTR_INTS, false},  {"kernel_shape", WF_ATTR_INTS, false},
    {"p", WF_ATTR_INT, false},           {"pads", WF_ATTR_INTS, false},
    {"strides", WF_ATTR_INTS, false},    {0}};

const wf_op wf_op_lp_pool_grad =
    WF_FOLDABLE(WF_DOMAIN_WEFT, "LpPoolGrad", 1, 3, 3, wf_infer_pool_grad,
                .means = "(dy, x, y) -> dx; LpPool's attrs; without kernel_shape the window is the "
                         "whole of the input",
                .attrs = lp_pool_grad_attrs);
