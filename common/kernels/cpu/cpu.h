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

/* memcpy that takes NULL for no bytes, and the same place twice. */
void wf_copy(void *to, const void *from, size_t bytes);

#endif
