/* SPDX-License-Identifier: Apache-2.0 */
/* tests/cuda/host_element.c - elements of the types that cuDNN's tensors have in memory. */
#include "common/tensor/half.h"
#include "tests/cuda/host_descriptor.h"

#include <stdint.h>

size_t host_element_size(int type)
{
    switch (type) {
    case WF_DNN_F16:
    case WF_DNN_BF16:
        return sizeof(uint16_t);
    case WF_DNN_F32:
        return sizeof(float);
    default:
        return sizeof(double);
    }
}

double host_element(int type, const void *at, size_t i)
{
    switch (type) {
    case WF_DNN_F16:
        return (double)wf_f16_to_f32_inline(((const uint16_t *)at)[i]);
    case WF_DNN_BF16:
        return (double)wf_bf16_to_f32_inline(((const uint16_t *)at)[i]);
    case WF_DNN_F32:
        return (double)((const float *)at)[i];
    default:
        return ((const double *)at)[i];
    }
}

void host_element_put(int type, void *at, size_t i, double value)
{
    switch (type) {
    case WF_DNN_F16:
        ((uint16_t *)at)[i] = wf_f32_to_f16_inline((float)value);
        break;
    case WF_DNN_BF16:
        ((uint16_t *)at)[i] = wf_f32_to_bf16_inline((float)value);
        break;
    case WF_DNN_F32:
        ((float *)at)[i] = (float)value;
        break;
    default:
        ((double *)at)[i] = value;
    }
}
