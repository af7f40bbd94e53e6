/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/linear.c - ai.weft Linear(x, W, (bias)): activation(x W + bias) over the last
 * axis of an x of any rank. The compiler makes it of MatMul or Gemm and what follows, once
 * gradients are built; so it needs none of its own. */
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

#include <string.h>

static wf_status check_shapes(const wf_value *x, const wf_value *w, bool trans, wf_err *err)
{
    char text_x[WF_VALUE_STR], text_w[WF_VALUE_STR];

    if (x->rank >= 1 && w->rank == 2 && !wf_axes_clash(&x->axes[x->rank - 1], &w->axes[trans]))
        return WF_OK;
    return wf_fail(err, WF_SHAPE, NULL, "x is %s, W is %s; W must be a matrix with x's last axis",
                   wf_value_str(x, text_x, sizeof text_x), wf_value_str(w, text_w, sizeof text_w));
}

static wf_status check_bias(const wf_value *bias, const wf_axis *columns, wf_err *err)
{
    char text[WF_VALUE_STR];

    if (bias->rank < 0 || (bias->rank == 1 && !wf_axes_clash(&bias->axes[0], columns)))
        return WF_OK;
    return wf_fail(err, WF_SHAPE, NULL, "the bias is %s, and must be a row of %lld",
                   wf_value_str(bias, text, sizeof text), (long long)columns->size);
}

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    const wf_value *x = n->in[0], *w = n->in[1];
    const char *activation = wf_node_string(n, "activation", "");
    bool trans = wf_node_int(n, "transB", 0) != 0;
    wf_axis axes[WF_MAX_RANK];

    (void)g;
    if (activation[0] && strcmp(activation, "Relu") != 0)
        return wf_fail(err, WF_UNSUPPORTED, NULL, "its activation is \"%.40s\", and weft has Relu",
                       activation);
    WF_TRY(wf_need_float(n, 0, "x", err));
    WF_TRY(wf_need_same_dtype(n, 0, 1, err));
    if (wf_node_has_in(n, 2))
        WF_TRY(wf_need_same_dtype(n, 0, 2, err));
    wf_out_unknown(n, 0, x->dtype);
    if (x->rank < 0 || w->rank < 0)
        return WF_OK;
    WF_TRY(check_shapes(x, w, trans, err));
    memcpy(axes, x->axes, (size_t)x->rank * sizeof axes[0]);
    axes[x->rank - 1] = w->axes[!trans];
    if (wf_node_has_in(n, 2))
        WF_TRY(check_bias(n->in[2], &w->axes[!trans], err));
    wf_out_axes(n, 0, x->dtype, (uint32_t)x->rank, axes);
    return WF_OK;
}

static const wf_attr_row attrs[] = {
    {"activation", WF_ATTR_STRING, false}, {"transB", WF_ATTR_INT, false}, {0}};

const wf_op wf_op_linear = {
    .name = "Linear",
    .domain = WF_DOMAIN_WEFT,
    .since = 1,
    .n_in_min = 2,
    .n_in_max = 3,
    .n_out_min = 1,
    .n_out_max = 1,
    .flags = WF_OP_FOLDABLE,
    .attrs = attrs,
    .infer = infer,
};
