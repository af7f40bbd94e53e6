/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/elementwise/curves.cu - activations that are a curve of x with one or two
 * numbers as attributes (a and b below), and their gradients dx = dy y'(x).
 *
 * Where a curve has a corner, the slope there is the one of the cpu's kernel. The cpu computes what
 * is exponential in f32 in double; here f32 stays f32, with forms of the formulas that lose no
 * digits by a difference, since many GPUs are slow in double. */
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

/* The share of a standard normal distribution below x. */
template <class T> WF_CODE T normal_share(T x)
{
    return T(0.5) * std::erfc(x * T(-0.7071067811865476));
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
    return sigmoid_of(T(1.5957691216057308) * (x + T(0.044715) * x * x * x));
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
CURVE(normal_gelu, (x * normal_share(x)),
      (normal_share(x) + x * (T(0.3989422804014327) * std::exp(T(-0.5) * x * x))))
CURVE(selu, (x > T(0) ? b * x : b * a * std::expm1(x)), (x > T(0) ? b : b * a * std::exp(x)))
CURVE(shrink, (x < -a ? x + b : x > a ? x - b : T(0)), (x < -a || x > a ? T(1) : T(0)))
CURVE(softplus, ((x > T(0) ? x : T(0)) + std::log1p(std::exp(-std::fabs(x)))), sigmoid_of(x))
CURVE(softsign, (x / (T(1) + std::fabs(x))), softsign_slope(x))
CURVE(swish, (x * sigmoid_of(a * x)), swish_slope(x, a))
CURVE(tanh_gelu, (x * tanh_share(x)), tanh_gelu_slope(x))
CURVE(thresholded_relu, (x > a ? x : T(0)), (x > a ? T(1) : T(0)))

/* Values without dy. */
template <class T, class C>
__global__ void curve(wf_from<T> dy, wf_from<T> x, wf_to<T> out, int64_t n, wf_number<T> a,
                      wf_number<T> b)
{
    for (int64_t i = wf_first(); i < n; i += wf_all())
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

    if (n == 0)
        return WF_OK;
    return wf_launch(run, run->node->op->name, curve<T, C>, wf_blocks(run, n), err, wf_read<T>(dy),
                     wf_read<T>(x), wf_write<T>(out[0]), n, (wf_number<T>)numbers->a,
                     (wf_number<T>)numbers->b);
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
