/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/elementwise/unary.cu - the operations of the cpu's file of that name. */
#include "common/kernels/cuda/elementwise/each.h"

#include <cmath>

#define FUNCTION(name, expression)                                                                 \
    struct name {                                                                                  \
        template <class T> WF_CODE T operator()(T x) const                                         \
        {                                                                                          \
            return (T)(expression);                                                                \
        }                                                                                          \
    };

namespace
{

FUNCTION(negate, -x)
FUNCTION(wrapping_negate, T(0) - x)
FUNCTION(absolute, std::fabs(x))
FUNCTION(wrapping_absolute, x >> (8 * sizeof x - 1) ? T(0) - x : x)
FUNCTION(same, x)
FUNCTION(root, std::sqrt(x))
FUNCTION(reciprocal, T(1) / x)
FUNCTION(sign, x > T(0) ? T(1) : x < T(0) ? T(-1) : x) /* a NaN stays one */
FUNCTION(is_some, x != 0)
FUNCTION(exponential, std::exp(x))
FUNCTION(logarithm, std::log(x))
FUNCTION(error_function, std::erf(x))
FUNCTION(ceiling, std::ceil(x))
FUNCTION(floor_of, std::floor(x))
FUNCTION(rounded, std::rint(x)) /* halves to even */
FUNCTION(sine, std::sin(x))
FUNCTION(cosine, std::cos(x))
FUNCTION(tangent, std::tan(x))
FUNCTION(arc_sine, std::asin(x))
FUNCTION(arc_cosine, std::acos(x))
FUNCTION(arc_tangent, std::atan(x))
FUNCTION(sinh_of, std::sinh(x))
FUNCTION(cosh_of, std::cosh(x))
FUNCTION(asinh_of, std::asinh(x))
FUNCTION(acosh_of, std::acosh(x))
FUNCTION(atanh_of, std::atanh(x))

struct is_nan {
    template <class T> WF_CODE uint8_t operator()(T x) const
    {
        return x != x;
    }
};

template <bool ABOVE, bool BELOW> struct is_infinite {
    template <class T> WF_CODE uint8_t operator()(T x) const
    {
        return (ABOVE && x == T(INFINITY)) || (BELOW && x == -T(INFINITY));
    }
};

template <class T>
wf_status is_inf(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                 wf_err *err)
{
    const bool below = wf_node_int(run->node, "detect_negative", 1) != 0;

    if (wf_node_int(run->node, "detect_positive", 1) != 0)
        return below ? wf_each<T, uint8_t, is_infinite<true, true>>(run, in, out, err)
                     : wf_each<T, uint8_t, is_infinite<true, false>>(run, in, out, err);
    return below ? wf_each<T, uint8_t, is_infinite<false, true>>(run, in, out, err)
                 : wf_each<T, uint8_t, is_infinite<false, false>>(run, in, out, err);
}

} // namespace

#define ROW(name, dtype, T, F)                                                                     \
    {                                                                                              \
        .op = name, .dtypes = WF_TYPE(dtype), .in_place = 1, .run = wf_each<T, T, F>               \
    }
#define FLOATS(name, F) ROW(name, WF_F32, float, F), ROW(name, WF_F64, double, F)
#define QUESTION(name, dtype, T, F)                                                                \
    {                                                                                              \
        .op = name, .dtypes = WF_TYPE(dtype), .run = wf_each<T, uint8_t, F>                        \
    }

/* Negating and taking absolute values wraps, so it is done unsigned. */
WF_CUDA_ROWS(unary){
    FLOATS("Neg", negate),
    ROW("Neg", WF_I32, uint32_t, wrapping_negate),
    ROW("Neg", WF_I64, uint64_t, wrapping_negate),
    FLOATS("Abs", absolute),
    ROW("Abs", WF_I32, uint32_t, wrapping_absolute),
    ROW("Abs", WF_I64, uint64_t, wrapping_absolute),
    ROW("Abs", WF_U8, uint8_t, same),
    FLOATS("Sqrt", root),
    FLOATS("Reciprocal", reciprocal),
    FLOATS("Exp", exponential),
    FLOATS("Log", logarithm),
    FLOATS("Erf", error_function),
    FLOATS("Ceil", ceiling),
    FLOATS("Floor", floor_of),
    FLOATS("Round", rounded),
    FLOATS("Sin", sine),
    FLOATS("Cos", cosine),
    FLOATS("Tan", tangent),
    FLOATS("Asin", arc_sine),
    FLOATS("Acos", arc_cosine),
    FLOATS("Atan", arc_tangent),
    FLOATS("Sinh", sinh_of),
    FLOATS("Cosh", cosh_of),
    FLOATS("Asinh", asinh_of),
    FLOATS("Acosh", acosh_of),
    FLOATS("Atanh", atanh_of),
    FLOATS("Sign", sign),
    ROW("Sign", WF_I32, int32_t, sign),
    ROW("Sign", WF_I64, int64_t, sign),
    ROW("Sign", WF_U8, uint8_t, is_some),
    {.op = "IsInf", .dtypes = WF_TYPE(WF_F32), .run = is_inf<float>},
    {.op = "IsInf", .dtypes = WF_TYPE(WF_F64), .run = is_inf<double>},
    QUESTION("IsNaN", WF_F32, float, is_nan),
    QUESTION("IsNaN", WF_F64, double, is_nan),
    {},
};
