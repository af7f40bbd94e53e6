/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/cpu.c */
#include "common/kernels/cpu/cpu.h"

#include <string.h>

wf_around wf_around_axis(const wf_tensor *t, int64_t axis)
{
    wf_around a = {1, 1, 1};
    uint32_t at = wf_axis_at(axis, t->rank);

    for (uint32_t i = 0; i < t->rank; i++) {
        if (i < at)
            a.outer *= t->dims[i];
        else if (i == at)
            a.axis = t->dims[i];
        else
            a.inner *= t->dims[i];
    }
    return a;
}

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

void wf_copy(void *to, const void *from, size_t bytes)
{
    if (bytes && to != from)
        memcpy(to, from, bytes);
}
