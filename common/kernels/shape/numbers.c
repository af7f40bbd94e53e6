/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/shape/numbers.c */
#include "common/kernels/shape/numbers.h"

#include <string.h>

int64_t wf_int_at(const wf_tensor *t, int64_t i)
{
    switch (t->dtype) {
    case WF_I64:
        return ((const int64_t *)t->data)[i];
    case WF_I32:
        return ((const int32_t *)t->data)[i];
    default:
        return ((const uint8_t *)t->data)[i];
    }
}

double wf_number_at(const wf_tensor *t, int64_t i)
{
    switch (t->dtype) {
    case WF_F32:
        return ((const float *)t->data)[i];
    case WF_F64:
        return ((const double *)t->data)[i];
    default:
        return (double)wf_int_at(t, i);
    }
}

void wf_one_of(wf_dtype dtype, void *out)
{
    static const float f = 1;
    static const double d = 1;
    static const int32_t i = 1;
    static const int64_t l = 1;
    static const uint8_t b = 1;
    uint16_t half = dtype == WF_BF16 ? wf_f32_to_bf16(1) : wf_f32_to_f16(1);
    const void *from = dtype == WF_F32                       ? (const void *)&f
                       : dtype == WF_F64                     ? (const void *)&d
                       : dtype == WF_I32                     ? (const void *)&i
                       : dtype == WF_I64                     ? (const void *)&l
                       : dtype == WF_F16 || dtype == WF_BF16 ? (const void *)&half
                                                             : (const void *)&b;

    memcpy(out, from, wf_dtype_size(dtype));
}
