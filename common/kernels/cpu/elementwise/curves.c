/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/elementwise/curves.c - activations that are a curve of x with one or two
 * numbers as attributes (a and b below), and their gradients dx = dy y'(x).
 *
 * Where a curve has a corner, the slope there is the one that PyTorch has. What is exponential in
 * f32 runs in double inside (vmath.h), so that no difference loses its digits.
 */
#include "common/graph/op.h"
#include "common/kernels/cpu/cpu.h"
#include "common/kernels/cpu/narrow.h"
#include "common/kernels/cpu/vmath.h"
#include "common/kernels/shape/curve.h"

#include <math.h>
#include <string.h>

/* Values of x [n] when dy is NULL, else dy times the slopes. */
typedef void curve_fn(const void *dy, const void *x, void *out, int64_t n, double a, double b);

typedef struct job {
    const char *dy, *x;
    char *out;
    size_t size;
    curve_fn *fn;
    wf_curve numbers;
    bool dy_is_bf16, x_is_bf16, out_is_bf16;
} job;

/* A tile at a time, of tensors of which some are of bfloat16. */
static void narrow_range(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    float rooms[3][WF_NARROW_TILE];

    for (int64_t at = begin; at < end; at += WF_NARROW_TILE) {
        int64_t n = WF_MIN(end - at, (int64_t)WF_NARROW_TILE);
        float *out = wf_wide_room(j->out, j->out_is_bf16, at, rooms[2]);

        j->fn(j->dy ? wf_wide(j->dy, j->dy_is_bf16, at, n, rooms[0]) : NULL,
              wf_wide(j->x, j->x_is_bf16, at, n, rooms[1]), out, n, j->numbers.a, j->numbers.b);
        wf_narrow(j->out, j->out_is_bf16, at, n, out);
    }
}

static void range(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    size_t at = (size_t)begin * j->size;

    j->fn(j->dy ? j->dy + at : NULL, j->x + at, j->out + at, end - begin, j->numbers.a,
          j->numbers.b);
}

/* Inputs are x, or dy and x. */
static void run_curve(const wf_run *run, const wf_tensor *const in[], wf_tensor *out, curve_fn *fn,
                      size_t size)
{
    const wf_tensor *dy = in[1] ? in[0] : NULL, *x = in[1] ? in[1] : in[0];
    job j = {.dy = wf_data_of(dy),
             .x = x->data,
             .out = out->data,
             .size = size,
             .fn = fn,
             .numbers = *(const wf_curve *)run->state,
             .dy_is_bf16 = wf_is_bf16(dy),
             .x_is_bf16 = wf_is_bf16(x),
             .out_is_bf16 = wf_is_bf16(out)};
    bool is_narrow = j.dy_is_bf16 || j.x_is_bf16 || j.out_is_bf16;

    wf_pool_for(run->pool, wf_elems(out), WF_GRAIN / 4, is_narrow ? narrow_range : range, &j);
}

#define LOOP(expr)                                                                                 \
    WF_NO_OVERLAP                                                                                  \
    for (int64_t i = 0; i < n; i++) {                                                              \
        __typeof__(*in) x = in[i];                                                                 \
        out[i] = (__typeof__(*in))(expr);                                                          \
    }
