/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/reduce/cum_sum.c - CumSum: element k is the sum of the first k + 1 along the
 * axis, of the first k with attr exclusive, from the other end with attr reverse. f32 is added in
 * double. */
#include "common/kernels/cpu/cpu.h"

#include <inttypes.h>

enum { TILE = 256 };

typedef struct job {
    const wf_tensor *x;
    wf_tensor *y;
    wf_around around;
    bool exclusive, reverse;
} job;

/* `count` neighbours (at most TILE), step by step along the axis. */
#define STRIP(name, T, A)                                                                          \
    static void name(const T *x, T *y, const job *j, int64_t count)                                \
    {                                                                                              \
        wf_around a = j->around;                                                                   \
        A sum[TILE] = {0};                                                                         \
                                                                                                   \
        for (int64_t k = 0; k < a.axis; k++) {                                                     \
            int64_t at = (j->reverse ? a.axis - 1 - k : k) * a.inner;                              \
                                                                                                   \
            for (int64_t i = 0; i < count; i++) {                                                  \
                A before = sum[i];                                                                 \
                                                                                                   \
                sum[i] += (A)x[at + i];                                                            \
                y[at + i] = (T)(j->exclusive ? before : sum[i]);                                   \
            }                                                                                      \
        }                                                                                          \
    }
STRIP(strip_f32, float, double)
STRIP(strip_f64, double, double)
STRIP(strip_32, uint32_t, uint32_t)
STRIP(strip_64, uint64_t, uint64_t)

/* Strips [begin, end) of [outer, inner]. */
static void range(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    wf_around a = j->around;

    while (begin < end) {
        int64_t i = begin % a.inner, first = begin / a.inner * a.axis * a.inner + i;
        int64_t count = WF_MIN(WF_MIN(a.inner - i, end - begin), (int64_t)TILE);

        if (j->x->dtype == WF_F32)
            strip_f32((const float *)j->x->data + first, (float *)j->y->data + first, j, count);
        else if (j->x->dtype == WF_F64)
            strip_f64((const double *)j->x->data + first, (double *)j->y->data + first, j, count);
        else if (j->x->dtype == WF_I32)
            strip_32((const uint32_t *)j->x->data + first, (uint32_t *)j->y->data + first, j,
                     count);
        else
            strip_64((const uint64_t *)j->x->data + first, (uint64_t *)j->y->data + first, j,
                     count);
        begin += count;
    }
}

static wf_status cum_sum(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                         wf_err *err)
{
    int64_t axis = wf_int_at(in[1], 0), rank = in[0]->rank;
    job j = {.x = in[0],
             .y = out[0],
             .exclusive = wf_node_int(run->node, "exclusive", 0) != 0,
             .reverse = wf_node_int(run->node, "reverse", 0) != 0};

    if (axis < -rank || axis >= rank)
        return wf_fail(err, WF_INVALID, NULL,
                       "axis %" PRId64 " is not in a tensor of %" PRId64 " axes", axis, rank);
    j.around = wf_around_axis(in[0], axis);
    wf_pool_for(run->pool, j.around.outer * j.around.inner,
                WF_GRAIN / WF_MAX(j.around.axis, (int64_t)1) + 1, range, &j);
    return WF_OK;
}

const wf_kernel wf_kernels_cum_sum[] = {
    WF_ROW("CumSum", WF_TYPES_NUMBER, cum_sum, .in_place = 1),
    {0},
};
