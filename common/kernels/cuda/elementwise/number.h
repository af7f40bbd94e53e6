/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/elementwise/number.h - elements of a tensor whose dtype is known at the
 * launch: for operands that are few, or small beside the work. The dtype is the same for all
 * threads, so they take the same way. */
#ifndef WF_KERNELS_CUDA_NUMBER_H
#define WF_KERNELS_CUDA_NUMBER_H

#include "common/kernels/cuda/code.h"

/* Any dtype but the halves. */
struct wf_numbers {
    const void *data; /* of the device */
    wf_dtype dtype;
};

static inline wf_numbers wf_numbers_of(const wf_tensor *t)
{
    return t ? wf_numbers{t->data, t->dtype} : wf_numbers{};
}

/* Element i of integers or bools. */
WF_CODE int64_t wf_int_of(const wf_numbers &n, int64_t i)
{
    switch (n.dtype) {
    case WF_I32:
        return static_cast<const int32_t *>(n.data)[i];
    case WF_I64:
        return static_cast<const int64_t *>(n.data)[i];
    default:
        return static_cast<const uint8_t *>(n.data)[i];
    }
}

WF_CODE double wf_number_of(const wf_numbers &n, int64_t i)
{
    switch (n.dtype) {
    case WF_F32:
        return (double)static_cast<const float *>(n.data)[i];
    case WF_F64:
        return static_cast<const double *>(n.data)[i];
    default:
        return (double)wf_int_of(n, i);
    }
}

#endif
