/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/pools.c - AveragePool: the mean of what lies under the window; elements of the
 * padding count when attr count_include_pad is set. LpPool: (sum |x|^p)^(1/p) of it.
 * GlobalAveragePool and GlobalMaxPool: of each whole channel; the gradient of the largest goes to
 * the first of equals. MaxPool, which has indices, is in max_pool.c. */
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"
#include "common/graph/ops/spatial.h"

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
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
        .infer = infer,                                                                            \
        .grad = grad_##id,                                                                         \
    };

ROW(average_pool, "AveragePool", 19, average, "AveragePoolGrad", false)
ROW(global_average_pool, "GlobalAveragePool", 1, NULL, "AveragePoolGrad", false)
ROW(global_max_pool, "GlobalMaxPool", 1, NULL, "MaxPoolGrad", true)
ROW(lp_pool, "LpPool", 18, lp, "LpPoolGrad", true)
