/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/nn/softmax.c - LogSoftmax, LogSoftmaxGrad, Softmax and SoftmaxGrad. */
#include "common/graph/emit.h"
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

/* Softmax along one axis. Its gradient needs y alone. */

static wf_status infer_softmax(wf_graph *g, wf_node *n, wf_err *err)
{
    uint32_t axis;

    if (n->in[0]->rank >= 0)
        WF_TRY(wf_axis_number(wf_node_int(n, "axis", -1), (uint32_t)n->in[0]->rank, &axis, err));
    return wf_infer_like_float(g, n, err);
}

static wf_status grad_softmax(wf_grads *g, const wf_node *n, wf_err *err)
{
    wf_value *in[] = {wf_grads_upstream(g, n, 0), n->out[0]};
    wf_attr axis = wf_attr_int("axis", wf_node_int(n, "axis", -1));

    (void)err;
    return wf_grads_add(g, n, 0, wf_emit_op(wf_grads_emit(g), "SoftmaxGrad", 2, in, 1, &axis));
}

static const wf_attr_row softmax_attrs[] = {{"axis", WF_ATTR_INT, false}, {0}};

const wf_op wf_op_softmax = {
    .name = "Softmax",
    .domain = WF_DOMAIN_ONNX,
    .since = 13,
    .n_in_min = 1,
    .n_in_max = 1,
    .n_out_min = 1,
    .n_out_max = 1,
    .flags = WF_OP_FOLDABLE,
    .attrs = softmax_attrs,
    .infer = infer_softmax,
    .grad = grad_softmax,
};

/* ai.weft SoftmaxGrad: dx = y (dy - sum(dy y)) along the axis. */

static const wf_attr_row softmax_grad_attrs[] = {{"axis", WF_ATTR_INT, false}, {0}};

const wf_op wf_op_softmax_grad = {
    .name = "SoftmaxGrad",
    .domain = WF_DOMAIN_WEFT,
    .since = 1,
    .means = "(dy, y) -> dx; attr axis = -1; y is the forward output",
    .n_in_min = 2,
    .n_in_max = 2,
    .n_out_min = 1,
    .n_out_max = 1,
    .flags = WF_OP_FOLDABLE,
    .attrs = softmax_grad_attrs,
    .infer = wf_infer_grad_like,
};

/* LogSoftmax along one axis. Its gradient needs y alone. */

static wf_status infer_log_softmax(wf_graph *g, wf_node *n, wf_err *err)
{
    uint32_t axis;

    if (n->in[0]->rank >= 0)
        WF_TRY(wf_axis_number(wf_node_int(n, "axis", -1), (uint32_t)n->in[0]->rank, &axis, err));
    return wf_infer_like_float(g, n, err);
}

static wf_status grad_log_softmax(wf_grads *g, const wf_node *n, wf_err *err)
{
    wf_value *in[] = {wf_grads_upstream(g, n, 0), n->out[0]};
    wf_attr axis = wf_attr_int("axis", wf_node_int(n, "axis", -1));

    (void)err;
    return wf_grads_add(g, n, 0, wf_emit_op(wf_grads_emit(g), "LogSoftmaxGrad", 2, in, 1, &axis));
}

static const wf_attr_row log_softmax_attrs[] = {{"axis", WF_ATTR_INT, false}, {0}};

const wf_op wf_op_log_softmax = {
    .name = "LogSoftmax",
    .domain = WF_DOMAIN_ONNX,
    .since = 13,
    .n_in_min = 1,
    .n_in_max = 1,
    .n_out_min = 1,
    .n_out_max = 1,
    .flags = WF_OP_FOLDABLE,
    .attrs = log_softmax_attrs,
    .infer = infer_log_softmax,
    .grad = grad_log_softmax,
};

/* ai.weft LogSoftmaxGrad: dx = dy - exp(y) sum(dy) along the axis. */

static const wf_attr_row log_softmax_grad_attrs[] = {{"axis", WF_ATTR_INT, false}, {0}};

const wf_op wf_op_log_softmax_grad = {
    .name = "LogSoftmaxGrad",
    .domain = WF_DOMAIN_WEFT,
    .since = 1,
    .means = "(dy, y) -> dx; attr axis = -1; y is the forward output",
    .n_in_min = 2,
    .n_in_max = 2,
    .n_out_min = 1,
    .n_out_max = 1,
    .flags = WF_OP_FOLDABLE,
    .attrs = log_softmax_grad_attrs,
    .infer = wf_infer_grad_like,
};
