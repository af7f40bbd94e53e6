/* SPDX-License-Identifier: Apache-2.0 */
/* common/tensor/dtype.c */
#include "common/tensor/dtype.h"
#include "common/base/cc.h"
#include "common/tensor/half.h"

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

float wf_f16_to_f32(uint16_t h)
{
    return wf_f16_to_f32_inline(h);
}

uint16_t wf_f32_to_f16(float f)
{
    return wf_f32_to_f16_inline(f);
}

float wf_bf16_to_f32(uint16_t h)
{
    return wf_bf16_to_f32_inline(h);
}

uint16_t wf_f32_to_bf16(float f)
{
    return wf_f32_to_bf16_inline(f);
}
