/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/kernel_curves.c - functions of one number, in f32 and f64, against their definition in
 * long double; and their gradients against the difference quotient of that definition. */
#include "tests/unit/numbers.h"

typedef number curve_fn(number x, double a, double b);

static const double points[] = {-100,  -88,  -30,   -12.5, -5.0, -3.5, -2.75, -1.5, -1.0625,
                                -0.75, -0.3, -0.01, -1e-4, 1e-4, 0.01, 0.3,   0.75, 1.0625,
                                1.5,   2.75, 3.5,   5.0,   12.5, 30,   88,    100};

static wf_tensor *points_of(wf_dtype dtype)
{
    wf_tensor *t = new_tensor(dtype, DIMS(40 * WF_COUNT(points)));

    for (int64_t i = 0; i < wf_elems(t); i++)
        put(dtype, t->data, i, (number)(float)points[(size_t)i % WF_COUNT(points)]);
    return t;
}

/* Equal but for some roundings, or beyond what the dtype holds. */
static bool is_near(wf_dtype dtype, number is, number must, number ulps)
{
    number epsilon = dtype == WF_F32 ? (number)FLT_EPSILON : (number)DBL_EPSILON;
    number most = dtype == WF_F32 ? (number)FLT_MAX : (number)DBL_MAX;
    number tiny = dtype == WF_F32 ? (number)FLT_MIN : (number)DBL_MIN;

    if (must != must)
        return is != is;
    if (fabsl(must) > most)
        return is == copysignl((number)INFINITY, must);
    return fabsl(is - must) <= ulps * epsilon * fabsl(must) + tiny;
}

static void check_points(const char *op, uint32_t n_attrs, const wf_attr attrs[], curve_fn *f,
                         double a, double b, number ulps)
{
    for (int d = 0; d < 2; d++) {
        wf_dtype dtype = d ? WF_F64 : WF_F32;
        wf_tensor *x = points_of(dtype), *y = run_op(op, n_attrs, attrs, 1, &x, 0);

        for (int64_t i = 0; i < wf_elems(x); i++) {
            number at = get(dtype, x->data, i), is = get(dtype, y->data, i), must = f(at, a, b);

            /* An exponential tail turns a rounding of x into x of them, and e^(-x^2) into x^2. */
            if (!is_near(dtype, is, must, ulps * (1 + at * at / 16)))
                fail_msg("%s of %s at %.9Lg is %.21Lg, not %.21Lg", op, wf_dtype_name(dtype), at,
                         is, must);
        }
        wf_tensor_free(&x);
        wf_tensor_free(&y);
    }
}

/* ---- functions of libm's kind ---- */

#define OF(name)                                                                                   \
    static number name##_(number x, double a, double b)                                            \
    {                                                                                              \
        (void)a, (void)b;                                                                          \
        return name##l(x);                                                                         \
    }
OF(exp)
OF(log)
OF(erf)
OF(sqrt)
OF(ceil)
OF(floor)
OF(sin)
OF(cos)
OF(tan)
OF(asin)
OF(acos)
OF(atan)
OF(sinh)
OF(cosh)
OF(tanh)
OF(asinh)
OF(acosh)
OF(atanh)

static number reciprocal(number x, double a, double b)
{
    (void)a, (void)b;
    return 1 / x;
}

static number sigmoid(number x, double a, double b)
{
    (void)a, (void)b;
    return 1 / (1 + expl(-x));
}

static void functions_are_those_of_libm(void **state)
{
    static const struct {
        const char *op;
        curve_fn *f;
    } rows[] = {
        {"Exp", exp_},     {"Log", log_},     {"Erf", erf_},        {"Sqrt", sqrt_},
        {"Ceil", ceil_},   {"Floor", floor_}, {"Sin", sin_},        {"Cos", cos_},
        {"Tan", tan_},     {"Asin", asin_},   {"Acos", acos_},      {"Atan", atan_},
        {"Sinh", sinh_},   {"Cosh", cosh_},   {"Tanh", tanh_},      {"Asinh", asinh_},
        {"Acosh", acosh_}, {"Atanh", atanh_}, {"Sigmoid", sigmoid}, {"Reciprocal", reciprocal},
    };

    (void)state;
    for (size_t i = 0; i < WF_COUNT(rows); i++)
        check_points(rows[i].op, 0, NULL, rows[i].f, 0, 0, 2);
}