#define CURVE_OF(name, T, value, slope)                                                            \
    WF_MULTIVERSION static void name##_loop(const T *dy, const T *in, T *out, int64_t n, T a, T b) \
    {                                                                                              \
        (void)a, (void)b;                                                                          \
        if (dy)                                                                                    \
            LOOP(dy[i] * (slope))                                                                  \
        else                                                                                       \
            LOOP(value)                                                                            \
    }                                                                                              \
    static void name##_curve(const void *dy, const void *x, void *out, int64_t n, double a,        \
                             double b)                                                             \
    {                                                                                              \
        name##_loop(dy, x, out, n, (T)a, (T)b);                                                    \
    }                                                                                              \
    static wf_status name(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],  \
                          wf_err *err)                                                             \
    {                                                                                              \
        (void)err;                                                                                 \
        run_curve(run, in, out[0], name##_curve, sizeof(T));                                       \
        return WF_OK;                                                                              \
    }
#define CURVE(name, value, slope)                                                                  \
    CURVE_OF(name##_f32, float, value, slope)                                                      \
    CURVE_OF(name##_f64, double, value, slope)

/* The functions that the formulas below are made of, by the type of x. */
#define EXP(x) _Generic((x), float : exp_of_f32, double : exp)(x)
#define EXPM1(x) _Generic((x), float : expm1_of_f32, double : expm1)(x)
#define SIGMOID(x) _Generic((x), float : wf_sigmoid_f32, double : sigmoid_of_f64)(x)
#define SOFTPLUS(x) _Generic((x), float : softplus_of_f32, double : softplus_of_f64)(x)
#define GELU(x) _Generic((x), float : gelu_of_f32, double : gelu_of_f64)(x)
#define GELU_SLOPE(x) _Generic((x), float : gelu_slope_of_f32, double : gelu_slope_of_f64)(x)

static inline double exp_of_f32(float x)
{
    return wf_exp_wide((double)x);
}

static inline double expm1_of_f32(float x)
{
    return wf_expm1_wide((double)x);
}

static inline double softplus_of_f32(float x)
{
    return wf_softplus_wide((double)x);
}

static inline double softplus_of_f64(double x)
{
    return fmax(x, 0) + log1p(exp(-fabs(x)));
}

static inline double sigmoid_of_f64(double x)
{
    return 1 / (1 + exp(-x));
}

/* x times the share of a standard normal distribution below it, and the slope of that, the share
 * and x times the density. */
static inline float gelu_of_f32(float x)
{
    float bell;

    return x * wf_normal_f32(x, &bell);
}

static inline double gelu_of_f64(double x)
{
    return x * (0.5 * erfc(-x * 0.7071067811865476));
}

static inline float gelu_slope_of_f32(float x)
{
    float bell, share = wf_normal_f32(x, &bell);

    return share + x * (bell * 0.398942280f);
}

static inline double gelu_slope_of_f64(double x)
{
    return 0.5 * erfc(-x * 0.7071067811865476) + x * (0.3989422804014327 * exp(-0.5 * x * x));
}

/* x tanh(ln(1 + e^x)) = x w / (w + 2) with w = e (e + 2), e = e^x; past 30 it is x. */
#define MISH(exponential)                                                                          \
    double e = exponential(x > 30 ? 30 : x), w = e * (e + 2);                                      \
                                                                                                   \
    return x * (w / (w + 2))
#define MISH_SLOPE(exponential)                                                                    \
    double e = exponential(x > 30 ? 30 : x), w = e * (e + 2), down = 1 / (w + 2);                  \
                                                                                                   \
    return w * down + x * (4 * e * (1 + e) * down * down)

static inline double mish_of(double x)
{
    MISH(wf_exp_wide);
}

static inline double mish_slope_of(double x)
{
    MISH_SLOPE(wf_exp_wide);
}

static inline double mish_of_f64(double x)
{
    MISH(exp);
}

static inline double mish_slope_of_f64(double x)
{
    MISH_SLOPE(exp);
}

/* 0.5 (1 + tanh(u)) is the sigmoid of 2 u: with u = sqrt(2 / pi) (x + 0.044715 x^3). In f32 the
 * error of e^(-2 u) grows with u, where the result goes to 0 or to x: it stays under 1e-6 of x. */
#define SHARE(T, suffix, EXP)                                                                      \
    static inline T share_of_##suffix(T x)                                                         \
    {                                                                                              \
        return 1 / (1 + EXP((T)-1.5957691216057308 * (x + (T)0.044715 * x * x * x)));              \
    }                                                                                              \
    /* Past 100 the share is 0 or 1, and x^2 must not become infinite beside it. */                \
    static inline T tanh_gelu_slope_##suffix(T x)                                                  \
    {                                                                                              \
        T c = x > 100 ? 100 : x < -100 ? -100 : x, share = share_of_##suffix(c);                   \
                                                                                                   \
        return share + c * share * (1 - share) *                                                   \
                           ((T)1.5957691216057308 * (1 + (T)(3 * 0.044715) * c * c));              \
    }
SHARE(float, f32, wf_exp_f32)
SHARE(double, f64, exp)

/* v cut to [0, 1]. */
#define WITHIN(v) ((v) < 0 ? 0 : (v) > 1 ? 1 : (v))
CURVE(celu, (x > 0 ? x : a * EXPM1(x / a)), (x > 0 ? 1 : EXP(x / a)))
CURVE(elu, (x > 0 ? x : a * EXPM1(x)), (x > 0 ? 1 : a * EXP(x)))
CURVE(hard_sigmoid, WITHIN(a *x + b), (a * x + b > 0 && a * x + b < 1 ? a : 0))
CURVE(hard_swish, x *WITHIN(a *x + b), (a * x + b < 0 ? 0 : a * x + b > 1 ? 1 : 2 * a * x + b))
CURVE(leaky_relu, (x < 0 ? a * x : x), (x > 0 ? 1 : a))
CURVE_OF(mish_f32, float, mish_of((double)x), mish_slope_of((double)x))
CURVE_OF(mish_f64, double, mish_of_f64(x), mish_slope_of_f64(x))
CURVE(normal_gelu, GELU(x), GELU_SLOPE(x))
CURVE(selu, (x > 0 ? b * x : b * a * EXPM1(x)), (x > 0 ? b : b * a * EXP(x)))
CURVE(shrink, (x < -a ? x + b : x > a ? x - b : 0), (x < -a || x > a ? 1 : 0))
CURVE(softplus, SOFTPLUS(x), SIGMOID(x))
CURVE(softsign, x / (1 + (x < 0 ? -x : x)), 1 / ((1 + (x < 0 ? -x : x)) * (1 + (x < 0 ? -x : x))))
CURVE(swish, x *SIGMOID(a *x), SIGMOID(a *x) * (1 + a * x * (1 - SIGMOID(a * x))))
CURVE_OF(tanh_gelu_f32, float, x *share_of_f32(x), tanh_gelu_slope_f32(x))
CURVE_OF(tanh_gelu_f64, double, x *share_of_f64(x), tanh_gelu_slope_f64(x))
CURVE(thresholded_relu, (x > a ? x : 0), (x > a ? 1 : 0))

#define GELU_KERNEL(type)                                                                          \
    static wf_status gelu_##type(const wf_run *run, const wf_tensor *const in[],                   \
                                 wf_tensor *const out[], wf_err *err)                              \
    {                                                                                              \
        return strcmp(wf_node_string(run->node, "approximate", "none"), "tanh") == 0               \
                   ? tanh_gelu_##type(run, in, out, err)                                           \
                   : normal_gelu_##type(run, in, out, err);                                        \
    }
GELU_KERNEL(f32)
GELU_KERNEL(f64)

#define ROW(op, dtype, fn)                                                                         \
    WF_ROW(op, WF_TYPE(dtype), fn, .prepare = wf_curve_prepare, .in_place = 1,                     \
           .is_narrow = (dtype) == WF_F32),                                                        \
        WF_ROW(op "Grad", WF_TYPE(dtype), fn, .domain = WF_DOMAIN_WEFT,                            \
               .prepare = wf_curve_prepare, .in_place = 3, .is_narrow = (dtype) == WF_F32)
#define ROWS(op, name) ROW(op, WF_F32, name##_f32), ROW(op, WF_F64, name##_f64)

const wf_kernel wf_kernels_curves[] = {
    ROWS("Celu", celu),
    ROWS("Elu", elu),
    ROWS("Gelu", gelu),
    ROWS("HardSigmoid", hard_sigmoid),
    ROWS("HardSwish", hard_swish),
    ROWS("LeakyRelu", leaky_relu),
    ROWS("Mish", mish),
    ROWS("Selu", selu),
    ROWS("Shrink", shrink),
    ROWS("Softplus", softplus),
    ROWS("Softsign", softsign),
    ROWS("Swish", swish),
    ROWS("ThresholdedRelu", thresholded_relu),
    {0},
};
