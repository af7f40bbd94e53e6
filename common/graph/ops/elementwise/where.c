/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/elementwise/where.c - Where: condition ? x : y, all three broadcast. */
#include "common/graph/emit.h"
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

static wf_elem pick(const wf_elem *condition, const wf_elem *x, const wf_elem *y)
{
    if (condition->is_known)
        return condition->value ? *x : *y;
    if (x->is_known && y->is_known && x->value == y->value)
        return *x;
    return wf_elem_unknown();
}

static wf_status carry(wf_graph *g, wf_node *n, wf_err *err)
{
    wf_elem in[3][WF_MAX_CARRIED], out[WF_MAX_CARRIED];
    uint32_t count[3], most = 1;

    for (uint32_t i = 0; i < 3; i++) {
        if (!wf_value_elems(n->in[i], in[i], &count[i]))
            return WF_OK;
        if (count[i] != 1)
            most = count[i];
    }
    for (uint32_t i = 0; i < 3; i++)
        if (count[i] != 1 && count[i] != most)
            return WF_OK;
    for (uint32_t i = 0; i < most; i++)
        out[i] = pick(&in[0][count[0] == 1 ? 0 : i], &in[1][count[1] == 1 ? 0 : i],
                      &in[2][count[2] == 1 ? 0 : i]);
    return wf_out_carry(g, n, 0, most, out, err);
}

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    wf_axis axes[WF_MAX_RANK];
    uint32_t rank = 0;
    wf_dtype dtype = n->in[1]->dtype;

    WF_TRY(wf_need_dtype(n, 0, WF_BOOL, "the condition", err));
    WF_TRY(wf_need_same_dtype(n, 1, 2, err));
    wf_out_unknown(n, 0, dtype);
    for (uint32_t i = 0; i < 3; i++) {
        char text[3][WF_VALUE_STR];

        if (n->in[i]->rank < 0)
            return WF_OK;
        WF_TRY(wf_err_wrap(err, wf_axes_broadcast(axes, &rank, n->in[i], err),
                           "condition, X and Y are %s, %s and %s",
                           wf_value_str(n->in[0], text[0], sizeof text[0]),
                           wf_value_str(n->in[1], text[1], sizeof text[1]),
                           wf_value_str(n->in[2], text[2], sizeof text[2])));
    }
    wf_out_axes(n, 0, dtype, rank, axes);
    return carry(g, n, err);
}

/* Chosen, not multiplied by 0 and 1: dy may be infinite where the other side was taken. */
static wf_status grad(wf_grads *g, const wf_node *n, wf_err *err)
{
    wf_emit *e = wf_grads_emit(g);
    wf_value *condition = n->in[0], *dy = wf_grads_upstream(g, n, 0);
    wf_value *zero = wf_emit_scalar(e, n->out[0]->dtype, 0);

    (void)err;
    if (wf_grads_wanted(g, n, 1))
        WF_TRY(wf_grads_add(g, n, 1,
                            wf_emit_sum_to(e, wf_emit_where(e, condition, dy, zero), n->in[1])));
    if (wf_grads_wanted(g, n, 2))
        WF_TRY(wf_grads_add(g, n, 2,
                            wf_emit_sum_to(e, wf_emit_where(e, condition, zero, dy), n->in[2])));
    return WF_OK;
}

const wf_op wf_op_where = WF_ELEMENTWISE(WF_DOMAIN_ONNX, "Where", 16, 3, infer, .grad = grad);