/* ---- activations, as ONNX defines them ---- */

static number celu(number x, double a, double b)
{
    (void)b;
    return fmaxl(0, x) + fminl(0, (number)a * expm1l(x / (number)a));
}

static number elu(number x, double a, double b)
{
    (void)b;
    return x < 0 ? (number)a * expm1l(x) : x;
}

static number gelu(number x, double a, double b)
{
    (void)a, (void)b;
    return x * erfcl(-x / sqrtl(2)) / 2;
}

static number gelu_tanh(number x, double a, double b)
{
    number inner = 0.797884560802865355879892119868763737L * (x + 0.044715L * x * x * x);

    (void)a, (void)b;
    return x / (1 + expl(-2 * inner)); /* 0.5 x (1 + tanh(inner)), without the difference */
}

static number hard_sigmoid(number x, double a, double b)
{
    return fmaxl(0, fminl(1, (number)a * x + (number)b));
}

static number hard_swish(number x, double a, double b)
{
    (void)a, (void)b;
    return x * hard_sigmoid(x, (double)(1.0f / 6), 0.5);
}

static number leaky_relu(number x, double a, double b)
{
    (void)b;
    return x < 0 ? (number)a * x : x;
}

static number softplus(number x, double a, double b)
{
    (void)a, (void)b;
    return fmaxl(x, 0) + log1pl(expl(-fabsl(x)));
}

static number mish(number x, double a, double b)
{
    return x * tanhl(softplus(x, a, b));
}

static number selu(number x, double a, double b)
{
    return (number)b * elu(x, a, b);
}

static number shrink(number x, double lambd, double bias)
{
    return x < -(number)lambd ? x + (number)bias : x > (number)lambd ? x - (number)bias : 0;
}

static number softsign(number x, double a, double b)
{
    (void)a, (void)b;
    return x / (1 + fabsl(x));
}

static number swish(number x, double a, double b)
{
    return x * sigmoid((number)a * x, a, b);
}

static number thresholded_relu(number x, double a, double b)
{
    (void)b;
    return x > (number)a ? x : 0;
}

/* Corners lie between the points, so that the quotient is the slope. */
static const struct activation {
    const char *op, *grad;
    curve_fn *f;
    const char *a_name, *b_name;
    float a, b;
} activations[] = {
    {"Celu", "CeluGrad", celu, "alpha", NULL, 1.5f, 0},
    {"Elu", "EluGrad", elu, "alpha", NULL, 0.75f, 0},
    {"Gelu", "GeluGrad", gelu, NULL, NULL, 0, 0},
    {"HardSigmoid", "HardSigmoidGrad", hard_sigmoid, "alpha", "beta", 0.25f, 0.4f},
    {"HardSwish", "HardSwishGrad", hard_swish, NULL, NULL, 0, 0},
    {"LeakyRelu", "LeakyReluGrad", leaky_relu, "alpha", NULL, 0.125f, 0},
    {"Mish", "MishGrad", mish, NULL, NULL, 0, 0},
    {"Selu", "SeluGrad", selu, "alpha", "gamma", 1.75f, 1.125f},
    {"Shrink", "ShrinkGrad", shrink, "lambd", "bias", 0.5f, 0.25f},
    {"Softplus", "SoftplusGrad", softplus, NULL, NULL, 0, 0},
    {"Softsign", "SoftsignGrad", softsign, NULL, NULL, 0, 0},
    {"Swish", "SwishGrad", swish, "alpha", NULL, 1.25f, 0},
    {"ThresholdedRelu", "ThresholdedReluGrad", thresholded_relu, "alpha", NULL, 0.5f, 0},
};

static uint32_t attrs_of(const struct activation *row, wf_attr attrs[2])
{
    uint32_t n = 0;

    if (row->a_name)
        attrs[n++] = wf_attr_float(row->a_name, row->a);
    if (row->b_name)
        attrs[n++] = wf_attr_float(row->b_name, row->b);
    return n;
}

