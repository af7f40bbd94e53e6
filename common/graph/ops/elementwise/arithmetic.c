/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/elementwise/arithmetic.c - Add, Div, Mean, Mod, Mul, Sub and Sum. */
#include "common/graph/emit.h"
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

/* An operation of a and b, which `fn` follows, with its gradients from dy, a, b and the result y;
 * db has the shape of b. */
#define ARITHMETIC(id, name, fn, da, db)                                                           \
    static wf_status infer_##id(wf_graph *g, wf_node *n, wf_err *err)                              \
    {                                                                                              \
        return wf_infer_arithmetic(g, n, fn, err);                                                 \
    }                                                                                              \
    static wf_status grad_##id(wf_grads *g, const wf_node *n, wf_err *err)                         \
    {                                                                                              \
        wf_emit *e = wf_grads_emit(g);                                                             \
        wf_value *a = n->in[0], *b = n->in[1], *y = n->out[0], *dy = wf_grads_upstream(g, n, 0);   \
                                                                                                   \
        (void)err, (void)y;                                                                        \
        if (wf_grads_wanted(g, n, 0))                                                              \
            WF_TRY(wf_grads_add(g, n, 0, wf_emit_sum_to(e, da, a)));                               \
        return wf_grads_wanted(g, n, 1) ? wf_grads_add(g, n, 1, db) : WF_OK;                       \
    }                                                                                              \
    const wf_op wf_op_##id =                                                                       \
        WF_ELEMENTWISE(WF_DOMAIN_ONNX, name, 14, 2, infer_##id, .grad = grad_##id);

/* The sum comes first where it can: b may be smaller. Integers divide as C does. */
ARITHMETIC(add, "Add", wf_elem_add, dy, wf_emit_sum_to(e, dy, b))
ARITHMETIC(sub, "Sub", wf_elem_sub, dy, wf_emit_neg(e, wf_emit_sum_to(e, dy, b)))
ARITHMETIC(mul, "Mul", wf_elem_mul, wf_emit_mul(e, dy, b),
           wf_emit_sum_to(e, wf_emit_mul(e, dy, a), b))
ARITHMETIC(div, "Div", wf_elem_div, wf_emit_div(e, dy, b),
           wf_emit_neg(e, wf_emit_sum_to(e, wf_emit_div(e, wf_emit_mul(e, dy, y), b), b)))

/* Mean and Sum of any number of inputs, broadcast. */

static wf_status infer_sums(wf_graph *g, wf_node *n, wf_err *err)
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
    const wf_op wf_op_##id =                                                                       \
        WF_OPERATION(WF_DOMAIN_ONNX, name_, 13, 1, WF_ANY_NUMBER, 1, 1,                            \
                     WF_OP_ELEMENTWISE | WF_OP_FOLDABLE, infer_sums, .grad = grad_##id);

ROW(mean, "Mean")
ROW(sum, "Sum")

/* Mod: what is left of a / b, with the sign of b, or of a with attr fmod. ONNX asks for fmod with
 * floats; weft takes floats without it too, as the reference does. */

/* Integers only; as Python's %. */
static wf_elem rest(const wf_elem *a, const wf_elem *b)
{
    int64_t r;

    if (!a->is_known || !b->is_known || b->value == 0 || b->value == -1)
        return wf_elem_unknown();
    r = a->value % b->value;
    return wf_elem_of(r && (r < 0) != (b->value < 0) ? r + b->value : r);
}

static wf_status infer_mod(wf_graph *g, wf_node *n, wf_err *err)
{
    return wf_infer_arithmetic(g, n, wf_node_int(n, "fmod", 0) ? NULL : rest, err);
}

/* y = a - q b for an integer q, which steps but has no slope: da = dy, db = -q dy. */
static wf_status grad_mod(wf_grads *g, const wf_node *n, wf_err *err)
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
    WF_ELEMENTWISE(WF_DOMAIN_ONNX, "Mod", 13, 2, infer_mod, .attrs = attrs, .grad = grad_mod);
