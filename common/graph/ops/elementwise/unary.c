/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/elementwise/unary.c - Abs, Acos, Acosh, Asin, Asinh, Atan, Atanh, Ceil, Cos,
 * Cosh, Erf, Exp, Floor, IsInf, IsNaN, Log, Neg, Reciprocal, Round, Sign, Sin, Sinh, Sqrt and
 * Tan. */
#include "common/graph/emit.h"
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

/* Abs: y = |x|; dx = dy sign(x), 0 at 0 as PyTorch has it. */

static wf_status grad_abs(wf_grads *g, const wf_node *n, wf_err *err)
{
    wf_emit *e = wf_grads_emit(g);
    wf_value *dy = wf_grads_upstream(g, n, 0), *x = n->in[0];
    wf_value *zero = wf_emit_scalar(e, x->dtype, 0);
    wf_value *negative =
        wf_emit_where(e, wf_emit_binary(e, "Less", x, zero), wf_emit_neg(e, dy), zero);

    (void)err;
    return wf_grads_add(g, n, 0,
                        wf_emit_where(e, wf_emit_binary(e, "Greater", x, zero), dy, negative));
}

const wf_op wf_op_abs =
    WF_ELEMENTWISE(WF_DOMAIN_ONNX, "Abs", 13, 1, wf_infer_like_number, .grad = grad_abs);

/* Erf: the error function; dx = dy 2 / sqrt(pi) e^(-x^2). */

static wf_status grad_erf(wf_grads *g, const wf_node *n, wf_err *err)
{
    wf_emit *e = wf_grads_emit(g);
    wf_value *x = n->in[0];
    wf_value *bell = wf_emit_exp(e, wf_emit_neg(e, wf_emit_mul(e, x, x)));

    (void)err;
    bell = wf_emit_scale(e, bell, 1.1283791670955126);
    return wf_grads_add(g, n, 0, wf_emit_mul(e, wf_grads_upstream(g, n, 0), bell));
}

const wf_op wf_op_erf =
    WF_ELEMENTWISE(WF_DOMAIN_ONNX, "Erf", 13, 1, wf_infer_like_float, .grad = grad_erf);

/* Exp: y = e^x; dx = dy y. */

static wf_status grad_exp(wf_grads *g, const wf_node *n, wf_err *err)
{
    wf_emit *e = wf_grads_emit(g);
    wf_value *dy = wf_grads_upstream(g, n, 0);

    (void)err;
    return wf_grads_add(g, n, 0, wf_emit_mul(e, dy, n->out[0]));
}

const wf_op wf_op_exp =
    WF_ELEMENTWISE(WF_DOMAIN_ONNX, "Exp", 13, 1, wf_infer_like_float, .grad = grad_exp);

/* IsInf: true where x is infinite, of the signs that attrs detect_positive and detect_negative (1
 * by default) ask for. */

static wf_status infer_is_inf(wf_graph *g, wf_node *n, wf_err *err)
{
    (void)g;
    WF_TRY(wf_need_float(n, 0, "X", err));
    wf_out_like(n, 0, WF_BOOL, n->in[0]);
    return WF_OK;
}

static const wf_attr_row attrs[] = {
    {"detect_negative", WF_ATTR_INT, false}, {"detect_positive", WF_ATTR_INT, false}, {0}};

const wf_op wf_op_is_inf =
    WF_ELEMENTWISE(WF_DOMAIN_ONNX, "IsInf", 10, 1, infer_is_inf, .no_grad_in = 1, .attrs = attrs);

/* IsNaN: true where x is no number. */

static wf_status infer_is_nan(wf_graph *g, wf_node *n, wf_err *err)
{
    (void)g;
    WF_TRY(wf_need_float(n, 0, "X", err));
    wf_out_like(n, 0, WF_BOOL, n->in[0]);
    return WF_OK;
}

const wf_op wf_op_is_nan =
    WF_ELEMENTWISE(WF_DOMAIN_ONNX, "IsNaN", 13, 1, infer_is_nan, .no_grad_in = 1);

