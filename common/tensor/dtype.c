/* SPDX-License-Identifier: Apache-2.0 */
/* common/tensor/dtype.c */
#include "common/tensor/dtype.h"
#include "common/base/cc.h"

#include <string.h>

static const struct {
    wf_dtype dtype;
    size_t size;
    const char *name;
} rows[] = {
    {WF_F32, 4, "float32"}, {WF_U8, 1, "uint8"},      {WF_I32, 4, "int32"},
    {WF_I64, 8, "int64"},   {WF_BOOL, 1, "bool"},     {WF_F16, 2, "float16"},
    {WF_F64, 8, "float64"}, {WF_BF16, 2, "bfloat16"}, {WF_I8, 1, "int8"},
};

size_t wf_dtype_size(wf_dtype dtype)
{
    for (size_t i = 0; i < WF_COUNT(rows); i++)
        if (rows[i].dtype == dtype)
            return rows[i].size;
    return 0;
}

const char *wf_dtype_name(wf_dtype dtype)
{
    for (size_t i = 0; i < WF_COUNT(rows); i++)
        if (rows[i].dtype == dtype)
            return rows[i].name;
    return "?";
}

wf_dtype wf_dtype_of(const char *name)
{
    for (size_t i = 0; i < WF_COUNT(rows); i++)
        if (strcmp(rows[i].name, name) == 0)
            return rows[i].dtype;
    return WF_NONE;
}

bool wf_dtype_computes(wf_dtype dtype)
{
    return dtype != WF_I8 && wf_dtype_size(dtype) > 0;
}

bool wf_dtype_is_float(wf_dtype dtype)
{
    return dtype == WF_F32 || dtype == WF_F64 || dtype == WF_F16 || dtype == WF_BF16;
}

bool wf_dtype_is_int(wf_dtype dtype)
{
    return dtype == WF_U8 || dtype == WF_I32 || dtype == WF_I64;
}

static uint32_t bits_of(float f)
{
    uint32_t u;

    memcpy(&u, &f, sizeof u);
    return u;
}

static float float_of(uint32_t u)
{
    float f;

    memcpy(&f, &u, sizeof f);
    return f;
}

float wf_f16_to_f32(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, exponent = (h >> 10) & 0x1Fu;
    uint32_t fraction = h & 0x3FFu;

    if (exponent == 0x1F)
        return float_of(sign | 0x7F800000u | fraction << 13);
    if (exponent == 0) /* zero, or a subnormal of value fraction * 2^-24 */
        return float_of(sign | bits_of((float)fraction * 0x1p-24f));
    return float_of(sign | (exponent + 112) << 23 | fraction << 13);
}

uint16_t wf_f32_to_f16(float f)
{
    uint32_t u = bits_of(f), sign = u >> 16 & 0x8000u, magnitude = u & 0x7FFFFFFFu;

    if (magnitude > 0x7F800000u) /* NaN stays one, and stays quiet */
        return (uint16_t)(sign | 0x7E00u);
    if (magnitude >= 0x477FF000u) /* at least 65520 rounds to infinity */
        return (uint16_t)(sign | 0x7C00u);
    if (magnitude < 0x38800000u) /* below 2^-14: let the addition align and round the fraction */
        return (uint16_t)(sign | (bits_of(float_of(magnitude) + 0.5f) - bits_of(0.5f)));
    magnitude += 0xFFFu + (magnitude >> 13 & 1u);
    return (uint16_t)(sign | ((magnitude - (112u << 23)) >> 13));
}

float wf_bf16_to_f32(uint16_t h)
{
    return float_of((uint32_t)h << 16);
}

uint16_t wf_f32_to_bf16(float f)
{
    uint32_t u = bits_of(f);

    if ((u & 0x7FFFFFFFu) > 0x7F800000u)
        return (uint16_t)(u >> 16 | 0x40u);
    return (uint16_t)((u + 0x7FFFu + (u >> 16 & 1u)) >> 16);
}
