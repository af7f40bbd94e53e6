/* SPDX-License-Identifier: Apache-2.0 */
/* common/tensor/half.h - one number to IEEE half or bfloat16 and back, as dtype.h has it: inline
 * functions, for dtype.c and for kernels of GPUs. */
#ifndef WF_TENSOR_HALF_H
#define WF_TENSOR_HALF_H

#include "common/base/cc.h"
#include <stdint.h>
#include <string.h>

WF_ALSO_GPU static inline uint32_t wf_half_bits(float f)
{
    uint32_t u;

    memcpy(&u, &f, sizeof u);
    return u;
}

WF_ALSO_GPU static inline float wf_half_float(uint32_t u)
{
    float f;

    memcpy(&f, &u, sizeof f);
    return f;
}

WF_ALSO_GPU static inline float wf_f16_to_f32_inline(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, exponent = (h >> 10) & 0x1Fu;
    uint32_t fraction = h & 0x3FFu;

    if (exponent == 0x1F)
        return wf_half_float(sign | 0x7F800000u | fraction << 13);
    if (exponent == 0) /* zero, or a subnormal of value fraction * 2^-24 */
        return wf_half_float(sign | wf_half_bits((float)fraction * 0x1p-24f));
    return wf_half_float(sign | (exponent + 112) << 23 | fraction << 13);
}

WF_ALSO_GPU static inline uint16_t wf_f32_to_f16_inline(float f)
{
    uint32_t u = wf_half_bits(f), sign = u >> 16 & 0x8000u, magnitude = u & 0x7FFFFFFFu;

    if (magnitude > 0x7F800000u) /* NaN stays one, and stays quiet */
        return (uint16_t)(sign | 0x7E00u);
    if (magnitude >= 0x477FF000u) /* at least 65520 rounds to infinity */
        return (uint16_t)(sign | 0x7C00u);
    if (magnitude < 0x38800000u) /* below 2^-14: let the addition align and round the fraction */
        return (uint16_t)(sign |
                          (wf_half_bits(wf_half_float(magnitude) + 0.5f) - wf_half_bits(0.5f)));
    magnitude += 0xFFFu + (magnitude >> 13 & 1u);
    return (uint16_t)(sign | ((magnitude - (112u << 23)) >> 13));
}

WF_ALSO_GPU static inline float wf_bf16_to_f32_inline(uint16_t h)
{
    return wf_half_float((uint32_t)h << 16);
}

WF_ALSO_GPU static inline uint16_t wf_f32_to_bf16_inline(float f)
{
    uint32_t u = wf_half_bits(f);

    if ((u & 0x7FFFFFFFu) > 0x7F800000u)
        return (uint16_t)(u >> 16 | 0x40u);
    return (uint16_t)((u + 0x7FFFu + (u >> 16 & 1u)) >> 16);
}

#endif
