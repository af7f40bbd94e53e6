/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/shape/numbers.c */
#include "common/kernels/shape/numbers.h"

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
