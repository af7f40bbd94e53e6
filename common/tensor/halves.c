/* SPDX-License-Identifier: Apache-2.0 */
/* common/tensor/halves.c - each case is computed for each number, and one is chosen: so that the
 * compiler makes vectors of it. */
#include "common/tensor/halves.h"
#include "common/base/cc.h"

#include <string.h>

static WF_INLINE uint32_t bits_of(float f)
{
    uint32_t u;

    memcpy(&u, &f, sizeof u);
    return u;
}

static WF_INLINE float float_of(uint32_t u)
{
    float f;

    memcpy(&f, &u, sizeof f);
    return f;
}

static WF_INLINE uint16_t bf16_of(float f)
{
    uint32_t u = bits_of(f), rounded = (u + 0x7FFFu + (u >> 16 & 1u)) >> 16;

    return (uint16_t)((u & 0x7FFFFFFFu) > 0x7F800000u ? u >> 16 | 0x40u : rounded);
}

/* The cases of wf_f32_to_f16. */
static WF_INLINE uint16_t f16_of(float f)
{
    uint32_t u = bits_of(f), sign = u >> 16 & 0x8000u, magnitude = u & 0x7FFFFFFFu;
    uint32_t small = bits_of(float_of(magnitude) + 0.5f) - bits_of(0.5f);
    uint32_t usual = (magnitude + 0xFFFu + (magnitude >> 13 & 1u) - (112u << 23)) >> 13;
    uint32_t h = magnitude < 0x38800000u ? small : usual;

    h = magnitude >= 0x477FF000u ? 0x7C00u : h;
    h = magnitude > 0x7F800000u ? 0x7E00u : h;
    return (uint16_t)(sign | h);
}

/* The cases of wf_f16_to_f32. */
static WF_INLINE float f32_of(uint16_t half)
{
    uint32_t h = half, sign = (h & 0x8000u) << 16, fraction = h & 0x3FFu, rest = h & 0x7C00u;
    uint32_t usual = ((h & 0x7FFFu) << 13) + (112u << 23);
    uint32_t small = bits_of((float)(int32_t)fraction * 0x1p-24f);
    uint32_t u = rest ? usual : small;

    u = rest == 0x7C00u ? 0x7F800000u | fraction << 13 : u;
    return float_of(sign | u);
}

WF_MULTIVERSION
void wf_bf16_of_f32s(const float *from, size_t n, uint16_t *to)
{
    for (size_t i = 0; i < n; i++)
        to[i] = bf16_of(from[i]);
}

WF_MULTIVERSION
void wf_f16_of_f32s(const float *from, size_t n, uint16_t *to)
{
    for (size_t i = 0; i < n; i++)
        to[i] = f16_of(from[i]);
}

WF_MULTIVERSION
void wf_f32_of_bf16s(const uint16_t *from, size_t n, float *to)
{
    for (size_t i = 0; i < n; i++)
        to[i] = float_of((uint32_t)from[i] << 16);
}

WF_MULTIVERSION
void wf_f32_of_f16s(const uint16_t *from, size_t n, float *to)
{
    for (size_t i = 0; i < n; i++)
        to[i] = f32_of(from[i]);
}
