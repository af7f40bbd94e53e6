/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/cpu.h - what the cpu kernels share. For this folder. */
#ifndef WF_KERNELS_CPU_CPU_H
#define WF_KERNELS_CPU_CPU_H

#include "common/base/cc.h"
#include "common/base/size.h"
#include "common/base/status.h"
#include "common/kernels/kernel.h"
#include "common/kernels/shape/axes.h"
#include "common/kernels/shape/numbers.h"
#include "common/tensor/tensor.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Elements of cheap arithmetic below which a second thread costs more than it brings. */
enum { WF_GRAIN = 32768 };

/* A row of the table for ONNX's operation, typed by input 0. */
#define WF_ROW(op_, dtypes_, run_, ...)                                                            \
    {                                                                                              \
        .op = op_, .dtypes = dtypes_, .run = run_, __VA_ARGS__                                     \
    }

/* A row of ONNX's operation whose output has the bytes of input 0. A plan shares the memory and
 * does not run it; where it must, it copies. */
#define WF_VIEW(op) WF_ROW(op, WF_TYPES_ALL, wf_run_view, .is_view = true, .in_place = 1)
wf_run_fn wf_run_view;

/* A function for each size of element, for what moves elements whatever their dtype: M(T) defines
 * fn_T. WF_BY_SIZE calls the one of `size` bytes. */
#define WF_EACH_SIZE(M) M(uint8_t) M(uint16_t) M(uint32_t) M(uint64_t)
#define WF_BY_SIZE(size, fn, ...)                                                                  \
    ((size) == 4   ? fn##_uint32_t(__VA_ARGS__)                                                    \
     : (size) == 8 ? fn##_uint64_t(__VA_ARGS__)                                                    \
     : (size) == 2 ? fn##_uint16_t(__VA_ARGS__)                                                    \
                   : fn##_uint8_t(__VA_ARGS__))
/* The same for each type of number; WF_BY_NUMBER is the function. */
#define WF_EACH_NUMBER(M) M(float) M(double) M(int32_t) M(int64_t) M(uint8_t)
#define WF_BY_NUMBER(dtype, fn)                                                                    \
    ((dtype) == WF_F32   ? fn##_float                                                              \
     : (dtype) == WF_F64 ? fn##_double                                                             \
     : (dtype) == WF_I32 ? fn##_int32_t                                                            \
     : (dtype) == WF_I64 ? fn##_int64_t                                                            \
                         : fn##_uint8_t)

/* run gets n times `bytes` of workspace. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_prep_workspace(wf_prep *prep, size_t n, size_t bytes, wf_err *err);
/* NULL of an absent tensor. */
static inline void *wf_data_of(const wf_tensor *t)
{
    return t ? t->data : NULL;
}

/* y += x, of n f32 or f64. */
void wf_add(wf_dtype dtype, const void *x, void *y, int64_t n);
/* memcpy that takes NULL for no bytes, and the same place twice. */
void wf_copy(void *to, const void *from, size_t bytes);

#endif
