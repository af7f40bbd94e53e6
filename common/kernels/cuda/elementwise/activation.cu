/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/elementwise/activation.cu - Relu, Sigmoid, Tanh, and their gradients, which
 * are made from dy and the output y, so that a plan may overwrite the input; and PRelu. */
#include "common/kernels/cuda/elementwise/each.h"

#include <cmath>

namespace
{

struct relu { /* a NaN stays one */
    template <class T> WF_CODE T operator()(T x) const
    {
        return x < T(0) ? T(0) : x;
    }
};

struct sigmoid {
    template <class T> WF_CODE T operator()(T x) const
    {
        return T(1) / (T(1) + std::exp(-x));
    }
};

struct hyperbolic_tangent {
    template <class T> WF_CODE T operator()(T x) const
    {
        return std::tanh(x);
    }
};

struct relu_grad {
    template <class T> WF_CODE T operator()(T dy, T y) const
    {
        return y > T(0) ? dy : T(0);
    }
};

struct sigmoid_grad {
    template <class T> WF_CODE T operator()(T dy, T y) const
    {
        return dy * y * (T(1) - y);
    }
};

struct tanh_grad {
    template <class T> WF_CODE T operator()(T dy, T y) const
    {
        return dy * (T(1) - y * y);
    }
};

struct p_relu {
    template <class T> WF_CODE T operator()(T x, T slope) const
    {
        return x < T(0) ? x * slope : x;
    }
};

template <class U> struct whole_p_relu { /* wraps */
    template <class T> WF_CODE T operator()(T x, T slope) const
    {
        return x < T(0) ? (T)((U)x * (U)slope) : x;
    }
};

} // namespace

#define ROW(name, dtype, T, F)                                                                     \
    {                                                                                              \
        .op = name, .dtypes = WF_TYPE(dtype), .in_place = 1, .run = wf_each<T, T, F>               \
    }
#define PAIR(name, domain_, dtype, T, F)                                                           \
    {                                                                                              \
        .op = name, .domain = domain_, .dtypes = WF_TYPE(dtype), .in_place = 3,                    \
        .run = wf_both<T, T, F>                                                                    \
    }
#define FLOATS(name, F)                                                                            \
    {.op = name,                                                                                   \
     .dtypes = WF_TYPE(WF_F32),                                                                    \
     .in_place = 1,                                                                                \
     .is_narrow = true,                                                                            \
     .run = wf_wide_or_narrow<wf_each<float, float, F>, wf_each<wf_narrow, wf_narrow, F>>},        \
        ROW(name, WF_F64, double, F)
#define PAIRS(name, domain_, F)                                                                    \
    {.op = name,                                                                                   \
     .domain = domain_,                                                                            \
     .dtypes = WF_TYPE(WF_F32),                                                                    \
     .in_place = 3,                                                                                \
     .is_narrow = true,                                                                            \
     .run = wf_wide_or_narrow<wf_both<float, float, F>, wf_both<wf_narrow, wf_narrow, F>>},        \
        PAIR(name, domain_, WF_F64, double, F)

WF_CUDA_ROWS(activation){
    FLOATS("Relu", relu),
    FLOATS("Sigmoid", sigmoid),
    FLOATS("Tanh", hyperbolic_tangent),
    PAIRS("ReluGrad", WF_DOMAIN_WEFT, relu_grad),
    PAIRS("SigmoidGrad", WF_DOMAIN_WEFT, sigmoid_grad),
    PAIRS("TanhGrad", WF_DOMAIN_WEFT, tanh_grad),
    PAIRS("PRelu", nullptr, p_relu),
    PAIR("PRelu", nullptr, WF_I32, int32_t, whole_p_relu<uint32_t>),
    PAIR("PRelu", nullptr, WF_I64, int64_t, whole_p_relu<uint64_t>),
    {},
};
