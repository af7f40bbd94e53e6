/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/rules/squares.c - a sum of squares that nobody else reads is one ReduceSumSquare:
 * the squares are never in memory. Its sum is of squares that were not rounded. */
#include "common/compile/rules/rules.h"

static wf_status sum(wf_rewrite *r)
{
    wf_emit e = wf_emit_begin(r->u->graph, r->n->name, r->err);
    const wf_node *n = r->n, *square = wf_rewrite_made_by(n, 0, "Mul");
    const wf_attr attrs[] = {
        wf_attr_int("keepdims", wf_node_int(n, "keepdims", 1)),
        wf_attr_int("noop_with_empty_axes", wf_node_int(n, "noop_with_empty_axes", 0))};
    wf_value *in[2] = {NULL, n->n_in > 1 ? n->in[1] : NULL};

    if (!square || square->in[0] != square->in[1] || !wf_rewrite_sole(r, n->in[0]) ||
        !wf_dtype_is_float(n->in[0]->dtype))
        return WF_OK;
    in[0] = square->in[0];
    r->instead = wf_emit_op(&e, "ReduceSumSquare", n->n_in, in, WF_COUNT(attrs), attrs);
    return wf_emit_end(&e);
}

const wf_rewrite_rule wf_rules_squares[] = {
    {WF_DOMAIN_ONNX, "ReduceSum", sum},
    {0},
};
