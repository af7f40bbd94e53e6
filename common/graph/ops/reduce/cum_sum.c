/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/reduce/cum_sum.c - CumSum along the axis that input 1 gives: element k is the
 * sum of the first k + 1, of the first k with attr exclusive, from the other end with attr reverse.
 */
#include "common/graph/emit.h"
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    const wf_value *axis = n->in[1];
    int64_t dims[WF_MAX_RANK];
    wf_elem elems[WF_MAX_CARRIED];
    uint32_t count, at;

    WF_TRY(wf_need_int(n, 1, "the axis", err));
    if (wf_value_dims(axis, dims) && (axis->rank > 1 || (axis->rank == 1 && dims[0] != 1)))
        return wf_fail(err, WF_SHAPE, NULL, "the axis must be one number");
    if (n->in[0]->rank >= 0 && wf_value_elems(axis, elems, &count) && count && elems[0].is_known)
        WF_TRY(wf_axis_number(elems[0].value, (uint32_t)n->in[0]->rank, &at, err));
    return wf_infer_like_number(g, n, err);
}

/* Element k went into every sum that follows it: the same sums from the other end. */
static wf_status grad(wf_grads *g, const wf_node *n, wf_err *err)
{
    wf_value *in[] = {wf_grads_upstream(g, n, 0), n->in[1]};
    wf_attr attrs[] = {wf_attr_int("exclusive", wf_node_int(n, "exclusive", 0)),
                       wf_attr_int("reverse", !wf_node_int(n, "reverse", 0))};

    (void)err;
    return wf_grads_add(g, n, 0, wf_emit_op(wf_grads_emit(g), "CumSum", 2, in, 2, attrs));
}

static const wf_attr_row attrs[] = {
    {"exclusive", WF_ATTR_INT, false}, {"reverse", WF_ATTR_INT, false}, {0}};

const wf_op wf_op_cum_sum = WF_FOLDABLE(WF_DOMAIN_ONNX, "CumSum", 14, 2, 2, infer,
                                        .no_grad_in = 1u << 1, .attrs = attrs, .grad = grad);