/* Log: y = ln x; dx = dy / x. */

static wf_status grad_log(wf_grads *g, const wf_node *n, wf_err *err)
{
    wf_emit *e = wf_grads_emit(g);
    wf_value *dy = wf_grads_upstream(g, n, 0);

    (void)err;
    return wf_grads_add(g, n, 0, wf_emit_div(e, dy, n->in[0]));
}

const wf_op wf_op_log =
    WF_ELEMENTWISE(WF_DOMAIN_ONNX, "Log", 13, 1, wf_infer_like_float, .grad = grad_log);

/* Neg: y = -x. */

static wf_status grad_neg(wf_grads *g, const wf_node *n, wf_err *err)
{
    wf_emit *e = wf_grads_emit(g);
    wf_value *dy = wf_grads_upstream(g, n, 0);

    (void)err;
    return wf_grads_add(g, n, 0, wf_emit_neg(e, dy));
}

const wf_op wf_op_neg =
    WF_ELEMENTWISE(WF_DOMAIN_ONNX, "Neg", 13, 1, wf_infer_like_number, .grad = grad_neg);

/* Reciprocal: y = 1 / x; dx = -dy y^2. */

static wf_status grad_reciprocal(wf_grads *g, const wf_node *n, wf_err *err)
{
    wf_emit *e = wf_grads_emit(g);
    wf_value *dy = wf_grads_upstream(g, n, 0);
    wf_value *y = n->out[0];

    (void)err;
    return wf_grads_add(g, n, 0, wf_emit_neg(e, wf_emit_mul(e, dy, wf_emit_mul(e, y, y))));
}

const wf_op wf_op_reciprocal = WF_ELEMENTWISE(WF_DOMAIN_ONNX, "Reciprocal", 13, 1,
                                              wf_infer_like_float, .grad = grad_reciprocal);

/* Ceil, Floor, Round (halves to even) and Sign: steps, whose slope is 0 wherever there is one, so
 * that no gradient passes them. */

const wf_op wf_op_ceil =
    WF_ELEMENTWISE(WF_DOMAIN_ONNX, "Ceil", 13, 1, wf_infer_like_float, .no_grad_in = 1u << 0);
const wf_op wf_op_floor =
    WF_ELEMENTWISE(WF_DOMAIN_ONNX, "Floor", 13, 1, wf_infer_like_float, .no_grad_in = 1u << 0);
const wf_op wf_op_round =
    WF_ELEMENTWISE(WF_DOMAIN_ONNX, "Round", 11, 1, wf_infer_like_float, .no_grad_in = 1u << 0);
const wf_op wf_op_sign =
    WF_ELEMENTWISE(WF_DOMAIN_ONNX, "Sign", 13, 1, wf_infer_like_number, .no_grad_in = 1u << 0);

/* Sqrt: y = x^(1/2); dx = dy / (2 y). */

static wf_status grad_sqrt(wf_grads *g, const wf_node *n, wf_err *err)
{
    wf_emit *e = wf_grads_emit(g);
    wf_value *dy = wf_grads_upstream(g, n, 0);

    (void)err;
    return wf_grads_add(g, n, 0, wf_emit_div(e, wf_emit_scale(e, dy, 0.5), n->out[0]));
}

const wf_op wf_op_sqrt =
    WF_ELEMENTWISE(WF_DOMAIN_ONNX, "Sqrt", 13, 1, wf_infer_like_float, .grad = grad_sqrt);

/* The circular and hyperbolic functions and their inverses, with the slopes of the textbooks. */

/* What a slope is made of: dy, the input x, the output y. */
typedef wf_value *slope_fn(wf_emit *e, wf_value *dy, wf_value *x, wf_value *y);

static wf_status pass_back(wf_grads *g, const wf_node *n, slope_fn *slope)
{
    wf_value *dx = slope(wf_grads_emit(g), wf_grads_upstream(g, n, 0), n->in[0], n->out[0]);

    return wf_grads_add(g, n, 0, dx);
}

