/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/elementwise/unary.c - Abs, Acos, Acosh, Asin, Asinh, Atan, Atanh, Ceil, Cos,
 * Cosh, Erf, Exp, Floor, IsInf, IsNaN, Log, Neg, Reciprocal, Round, Sign, Sin, Sinh, Sqrt and
 * Tan. */
#include "common/graph/emit.h"
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

/* A function of one number, and its gradient `dx` as a formula of e, dy, x and y. */
#define FUNCTION(id, name, since, infer, dx)                                                       \
    static wf_status grad_##id(wf_grads *g, const wf_node *n, wf_err *err)                         \
    {                                                                                              \
        wf_emit *e = wf_grads_emit(g);                                                             \
        wf_value *dy = wf_grads_upstream(g, n, 0), *x = n->in[0], *y = n->out[0];                  \
                                                                                                   \
        (void)err, (void)x, (void)y;                                                               \
        return wf_grads_add(g, n, 0, dx);                                                          \
    }                                                                                              \
    const wf_op wf_op_##id =                                                                       \
        WF_ELEMENTWISE(WF_DOMAIN_ONNX, name, since, 1, infer, .grad = grad_##id);
#define FLOATS(id, name, since, dx) FUNCTION(id, name, since, wf_infer_like_float, dx)

/* dy sign(x), 0 at 0 as PyTorch has it. */
static wf_value *by_sign(wf_emit *e, wf_value *dy, wf_value *x)
{
    wf_value *zero = wf_emit_scalar(e, x->dtype, 0);
    wf_value *negative =
        wf_emit_where(e, wf_emit_binary(e, "Less", x, zero), wf_emit_neg(e, dy), zero);

    return wf_emit_where(e, wf_emit_binary(e, "Greater", x, zero), dy, negative);
}

/* 2 / sqrt(pi) e^(-x^2) */
static wf_value *bell(wf_emit *e, wf_value *x)
{
    return wf_emit_scale(e, wf_emit_exp(e, wf_emit_neg(e, wf_emit_mul(e, x, x))),
                         1.1283791670955126);
}

static wf_value *square(wf_emit *e, wf_value *x)
{
    return wf_emit_mul(e, x, x);
}

static wf_value *root(wf_emit *e, wf_value *x)
{
    return wf_emit_unary(e, "Sqrt", x);
}

/* 1 + x, and 1 - x */
static wf_value *one_and(wf_emit *e, wf_value *x)
{
    return wf_emit_add(e, wf_emit_scalar(e, x->dtype, 1), x);
}

static wf_value *one_less(wf_emit *e, wf_value *x)
{
    return wf_emit_sub(e, wf_emit_scalar(e, x->dtype, 1), x);
}

/* (x - 1) (x + 1) and not x^2 - 1, which near 1 loses its digits. */
static wf_value *square_less_one(wf_emit *e, wf_value *x)
{
    wf_value *one = wf_emit_scalar(e, x->dtype, 1);

    return wf_emit_mul(e, wf_emit_sub(e, x, one), wf_emit_add(e, x, one));
}

FUNCTION(abs, "Abs", 13, wf_infer_like_number, by_sign(e, dy, x))
FLOATS(acos, "Acos", 7, wf_emit_neg(e, wf_emit_div(e, dy, root(e, one_less(e, square(e, x))))))
FLOATS(acosh, "Acosh", 9, wf_emit_div(e, dy, root(e, square_less_one(e, x))))
FLOATS(asin, "Asin", 7, wf_emit_div(e, dy, root(e, one_less(e, square(e, x)))))
FLOATS(asinh, "Asinh", 9, wf_emit_div(e, dy, root(e, one_and(e, square(e, x)))))
FLOATS(atan, "Atan", 7, wf_emit_div(e, dy, one_and(e, square(e, x))))
FLOATS(atanh, "Atanh", 9, wf_emit_div(e, dy, one_less(e, square(e, x))))
FLOATS(cos, "Cos", 7, wf_emit_neg(e, wf_emit_mul(e, dy, wf_emit_unary(e, "Sin", x))))
FLOATS(cosh, "Cosh", 9, wf_emit_mul(e, dy, wf_emit_unary(e, "Sinh", x)))
FLOATS(erf, "Erf", 13, wf_emit_mul(e, dy, bell(e, x)))
FLOATS(exp, "Exp", 13, wf_emit_mul(e, dy, y))
FLOATS(log, "Log", 13, wf_emit_div(e, dy, x))
FUNCTION(neg, "Neg", 13, wf_infer_like_number, wf_emit_neg(e, dy))
FLOATS(reciprocal, "Reciprocal", 13, wf_emit_neg(e, wf_emit_mul(e, dy, square(e, y))))
FLOATS(sin, "Sin", 7, wf_emit_mul(e, dy, wf_emit_unary(e, "Cos", x)))
FLOATS(sinh, "Sinh", 9, wf_emit_mul(e, dy, wf_emit_unary(e, "Cosh", x)))
FLOATS(sqrt, "Sqrt", 13, wf_emit_div(e, wf_emit_scale(e, dy, 0.5), y))
FLOATS(tan, "Tan", 7, wf_emit_mul(e, dy, one_and(e, square(e, y))))

/* Steps, whose slope is 0 wherever there is one, so that no gradient passes them. Round takes
 * halves to even. */
#define STEP(id, name, since, infer)                                                               \
    const wf_op wf_op_##id = WF_ELEMENTWISE(WF_DOMAIN_ONNX, name, since, 1, infer, .no_grad_in = 1);

STEP(ceil, "Ceil", 13, wf_infer_like_float)
STEP(floor, "Floor", 13, wf_infer_like_float)
STEP(round, "Round", 11, wf_infer_like_float)
STEP(sign, "Sign", 13, wf_infer_like_number)

/* IsInf, of the signs that attrs detect_positive and detect_negative (1 by default) ask for, and
 * IsNaN. */

static wf_status infer_question(wf_graph *g, wf_node *n, wf_err *err)
{
    (void)g;
    WF_TRY(wf_need_float(n, 0, "X", err));
    wf_out_like(n, 0, WF_BOOL, n->in[0]);
    return WF_OK;
}

static const wf_attr_row inf_attrs[] = {
    {"detect_negative", WF_ATTR_INT, false}, {"detect_positive", WF_ATTR_INT, false}, {0}};

const wf_op wf_op_is_inf = WF_ELEMENTWISE(WF_DOMAIN_ONNX, "IsInf", 10, 1, infer_question,
                                          .no_grad_in = 1, .attrs = inf_attrs);
const wf_op wf_op_is_nan =
    WF_ELEMENTWISE(WF_DOMAIN_ONNX, "IsNaN", 13, 1, infer_question, .no_grad_in = 1);
