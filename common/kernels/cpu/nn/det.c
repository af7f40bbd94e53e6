/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/nn/det.c - Det: the product of the pivots of Gaussian elimination with row
 * exchanges, in double. */
#include "common/kernels/cpu/cpu.h"

#include <math.h>

static wf_status prepare(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                         wf_err *err)
{
    int64_t n = wf_dim(in[0], -1);

    (void)out;
    if (!wf_mul_size((size_t)n, (size_t)n, &prep->workspace_bytes) ||
        !wf_mul_size(prep->workspace_bytes, sizeof(double), &prep->workspace_bytes))
        return wf_fail_nomem(err, SIZE_MAX);
    return WF_OK;
}

/* a [n, n] is used up. */
static double determinant(double *a, int64_t n)
{
    double det = 1;

    for (int64_t k = 0; k < n; k++) {
        int64_t best = k;

        for (int64_t r = k + 1; r < n; r++)
            if (fabs(a[r * n + k]) > fabs(a[best * n + k]))
                best = r;
        for (int64_t c = k; c < n && best != k; c++) {
            double t = a[k * n + c];

            a[k * n + c] = a[best * n + c];
            a[best * n + c] = t;
        }
        det *= best == k ? a[k * n + k] : -a[k * n + k];
        if (a[k * n + k] == 0)
            return det;
        for (int64_t r = k + 1; r < n; r++) {
            double factor = a[r * n + k] / a[k * n + k];

            for (int64_t c = k; c < n; c++)
                a[r * n + c] -= factor * a[k * n + c];
        }
    }
    return det;
}

static wf_status det(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                     wf_err *err)
{
    int64_t n = wf_dim(in[0], -1), count = wf_elems(out[0]);
    double *a = run->workspace, value;

    (void)err;
    for (int64_t i = 0; i < count; i++) {
        for (int64_t k = 0; k < n * n; k++)
            a[k] = wf_number_at(in[0], i * n * n + k);
        value = determinant(a, n);
        if (in[0]->dtype == WF_F32)
            ((float *)out[0]->data)[i] = (float)value;
        else
            ((double *)out[0]->data)[i] = value;
    }
    return WF_OK;
}

const wf_kernel wf_kernels_det[] = {
    WF_ROW("Det", WF_TYPES_FLOAT, det, .prepare = prepare),
    {0},
};
