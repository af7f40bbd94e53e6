/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/elementwise/curves.cu - activations that are a curve of x with one or two
 * numbers as attributes (a and b below), and their gradients dx = dy y'(x).
 *
 * Where a curve has a corner, the slope there is the one of the cpu's kernel. The cpu computes what
 * is exponential in f32 in double; here f32 stays f32, with forms of the formulas that lose no
 * digits by a difference, since many GPUs are slow in double. Gelu, of which a GPT has many, takes
 * the GPU's own exponential and reciprocal: they lose a few more bits where the curve's rounding of
 * x costs as many. */
#include "common/kernels/cuda/narrow.h"
extern "C" {
#include "common/kernels/shape/curve.h"
}

#include <cmath>
#include <cstring>

namespace
{

template <class T> WF_CODE T sigmoid_of(T x)
{
    return T(1) / (T(1) + std::exp(-x));
}

/* e^x and 1 / x for x > 0, by one instruction each for f32. */
WF_CODE double fast_exp(double x)
{
    return std::exp(x);
}

WF_CODE float fast_exp(float x)
{
    return __expf(x);
}

WF_CODE double fast_reciprocal(double x)
{
    return 1 / x;
}

WF_CODE float fast_reciprocal(float x)
{
    return __fdividef(1.0f, x);
}

/* Of a standard normal distribution the share below x, and the density at x. */
template <class T> struct normal {
    T share, density;
};

WF_CODE normal<double> normal_at(double x)
{
    return {0.5 * std::erfc(x * -0.7071067811865476), 0.3989422804014327 * std::exp(-0.5 * x * x)};
}

/* The share below -|x| is e^(-x^2 / 2) t p(t) with t = 1 / (1 + 0.45 |x| / sqrt(2)): p is a
 * polynomial fitted by weighted least squares to within 3.3e-8 of that share, relatively, for all
 * x; roundings of its evaluation make 4e-7 of it. */
WF_CODE normal<float> normal_at(float x)
{
    const float e = fast_exp(-0.5f * x * x);
    const float t = fast_reciprocal(1.0f + 0.31819806f * std::fabs(x));
    float p = -0.020695468f;

    p = p * t + 0.09534358f;
    p = p * t - 0.15029061f;
    p = p * t + 0.07119988f;
    p = p * t - 0.011178643f;
    p = p * t + 0.059975114f;
    p = p * t + 0.08762608f;
    p = p * t + 0.11413582f;
    p = p * t + 0.12694158f;
    p = p * t + 0.12694266f;
    p *= t * e;
    return {x > 0 ? 1 - p : p, 0.3989422804f * e};
}

template <class T> WF_CODE T normal_gelu_slope(T x)
{
    const normal<T> n = normal_at(x);

    return n.share + x * n.density;
}

/* x tanh(ln(1 + e^x)) = x w / (w + 2) with w = e (e + 2), e = e^x; past 30 it is x. */
template <class T> WF_CODE T mish_of(T x)
{
    T e = std::exp(x > T(30) ? T(30) : x), w = e * (e + T(2));

    return x * (w / (w + T(2)));
}

template <class T> WF_CODE T mish_slope(T x)
{
    T e = std::exp(x > T(30) ? T(30) : x), w = e * (e + T(2)), down = T(1) / (w + T(2));

    return w * down + x * (T(4) * e * (T(1) + e) * down * down);
}

template <class T> WF_CODE T swish_slope(T x, T a)
{
    T share = sigmoid_of(a * x);

    return share * (T(1) + a * x * (T(1) - share));
}

template <class T> WF_CODE T softsign_slope(T x)
{
    T down = T(1) + std::fabs(x);

    return T(1) / (down * down);
}

template <class T> WF_CODE T hard_swish_slope(T x, T a, T b)
{
    T v = a * x + b;

    return v < T(0) ? T(0) : v > T(1) ? T(1) : T(2) * a * x + b;
}

/* 0.5 (1 + tanh(u)) is the sigmoid of 2 u: with u = sqrt(2 / pi) (x + 0.044715 x^3). */
template <class T> WF_CODE T tanh_share(T x)
{
    return fast_reciprocal(T(1) + fast_exp(T(-1.5957691216057308) * (x + T(0.044715) * x * x * x)));
}

/* Past 100 the share is 0 or 1, and x^2 must not become infinite beside it. */
template <class T> WF_CODE T tanh_gelu_slope(T x)
{
    T c = x > T(100) ? T(100) : x < T(-100) ? T(-100) : x, share = tanh_share(c);

    return share +
           c * share * (T(1) - share) * (T(1.5957691216057308) * (T(1) + T(3 * 0.044715) * c * c));
}

/* v cut to [0, 1]; a NaN stays one. */
template <class T> WF_CODE T within(T v)
{
    return v < T(0) ? T(0) : v > T(1) ? T(1) : v;
}

#define CURVE(name, of_x, of_slope)                                                                \
    struct name {                                                                                  \
        template <class T> static WF_CODE T value(T x, T a, T b)                                   \
        {                                                                                          \
            (void)a, (void)b;                                                                      \
            return of_x;                                                                           \
        }                                                                                          \
        template <class T> static WF_CODE T slope(T x, T a, T b)                                   \
        {                                                                                          \
            (void)a, (void)b;                                                                      \
            return of_slope;                                                                       \
        }                                                                                          \
    };

CURVE(celu, (x > T(0) ? x : a * std::expm1(x / a)), (x > T(0) ? T(1) : std::exp(x / a)))
CURVE(elu, (x > T(0) ? x : a * std::expm1(x)), (x > T(0) ? T(1) : a * std::exp(x)))
CURVE(hard_sigmoid, (within(a * x + b)), (a * x + b > T(0) && a * x + b < T(1) ? a : T(0)))
CURVE(hard_swish, (x * within(a * x + b)), hard_swish_slope(x, a, b))
CURVE(leaky_relu, (x < T(0) ? a * x : x), (x > T(0) ? T(1) : a))
CURVE(mish, mish_of(x), mish_slope(x))
CURVE(normal_gelu, (x * normal_at(x).share), normal_gelu_slope(x))
CURVE(selu, (x > T(0) ? b * x : b * a * std::expm1(x)), (x > T(0) ? b : b * a * std::exp(x)))
CURVE(shrink, (x < -a ? x + b : x > a ? x - b : T(0)), (x < -a || x > a ? T(1) : T(0)))
CURVE(softplus, ((x > T(0) ? x : T(0)) + std::log1p(std::exp(-std::fabs(x)))), sigmoid_of(x))
CURVE(softsign, (x / (T(1) + std::fabs(x))), softsign_slope(x))
CURVE(swish, (x * sigmoid_of(a * x)), swish_slope(x, a))
CURVE(tanh_gelu, (x * tanh_share(x)), tanh_gelu_slope(x))
CURVE(thresholded_relu, (x > a ? x : T(0)), (x > a ? T(1) : T(0)))

template <class T> struct loaded {
    decltype(wf_load_four(wf_from<T>{}, 0)) dy, x;
};

/* Values without dy. The first fours of n elements, and then the others. */
template <class T, class C>
__global__ void curve(wf_from<T> dy, wf_from<T> x, wf_to<T> out, int64_t n, int64_t fours,
                      wf_number<T> a, wf_number<T> b)
{
    wf_each_ahead(
        wf_first(), wf_all(), fours,
        [&](int64_t i) {
            loaded<T> all = {};

            all.x = wf_load_four(x, 4 * i);
            if (dy)
                all.dy = wf_load_four(dy, 4 * i);
            return all;
        },
        [&](int64_t i, const loaded<T> &all) {
            const auto at = wf_wide_four(x, all.x);
            auto made = wf_wide_four(dy, all.dy);

            WF_UNROLL
            for (int k = 0; k < 4; k++)
                made.v[k] = dy ? made.v[k] * C::slope(at.v[k], a, b) : C::value(at.v[k], a, b);
            wf_store_four(out, 4 * i, made);
        });
    for (int64_t i = 4 * fours + wf_first(); i < n; i += wf_all())
        out[i] = dy ? dy[i] * C::slope(x[i], a, b) : C::value(x[i], a, b);
}

/* Inputs are x, or dy and x. */
template <class T, class C>
wf_status run_curve(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                    wf_err *err)
{
    const wf_curve *numbers = static_cast<const wf_curve *>(run->state);
    const wf_tensor *dy = in[1] ? in[0] : nullptr, *x = in[1] ? in[1] : in[0];
    int64_t n = wf_elems(out[0]);
    int64_t fours = wf_has_fours(dy) && wf_has_fours(x) && wf_has_fours(out[0]) ? n / 4 : 0;

    if (n == 0)
        return WF_OK;
    return wf_launch(run, run->node->op->name, curve<T, C>, wf_blocks(run, fours ? fours : n), err,
                     wf_read<T>(dy), wf_read<T>(x), wf_write<T>(out[0]), n, fours,
                     (wf_number<T>)numbers->a, (wf_number<T>)numbers->b);
}

template <class T>
wf_status run_gelu(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                   wf_err *err)
{
    return std::strcmp(wf_node_string(run->node, "approximate", "none"), "tanh") == 0
               ? run_curve<T, tanh_gelu>(run, in, out, err)
               : run_curve<T, normal_gelu>(run, in, out, err);
}

} // namespace

#define ROW(name, dtype, narrow, ...)                                                              \
    {.op = name,                                                                                   \
     .dtypes = WF_TYPE(dtype),                                                                     \
     .in_place = 1,                                                                                \
     .is_narrow = narrow,                                                                          \
     .prepare = wf_curve_prepare,                                                                  \
     .run = __VA_ARGS__},                                                                          \
    {                                                                                              \
        .op = name "Grad", .domain = WF_DOMAIN_WEFT, .dtypes = WF_TYPE(dtype), .in_place = 3,      \
        .is_narrow = narrow, .prepare = wf_curve_prepare, .run = __VA_ARGS__                       \
    }
#define ROWS(name, C)                                                                              \
    ROW(name, WF_F32, true, wf_wide_or_narrow<run_curve<float, C>, run_curve<wf_narrow, C>>),      \
        ROW(name, WF_F64, false, run_curve<double, C>)

WF_CUDA_ROWS(curves){
    ROWS("Celu", celu),
    ROWS("Elu", elu),
    ROW("Gelu", WF_F32, true, wf_wide_or_narrow<run_gelu<float>, run_gelu<wf_narrow>>),
    ROW("Gelu", WF_F64, false, run_gelu<double>),
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
    {},
};
