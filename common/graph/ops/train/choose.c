/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/train/choose.c - ai.weft Choose: the results of one of the two branches of an
 * If. */
#include "common/graph/emit.h"
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

/* What is certain of a result that is a or b. */
static void merge(wf_node *n, uint32_t i, const wf_value *a, const wf_value *b)
{
    wf_axis axes[WF_MAX_RANK];

    wf_out_unknown(n, i, a->dtype);
    if (a->rank < 0 || a->rank != b->rank)
        return;
    for (int32_t k = 0; k < a->rank; k++)
        axes[k] = wf_axis_same(&a->axes[k], &b->axes[k]) ? a->axes[k] : wf_axis_unknown(-1);
    wf_out_axes(n, i, a->dtype, (uint32_t)a->rank, axes);
}

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    wf_elem condition[WF_MAX_CARRIED], elems[WF_MAX_CARRIED];
    uint32_t count;
    bool known;

    WF_TRY(wf_need_dtype(n, 0, WF_BOOL, "the condition", err));
    if (n->n_in != 1 + 2 * n->n_out)
        return wf_fail(err, WF_SHAPE, NULL, "%u results of two branches are %u inputs", n->n_out,
                       n->n_in - 1);
    known = wf_value_elems(n->in[0], condition, &count) && count == 1 && condition[0].is_known;
    for (uint32_t i = 0; i < n->n_out; i++) {
        const wf_value *a = n->in[1 + i], *b = n->in[1 + n->n_out + i];

        if (!known) {
            WF_TRY(wf_need_same_dtype(n, 1 + i, 1 + n->n_out + i, err));
            merge(n, i, a, b);
            continue;
        }
        a = condition[0].value ? a : b;
        wf_out_like(n, i, a->dtype, a);
        if (wf_value_elems(a, elems, &count))
            WF_TRY(wf_out_carry(g, n, i, count, elems, err));
    }
    return WF_OK;
}

static wf_status grad(wf_grads *g, const wf_node *n, wf_err *err)
{
    wf_emit *e = wf_grads_emit(g);

    for (uint32_t i = 0; i < n->n_out; i++) {
        wf_value *dy = wf_grads_upstream(g, n, i), *zero;

        if (!dy)
            continue;
        zero = wf_emit_scalar(e, dy->dtype, 0);
        for (uint32_t k = 0; k < 2; k++) {
            uint32_t at = 1 + k * n->n_out + i;
            wf_value *part;

            if (!wf_grads_wanted(g, n, at))
                continue;
            if (!wf_same_shape(n->in[at], n->out[i]))
                return wf_fail(err, WF_UNSUPPORTED, "make the condition known before the run",
                               "there is no gradient of branches of different shapes");
            part = wf_emit_where(e, n->in[0], k ? zero : dy, k ? dy : zero);
            WF_TRY(wf_grads_add(g, n, at, wf_emit_reshape_like(e, part, dy)));
        }
    }
    return wf_emit_end(e);
}

const wf_op wf_op_choose = WF_OPERATION(
    WF_DOMAIN_WEFT, "Choose", 1, 3, WF_ANY_NUMBER, 1, WF_ANY_NUMBER, WF_OP_FOLDABLE, infer,
    .means = "(condition, a1, ... an, b1, ... bn) -> y1, ... yn; a where the "
             "condition, one bool, is true, and b otherwise: what stands for an If",
    .no_grad_in = 1u << 0, .grad = grad);
