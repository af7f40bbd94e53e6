/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/sums.c - Mean and Sum of any number of inputs, broadcast. */
#include "common/graph/emit.h"
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    WF_TRY(wf_need_float(n, 0, "data_0", err));
    return wf_infer_variadic(g, n, NULL, err);
}

/* Each input's part of dy. */
static wf_status pass_back(wf_grads *g, const wf_node *n, double part)
{
    wf_emit *e = wf_grads_emit(g);
    wf_value *dy = wf_emit_scale(e, wf_grads_upstream(g, n, 0), part);

    for (uint32_t i = 0; i < n->n_in; i++)
        if (wf_grads_wanted(g, n, i))
            WF_TRY(wf_grads_add(g, n, i, wf_emit_sum_to(e, dy, n->in[i])));
    return wf_emit_end(e);
}

static wf_status grad_mean(wf_grads *g, const wf_node *n, wf_err *err)
{
    (void)err;
    return pass_back(g, n, 1.0 / n->n_in);
}

static wf_status grad_sum(wf_grads *g, const wf_node *n, wf_err *err)
{
    (void)err;
    return pass_back(g, n, 1);
}

#define ROW(id, name_)                                                                             \
    const wf_op wf_op_##id = {                                                                     \
        .name = name_,                                                                             \
        .domain = WF_DOMAIN_ONNX,                                                                  \
        .since = 13,                                                                               \
        .n_in_min = 1,                                                                             \
        .n_in_max = WF_ANY_NUMBER,                                                                 \
        .n_out_min = 1,                                                                            \
        .n_out_max = 1,                                                                            \
        .flags = WF_OP_ELEMENTWISE | WF_OP_FOLDABLE,                                               \
        .infer = infer,                                                                            \
        .grad = grad_##id,                                                                         \
    };

ROW(mean, "Mean")
ROW(sum, "Sum")