/* a + sign * x^2 */
static wf_value *with_square(wf_emit *e, double a, double sign, wf_value *x)
{
    wf_value *square = wf_emit_mul(e, x, x), *one = wf_emit_scalar(e, x->dtype, a);

    return sign > 0 ? wf_emit_add(e, one, square) : wf_emit_sub(e, one, square);
}

static wf_value *slope_sin(wf_emit *e, wf_value *dy, wf_value *x, wf_value *y)
{
    (void)y;
    return wf_emit_mul(e, dy, wf_emit_unary(e, "Cos", x));
}

static wf_value *slope_cos(wf_emit *e, wf_value *dy, wf_value *x, wf_value *y)
{
    (void)y;
    return wf_emit_neg(e, wf_emit_mul(e, dy, wf_emit_unary(e, "Sin", x)));
}

static wf_value *slope_tan(wf_emit *e, wf_value *dy, wf_value *x, wf_value *y)
{
    (void)x;
    return wf_emit_mul(e, dy, with_square(e, 1, 1, y));
}

static wf_value *slope_asin(wf_emit *e, wf_value *dy, wf_value *x, wf_value *y)
{
    (void)y;
    return wf_emit_div(e, dy, wf_emit_unary(e, "Sqrt", with_square(e, 1, -1, x)));
}

static wf_value *slope_acos(wf_emit *e, wf_value *dy, wf_value *x, wf_value *y)
{
    return wf_emit_neg(e, slope_asin(e, dy, x, y));
}

static wf_value *slope_atan(wf_emit *e, wf_value *dy, wf_value *x, wf_value *y)
{
    (void)y;
    return wf_emit_div(e, dy, with_square(e, 1, 1, x));
}

static wf_value *slope_sinh(wf_emit *e, wf_value *dy, wf_value *x, wf_value *y)
{
    (void)y;
    return wf_emit_mul(e, dy, wf_emit_unary(e, "Cosh", x));
}

static wf_value *slope_cosh(wf_emit *e, wf_value *dy, wf_value *x, wf_value *y)
{
    (void)y;
    return wf_emit_mul(e, dy, wf_emit_unary(e, "Sinh", x));
}

static wf_value *slope_asinh(wf_emit *e, wf_value *dy, wf_value *x, wf_value *y)
{
    (void)y;
    return wf_emit_div(e, dy, wf_emit_unary(e, "Sqrt", with_square(e, 1, 1, x)));
}

/* (x - 1) (x + 1) and not x^2 - 1, which near 1 loses its digits. */
static wf_value *slope_acosh(wf_emit *e, wf_value *dy, wf_value *x, wf_value *y)
{
    wf_value *one = wf_emit_scalar(e, x->dtype, 1);
    wf_value *product = wf_emit_mul(e, wf_emit_sub(e, x, one), wf_emit_add(e, x, one));

    (void)y;
    return wf_emit_div(e, dy, wf_emit_unary(e, "Sqrt", product));
}

static wf_value *slope_atanh(wf_emit *e, wf_value *dy, wf_value *x, wf_value *y)
{
    (void)y;
    return wf_emit_div(e, dy, with_square(e, 1, -1, x));
}

#define ROW(id, name, since)                                                                       \
    static wf_status grad_##id(wf_grads *g, const wf_node *n, wf_err *err)                         \
    {                                                                                              \
        (void)err;                                                                                 \
        return pass_back(g, n, slope_##id);                                                        \
    }                                                                                              \
    const wf_op wf_op_##id =                                                                       \
        WF_ELEMENTWISE(WF_DOMAIN_ONNX, name, since, 1, wf_infer_like_float, .grad = grad_##id);

ROW(acos, "Acos", 7)
ROW(acosh, "Acosh", 9)
ROW(asin, "Asin", 7)
ROW(asinh, "Asinh", 9)
ROW(atan, "Atan", 7)
ROW(atanh, "Atanh", 9)
ROW(cos, "Cos", 7)
ROW(cosh, "Cosh", 9)
ROW(sin, "Sin", 7)
ROW(sinh, "Sinh", 9)
ROW(tan, "Tan", 7)
