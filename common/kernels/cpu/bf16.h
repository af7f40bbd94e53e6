/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/bf16.h - rounding f32 to bfloat16, for products that multiply in it. */
#ifndef WF_KERNELS_CPU_BF16_H
#define WF_KERNELS_CPU_BF16_H

#include <stdint.h>

/* To the nearest, ties to even; NaN stays NaN. */
void wf_round_to_bf16(const float *x, uint16_t *y, int64_t n);

#endif
