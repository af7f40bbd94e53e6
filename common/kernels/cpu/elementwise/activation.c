/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/elementwise/activation.c - Relu, Sigmoid, Tanh, and their gradients, which are
 * made from dy (x below) and the output y, so that a plan may overwrite the input; and PRelu, of x
 * and the slope y. */
#include "common/graph/graph.h"
#include "common/kernels/cpu/elementwise/broadcast.h"
#include "common/kernels/cpu/vmath.h"

#include <math.h>

/* A NaN stays one. */
WF_UNARY(relu_f32, float, float, x < 0 ? 0 : x)
WF_UNARY(relu_f64, double, double, x < 0 ? 0 : x)
WF_UNARY(sigmoid_f32, float, float, wf_sigmoid_f32(x))
WF_UNARY(sigmoid_f64, double, double, 1 / (1 + exp(-x)))
WF_UNARY(tanh_f32, float, float, wf_tanh_f32(x))
WF_UNARY(tanh_f64, double, double, tanh(x))

WF_BINARY(p_relu_f32, float, float, x < 0 ? x * y : x)
WF_BINARY(p_relu_f64, double, double, x < 0 ? x * y : x)
WF_BINARY(p_relu_i32, int32_t, int32_t, x < 0 ? (uint32_t)x * (uint32_t)y : (uint32_t)x)
WF_BINARY(p_relu_i64, int64_t, int64_t, x < 0 ? (uint64_t)x * (uint64_t)y : (uint64_t)x)

WF_BINARY(relu_grad_f32, float, float, y > 0 ? x : 0)
WF_BINARY(relu_grad_f64, double, double, y > 0 ? x : 0)
WF_BINARY(sigmoid_grad_f32, float, float, x *y *(1 - y))
WF_BINARY(sigmoid_grad_f64, double, double, x *y *(1 - y))
WF_BINARY(tanh_grad_f32, float, float, x *(1 - y * y))
WF_BINARY(tanh_grad_f64, double, double, x *(1 - y * y))

#define ROW(op, dtype, fn)                                                                         \
    WF_ROW(op, WF_TYPE(dtype), fn, .in_place = 1, .is_narrow = (dtype) == WF_F32)
#define GRAD(op, dtype, fn)                                                                        \
    WF_ROW(op, WF_TYPE(dtype), fn, .domain = WF_DOMAIN_WEFT, .prepare = wf_binary_prepare,         \
           .in_place = 3, .is_narrow = (dtype) == WF_F32)
#define ROWS(op, name)                                                                             \
    ROW(op, WF_F32, name##_f32), ROW(op, WF_F64, name##_f64),                                      \
        GRAD(op "Grad", WF_F32, name##_grad_f32), GRAD(op "Grad", WF_F64, name##_grad_f64)
#define P_RELU(dtype, fn)                                                                          \
    WF_ROW("PRelu", WF_TYPE(dtype), fn, .prepare = wf_binary_prepare, .in_place = 3)

const wf_kernel wf_kernels_activation[] = {
    ROWS("Relu", relu),         ROWS("Sigmoid", sigmoid),
    ROWS("Tanh", tanh),         P_RELU(WF_F32, p_relu_f32),
    P_RELU(WF_F64, p_relu_f64), P_RELU(WF_I32, p_relu_i32),
    P_RELU(WF_I64, p_relu_i64), {0},
};
