/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/nn/mat_mul_integer.cu - MatMulInteger: rows of A times B, added up in int32.
 * A thread computes an element; neighbours read neighbouring columns of B. */
#include "common/kernels/cuda/memory.h"

namespace
{

/* The zero points of A's rows or of B's columns. */
struct zeros {
    const uint8_t *at; /* nullptr: 0 */
    bool is_one;       /* for all */
};

WF_CODE int32_t zero_at(const zeros &z, int64_t i)
{
    return z.at ? z.at[z.is_one ? 0 : i] : 0;
}

__global__ void multiply(const uint8_t *a, const uint8_t *b, zeros za, zeros zb, int32_t *y,
                         int64_t m, int64_t n, int64_t k)
{
    for (int64_t e = wf_first(); e < m * n; e += wf_all()) {
        const int64_t row = e / n, column = e % n;
        const int32_t of_a = zero_at(za, row), of_b = zero_at(zb, column);
        uint32_t sum = 0; /* it wraps where 33000 terms of the largest size are too many */

        for (int64_t i = 0; i < k; i++)
            sum += (uint32_t)((a[row * k + i] - of_a) * (b[i * n + column] - of_b));
        y[e] = (int32_t)sum;
    }
}

zeros zeros_of(const wf_tensor *t)
{
    return {t && wf_elems(t) ? wf_in<uint8_t>(t) : nullptr, t && wf_elems(t) == 1};
}

wf_status prepare(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                  wf_err *err)
{
    const wf_tensor *za = in[2], *zb = in[3];

    (void)prep, (void)out;
    if ((za && wf_elems(za) > 1 && wf_elems(za) != in[0]->dims[0]) ||
        (zb && wf_elems(zb) > 1 && wf_elems(zb) != in[1]->dims[1]))
        return wf_fail(err, WF_SHAPE, NULL,
                       "zero points must be one, or one a row of A and one a column of B");
    return WF_OK;
}

wf_status mat_mul_integer(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                          wf_err *err)
{
    return wf_launch(run, "MatMulInteger", multiply, wf_blocks(run, wf_elems(out[0])), err,
                     wf_in<uint8_t>(in[0]), wf_in<uint8_t>(in[1]), zeros_of(in[2]), zeros_of(in[3]),
                     wf_out<int32_t>(out[0]), in[0]->dims[0], in[1]->dims[1], in[0]->dims[1]);
}

} // namespace

WF_CUDA_ROWS(mat_mul_integer){
    {.op = "MatMulInteger", .dtypes = WF_TYPE(WF_U8), .prepare = prepare, .run = mat_mul_integer},
    {},
};
