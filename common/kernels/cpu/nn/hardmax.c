/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/nn/hardmax.c - Hardmax: 1 at the first largest element along the axis, 0
 * elsewhere. */
#include "common/kernels/cpu/cpu.h"

typedef struct job {
    const wf_tensor *x;
    wf_tensor *y;
    wf_around around;
} job;

#define ROWS(name, T)                                                                              \
    static void name(const T *x, T *y, wf_around a)                                                \
    {                                                                                              \
        for (int64_t i = 0; i < a.inner; i++) {                                                    \
            int64_t best = 0;                                                                      \
                                                                                                   \
            for (int64_t k = 1; k < a.axis; k++)                                                   \
                if (x[k * a.inner + i] > x[best * a.inner + i])                                    \
                    best = k;                                                                      \
            for (int64_t k = 0; k < a.axis; k++)                                                   \
                y[k * a.inner + i] = k == best;                                                    \
        }                                                                                          \
    }
ROWS(rows_f32, float)
ROWS(rows_f64, double)

static void range(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    int64_t each = j->around.axis * j->around.inner;

    for (int64_t o = begin; o < end; o++) {
        if (j->x->dtype == WF_F32)
            rows_f32((const float *)j->x->data + o * each, (float *)j->y->data + o * each,
                     j->around);
        else
            rows_f64((const double *)j->x->data + o * each, (double *)j->y->data + o * each,
                     j->around);
    }
}

static wf_status hardmax(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                         wf_err *err)
{
    job j = {in[0], out[0], wf_around_axis(in[0], wf_node_int(run->node, "axis", -1))};
    int64_t each = WF_MAX(j.around.axis * j.around.inner, (int64_t)1);

    (void)err;
    wf_pool_for(run->pool, j.around.outer, WF_GRAIN / each + 1, range, &j);
    return WF_OK;
}

const wf_kernel wf_kernels_hardmax[] = {
    WF_ROW("Hardmax", WF_TYPES_FLOAT, hardmax),
    {0},
};
