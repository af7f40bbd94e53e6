/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/divide.h - division of numbers below 2^31 by one that is known at the launch:
 * a multiplication and a shift (Granlund and Montgomery, "Division by Invariant Integers using
 * Multiplication", PLDI 1994). */
#ifndef WF_KERNELS_CUDA_DIVIDE_H
#define WF_KERNELS_CUDA_DIVIDE_H

#include "common/kernels/cuda/code.h"

/* With 2^(s - 1) < by <= 2^s, times is 2^(31 + s) / by, rounded up, and shift 31 + s. */
struct wf_divisor {
    uint32_t by, times, shift;
};

/* by: 1 to 2^31 - 1 */
static inline wf_divisor wf_divisor_of(int64_t by)
{
    uint32_t shift = 31;

    while ((int64_t)1 << (shift - 31) < by)
        shift++;
    return {(uint32_t)by, (uint32_t)((((uint64_t)1 << shift) + (uint64_t)by - 1) / (uint64_t)by),
            shift};
}

/* n / d, for n below 2^31 */
WF_CODE uint32_t wf_divide(uint32_t n, const wf_divisor &d)
{
    return (uint32_t)((uint64_t)n * d.times >> d.shift);
}

#endif
