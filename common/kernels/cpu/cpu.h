/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/cpu.h - what the cpu kernels share. For this folder. */
#ifndef WF_KERNELS_CPU_CPU_H
#define WF_KERNELS_CPU_CPU_H

#include "common/base/cc.h"
#include "common/base/size.h"
#include "common/base/status.h"
#include "common/kernels/kernel.h"
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

/* An axis attribute or index, -rank..rank-1, as 0..rank-1; inference has checked its bounds. */
static inline uint32_t wf_axis_at(int64_t axis, uint32_t rank)
{
    return (uint32_t)(axis < 0 ? axis + rank : axis);
}

/* A tensor around one axis: [outer, axis, inner]. */
typedef struct wf_around {
    int64_t outer, axis, inner;
} wf_around;
wf_around wf_around_axis(const wf_tensor *t, int64_t axis);

/* Element i of an i32, i64, u8 or bool tensor. */
int64_t wf_int_at(const wf_tensor *t, int64_t i);
/* Element i of any numeric tensor but the halves. */
double wf_number_at(const wf_tensor *t, int64_t i);

/* memcpy that takes NULL for no bytes, and the same place twice. */
void wf_copy(void *to, const void *from, size_t bytes);

#endif
