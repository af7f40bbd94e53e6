/* SPDX-License-Identifier: Apache-2.0 */
/* ps/contained_add.c */
#include "ps/contained_add.h"

static void add_f32(float *y, const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] += x[i];
}

static void add_f64(double *y, const double *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] += x[i];
}

/* As unsigned numbers, whose overflow is defined. */
static void add_32(uint32_t *y, const uint32_t *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] += x[i];
}

static void add_64(uint64_t *y, const uint64_t *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] += x[i];
}

static void add_8(uint8_t *y, const uint8_t *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = (uint8_t)(y[i] + x[i]);
}

static void add_f16(uint16_t *y, const uint16_t *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = wf_f32_to_f16(wf_f16_to_f32(y[i]) + wf_f16_to_f32(x[i]));
}

static void add_bf16(uint16_t *y, const uint16_t *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = wf_f32_to_bf16(wf_bf16_to_f32(y[i]) + wf_bf16_to_f32(x[i]));
}

void wf_contained_add(wf_tensor *y, const wf_tensor *x)
{
    int64_t n = wf_elems(y);

    switch (y->dtype) {
    case WF_F32:
        add_f32(y->data, x->data, n);
        break;
    case WF_F64:
        add_f64(y->data, x->data, n);
        break;
    case WF_I32:
        add_32(y->data, x->data, n);
        break;
    case WF_I64:
        add_64(y->data, x->data, n);
        break;
    case WF_U8:
        add_8(y->data, x->data, n);
        break;
    case WF_F16:
        add_f16(y->data, x->data, n);
        break;
    case WF_BF16:
        add_bf16(y->data, x->data, n);
        break;
    default:
        wf_assert(!"a dtype without sums");
    }
}
