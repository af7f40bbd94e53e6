/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/nn/mat_mul_integer.c - MatMulInteger: each row of A times B, added up in
 * int32.
 */
#include "common/kernels/cpu/cpu.h"

#include <string.h>

typedef struct job {
    const wf_tensor *const *in;
    int32_t *y;
} job;

/* The zero point of a row of A or a column of B. */
static int32_t zero_at(const wf_tensor *t, int64_t i)
{
    return t && wf_elems(t) ? ((const uint8_t *)t->data)[wf_elems(t) == 1 ? 0 : i] : 0;
}

static void rows(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const wf_tensor *a = j->in[0], *b = j->in[1];
    int64_t k = a->dims[1], n = b->dims[1];

    for (int64_t r = begin; r < end; r++) {
        int32_t *y = j->y + r * n, zero = zero_at(j->in[2], r);

        memset(y, 0, (size_t)n * sizeof *y);
        for (int64_t i = 0; i < k; i++) {
            int32_t x = ((const uint8_t *)a->data)[r * k + i] - zero;
            const uint8_t *row = (const uint8_t *)b->data + i * n;

            /* As unsigned numbers, which wrap where 33000 terms of the largest size are too many.
             */
            for (int64_t c = 0; c < n; c++)
                y[c] = (int32_t)((uint32_t)y[c] +
                                 (uint32_t)(x * ((int32_t)row[c] - zero_at(j->in[3], c))));
        }
    }
}

static wf_status mat_mul_integer(const wf_run *run, const wf_tensor *const in[],
                                 wf_tensor *const out[], wf_err *err)
{
    job j = {in, out[0]->data};
    const wf_tensor *za = in[2], *zb = in[3];

    if ((za && wf_elems(za) > 1 && wf_elems(za) != in[0]->dims[0]) ||
        (zb && wf_elems(zb) > 1 && wf_elems(zb) != in[1]->dims[1]))
        return wf_fail(err, WF_SHAPE, NULL,
                       "zero points must be one, or one a row of A and one a "
                       "column of B");
    if (wf_elems(out[0]))
        wf_pool_for(run->pool, in[0]->dims[0], 16, rows, &j);
    return WF_OK;
}

const wf_kernel wf_kernels_mat_mul_integer[] = {
    WF_ROW("MatMulInteger", WF_TYPE(WF_U8), mat_mul_integer),
    {0},
};