static void activations_are_onnxs(void **state)
{
    wf_attr attrs[2] = {wf_attr_string("approximate", "tanh")};

    (void)state;
    check_points("Gelu", 1, attrs, gelu_tanh, 0, 0, 32);
    for (size_t i = 0; i < WF_COUNT(activations); i++) {
        const struct activation *row = &activations[i];

        check_points(row->op, attrs_of(row, attrs), attrs, row->f, (double)row->a, (double)row->b,
                     32);
    }
}

/* (f(x+h) - f(x-h)) / 2h with h = 2^-16: an error of h^2 f''' / 6, and 2^-64 / h of rounding. */
static void slopes_are_difference_quotients(void **state)
{
    (void)state;
    for (size_t r = 0; r < WF_COUNT(activations); r++)
        for (int d = 0; d < 2; d++) {
            const struct activation *row = &activations[r];
            wf_dtype dtype = d ? WF_F64 : WF_F32;
            wf_tensor *in[2] = {points_of(dtype), points_of(dtype)}, *dx;
            wf_attr attrs[2];
            const number h = 0x1p-16L;

            for (int64_t i = 0; i < wf_elems(in[0]); i++)
                put(dtype, in[0]->data, i, 1 + (number)(i % 5) / 4);
            dx = run_op(row->grad, attrs_of(row, attrs), attrs, 2, in, 0);
            for (int64_t i = 0; i < wf_elems(dx); i++) {
                number x = get(dtype, in[1]->data, i), dy = get(dtype, in[0]->data, i);
                double a = (double)row->a, b = (double)row->b;
                number must = dy * (row->f(x + h, a, b) - row->f(x - h, a, b)) / (2 * h);
                number is = get(dtype, dx->data, i);

                if (!(fabsl(is - must) <= (d ? 2e-9L : 2e-6L) * (1 + fabsl(must))))
                    fail_msg("%s of %s at %.9Lg is %.15Lg, not %.15Lg", row->grad,
                             wf_dtype_name(dtype), x, is, must);
            }
            wf_tensor_free(&in[0]);
            wf_tensor_free(&in[1]);
            wf_tensor_free(&dx);
        }
}

static void infinity_ends_where_the_curve_does(void **state)
{
    static const struct {
        const char *op;
        double below, above; /* at -inf and inf */
    } rows[] = {
        {"Celu", -1, INFINITY},
        {"Elu", -1, INFINITY},
        {"HardSigmoid", 0, 1},
        {"Softplus", 0, INFINITY},
        {"Sigmoid", 0, 1},
        {"Tanh", -1, 1},
        {"Erf", -1, 1},
        {"Exp", 0, INFINITY},
        {"Atan", -1.5707963267948966, 1.5707963267948966},
        {"LeakyRelu", -INFINITY, INFINITY},
        {"ThresholdedRelu", 0, INFINITY},
    };

    (void)state;
    for (size_t r = 0; r < WF_COUNT(rows); r++)
        for (int d = 0; d < 2; d++) {
            wf_dtype dtype = d ? WF_F64 : WF_F32;
            wf_tensor *x = new_tensor(dtype, DIMS(3)), *y;

            put(dtype, x->data, 0, -(number)INFINITY);
            put(dtype, x->data, 1, (number)INFINITY);
            put(dtype, x->data, 2, (number)NAN);
            y = run_op(rows[r].op, 0, NULL, 1, &x, 0);
            if (!is_near(dtype, get(dtype, y->data, 0), (number)rows[r].below, 4) ||
                !(get(dtype, y->data, 1) == (number)rows[r].above ||
                  is_near(dtype, get(dtype, y->data, 1), (number)rows[r].above, 4)))
                fail_msg("%s of %s: %Lg and %Lg", rows[r].op, wf_dtype_name(dtype),
                         get(dtype, y->data, 0), get(dtype, y->data, 1));
            if (strcmp(rows[r].op, "ThresholdedRelu") != 0 &&
                get(dtype, y->data, 2) == get(dtype, y->data, 2))
                fail_msg("%s of NaN is %Lg", rows[r].op, get(dtype, y->data, 2));
            wf_tensor_free(&x);
            wf_tensor_free(&y);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_are_those_of_libm),
        cmocka_unit_test(activations_are_onnxs),
        cmocka_unit_test(slopes_are_difference_quotients),
        cmocka_unit_test(infinity_ends_where_the_curve_does),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
