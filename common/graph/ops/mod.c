/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/mod.c - Mod: what is left of a / b, with the sign of b, or of a with attr fmod.
 * ONNX asks for fmod with floats; weft takes floats without it too, as the reference does. */
#include "common/graph/emit.h"
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

/* Integers only; as Python's %. */
static wf_elem rest(const wf_elem *a, const wf_elem *b)
{
    int64_t r;

    if (!a->is_known || !b->is_known || b->value == 0 || b->value == -1)
        return wf_elem_unknown();
    r = a->value % b->value;
    return wf_elem_of(r && (r < 0) != (b->value < 0) ? r + b->value : r);
}

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    return wf_infer_arithmetic(g, n, wf_node_int(n, "fmod", 0) ? NULL : rest, err);
}

/* y = a - q b for an integer q, which steps but has no slope: da = dy, db = -q dy. */
static wf_status grad(wf_grads *g, const wf_node *n, wf_err *err)
{
    wf_emit *e = wf_grads_emit(g);
    wf_value *a = n->in[0], *b = n->in[1], *dy = wf_grads_upstream(g, n, 0);

    (void)err;
    if (wf_grads_wanted(g, n, 0))
        WF_TRY(wf_grads_add(g, n, 0, wf_emit_sum_to(e, dy, a)));
    if (wf_grads_wanted(g, n, 1)) {
        wf_value *q = wf_emit_div(e, wf_emit_sub(e, n->out[0], a), b);

        WF_TRY(wf_grads_add(g, n, 1, wf_emit_sum_to(e, wf_emit_mul(e, dy, q), b)));
    }
    return wf_emit_end(e);
}

static const wf_attr_row attrs[] = {{"fmod", WF_ATTR_INT, false}, {0}};

const wf_op wf_op_mod =
    WF_ELEMENTWISE(WF_DOMAIN_ONNX, "Mod", 13, 2, infer, .attrs = attrs, .grad = grad);
