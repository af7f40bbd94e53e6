/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/trigonometric.c - the circular and hyperbolic functions and their inverses, with
 * the slopes of the textbooks. */
#include "common/graph/emit.h"
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

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
