/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/elementwise/broadcast.h - elementwise kernels of one and two operands, from
 * one expression.
 *
 *     WF_BINARY(add_f32, float, float, x + y)
 *
 * makes the kernel function add_f32, whose loops vectorise (both operands along; one of them a
 * single element), which broadcasts, works in place, and splits large tensors over the pool. Rows
 * of binary kernels name wf_binary_prepare. Those of f32 take bfloat16 too (.is_narrow).
 */
#ifndef WF_KERNELS_CPU_BROADCAST_H
#define WF_KERNELS_CPU_BROADCAST_H

#include "common/kernels/cpu/cpu.h"
#include <stddef.h>
#include <stdint.h>

/* The two operands move by 0 or 1 element; so says every walk over contiguous operands. */
typedef void wf_binary_span(const void *a, int64_t step_a, const void *b, int64_t step_b, void *out,
                            int64_t n);
typedef void wf_unary_span(const void *x, void *out, int64_t n);

wf_prepare_fn wf_binary_prepare;
/* Runs a prepared binary kernel. `size` and `out_size`: bytes of an element. */
wf_status wf_binary_run(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                        wf_binary_span *span, size_t size, size_t out_size);
/* Flat, from input `i` of the same number of elements. */
wf_status wf_unary_run(const wf_run *run, const wf_tensor *in, wf_tensor *out, wf_unary_span *span,
                       size_t size, size_t out_size);

/* Any number of inputs, folded from the first to the last by `pair`, a kernel that WF_BINARY made.
 * Rows name wf_variadic_prepare. */
wf_prepare_fn wf_variadic_prepare;
wf_status wf_variadic_run(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                          wf_run_fn *pair, wf_err *err);

/* out[i] = expr, an R, of x = a[i] and y = b[i], which are Ts and move along, or of which one is a
 * single element. */
#define WF_BINARY_LOOPS(T, R, expr)                                                                \
    if (step_a && step_b) {                                                                        \
        WF_NO_OVERLAP                                                                              \
        for (int64_t i = 0; i < n; i++) {                                                          \
            T x = a[i], y = b[i];                                                                  \
            (void)y;                                                                               \
            out[i] = (R)(expr);                                                                    \
        }                                                                                          \
    } else if (step_a) {                                                                           \
        T y = b[0];                                                                                \
        (void)y;                                                                                   \
        WF_NO_OVERLAP                                                                              \
        for (int64_t i = 0; i < n; i++) {                                                          \
            T x = a[i];                                                                            \
            out[i] = (R)(expr);                                                                    \
        }                                                                                          \
    } else {                                                                                       \
        T x = a[0];                                                                                \
        WF_NO_OVERLAP                                                                              \
        for (int64_t i = 0; i < n; i++) {                                                          \
            T y = b[i * step_b];                                                                   \
            (void)y;                                                                               \
            out[i] = (R)(expr);                                                                    \
        }                                                                                          \
    }

#define WF_BINARY(name, T, R, expr)                                                                \
    WF_MULTIVERSION static void name##_loop(const T *a, int64_t step_a, const T *b,                \
                                            int64_t step_b, R *out, int64_t n)                     \
    {                                                                                              \
        WF_BINARY_LOOPS(T, R, expr)                                                                \
    }                                                                                              \
    static void name##_span(const void *a, int64_t step_a, const void *b, int64_t step_b,          \
                            void *out, int64_t n)                                                  \
    {                                                                                              \
        name##_loop(a, step_a, b, step_b, out, n);                                                 \
    }                                                                                              \
    static wf_status name(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],  \
                          wf_err *err)                                                             \
    {                                                                                              \
        (void)err;                                                                                 \
        return wf_binary_run(run, in, out, name##_span, sizeof(T), sizeof(R));                     \
    }

/* name_all: the kernel `name` over any number of inputs. */
#define WF_VARIADIC(name)                                                                          \
    static wf_status name##_all(const wf_run *run, const wf_tensor *const in[],                    \
                                wf_tensor *const out[], wf_err *err)                               \
    {                                                                                              \
        return wf_variadic_run(run, in, out, name, err);                                           \
    }

#define WF_UNARY(name, T, R, expr)                                                                 \
    WF_MULTIVERSION static void name##_loop(const T *a, R *out, int64_t n)                         \
    {                                                                                              \
        WF_NO_OVERLAP                                                                              \
        for (int64_t i = 0; i < n; i++) {                                                          \
            T x = a[i];                                                                            \
            out[i] = (R)(expr);                                                                    \
        }                                                                                          \
    }                                                                                              \
    static void name##_span(const void *a, void *out, int64_t n)                                   \
    {                                                                                              \
        name##_loop(a, out, n);                                                                    \
    }                                                                                              \
    static wf_status name(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],  \
                          wf_err *err)                                                             \
    {                                                                                              \
        (void)err;                                                                                 \
        return wf_unary_run(run, in[0], out[0], name##_span, sizeof(T), sizeof(R));                \
    }

#endif
