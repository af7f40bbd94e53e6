/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/reduce.c - ReduceSum, ReduceMean: axes are input 1, all
 * of them when there are none (unless noop_with_empty_axes).
 *
 * The input is walked in order. Where the inner axis is summed, a stretch is added up in 16 lanes
 * (a compiler may not reorder float sums by itself) and blocks in double; where it stays, stretches
 * are added to the output row, which vectorises by itself.
 */
#include "common/kernels/cpu/reduce.h"
#include "common/kernels/cpu/cpu.h"

#include <string.h>

enum { LANES = 16, BLOCK = 4096 };

WF_MULTIVERSION static float block_sum(const float *x, int64_t n)
{
    float lane[LANES] = {0};
    float sum = 0;
    int64_t i = 0;

    for (; i + LANES <= n; i += LANES)
        for (int k = 0; k < LANES; k++)
            lane[k] += x[i + k];
    for (; i < n; i++)
        sum += x[i];
    for (int width = LANES / 2; width > 0; width /= 2)
        for (int k = 0; k < width; k++)
            lane[k] += lane[k + width];
    return lane[0] + sum;
}

double wf_sum_f32(const float *x, int64_t n)
{
    double sum = 0;

    for (int64_t at = 0; at < n; at += BLOCK)
        sum += (double)block_sum(x + at, WF_MIN(n - at, (int64_t)BLOCK));
    return sum;
}

static double sum_f64(const double *x, int64_t n)
{
    double sum = 0;

    for (int64_t i = 0; i < n; i++)
        sum += x[i];
    return sum;
}

static uint32_t sum_32(const uint32_t *x, int64_t n)
{
    uint32_t sum = 0;

    for (int64_t i = 0; i < n; i++)
        sum += x[i];
    return sum;
}

static uint64_t sum_64(const uint64_t *x, int64_t n)
{
    uint64_t sum = 0;

    for (int64_t i = 0; i < n; i++)
        sum += x[i];
    return sum;
}

typedef struct job {
    const void *in;
    void *out;
} job;

/* Operand 0 is the output; the input is dense, so an inner axis that stays moves by 1. */
#define SUM_SPAN(name, T, stretch)                                                                 \
    WF_MULTIVERSION static void name##_rows(const T *x, T *y, int64_t step, int64_t n)             \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++)                                                            \
            y[i * step] += x[i];                                                                   \
    }                                                                                              \
    static void name(void *arg, const wf_span *s)                                                  \
    {                                                                                              \
        const job *j = arg;                                                                        \
        const T *x = (const T *)j->in + s->first;                                                  \
        T *y = (T *)j->out + s->at[0];                                                             \
                                                                                                   \
        if (s->step[0] == 0)                                                                       \
            *y += (T)stretch(x, s->count);                                                         \
        else                                                                                       \
            name##_rows(x, y, s->step[0], s->count);                                               \
    }
SUM_SPAN(sum_span_f32, float, wf_sum_f32)
SUM_SPAN(sum_span_f64, double, sum_f64)
SUM_SPAN(sum_span_32, uint32_t, sum_32)
SUM_SPAN(sum_span_64, uint64_t, sum_64)

void wf_sum_walk(const wf_walk *w, const wf_tensor *in, wf_tensor *out)
{
    job j = {in->data, out->data};
    wf_span_fn *span = in->dtype == WF_F32   ? sum_span_f32
                       : in->dtype == WF_F64 ? sum_span_f64
                       : in->dtype == WF_I32 ? sum_span_32
                                             : sum_span_64;

    if (wf_tensor_bytes(out))
        memset(out->data, 0, wf_tensor_bytes(out));
    wf_walk_range(w, 0, w->elems, span, &j);
}

static uint32_t axes_mask(const wf_prep *prep, const wf_tensor *x, const wf_tensor *axes)
{
    uint32_t mask = 0;
    int64_t n = axes ? wf_elems(axes) : 0;

    if (n == 0)
        return wf_node_int(prep->node, "noop_with_empty_axes", 0) ? 0 : (1u << x->rank) - 1;
    for (int64_t i = 0; i < n; i++)
        mask |= 1u << wf_axis_at(wf_int_at(axes, i), x->rank);
    return mask;
}

static wf_status prepare(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                         wf_err *err)
{
    const wf_tensor *x = in[0];
    int64_t strides[1][WF_MAX_RANK], step = 1;
    wf_walk *walk = wf_arena_alloc(prep->arena, sizeof *walk);
    uint32_t mask;

    if (!walk)
        return wf_fail_nomem(err, sizeof *walk);
    if (in[1] && wf_elems(in[1]) && !in[1]->data)
        return wf_fail(err, WF_UNSUPPORTED, "make the axes a constant",
                       "the axes to reduce depend on the run");
    mask = axes_mask(prep, x, in[1]);
    for (uint32_t i = x->rank; i-- > 0;) {
        strides[0][i] = mask >> i & 1u ? 0 : step;
        step *= mask >> i & 1u ? 1 : x->dims[i];
    }
    wf_assert(step == wf_elems(out[0]));
    wf_walk_strided(walk, x->rank, x->dims, 1, (const int64_t(*)[WF_MAX_RANK])strides);
    prep->state = walk;
    return WF_OK;
}

static wf_status reduce_sum(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                            wf_err *err)
{
    (void)err;
    wf_sum_walk(run->state, in[0], out[0]);
    return WF_OK;
}

static wf_status reduce_mean(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                             wf_err *err)
{
    int64_t n = wf_elems(out[0]), each = n ? wf_elems(in[0]) / n : 0;

    (void)err;
    wf_sum_walk(run->state, in[0], out[0]);
    for (int64_t i = 0; i < n; i++) {
        if (in[0]->dtype == WF_F32)
            ((float *)out[0]->data)[i] /= (float)each;
        else if (in[0]->dtype == WF_F64)
            ((double *)out[0]->data)[i] /= (double)each;
        else if (in[0]->dtype == WF_I32)
            ((int32_t *)out[0]->data)[i] /= (int32_t)WF_MAX(each, (int64_t)1);
        else
            ((int64_t *)out[0]->data)[i] /= WF_MAX(each, (int64_t)1);
    }
    return WF_OK;
}

#define ROW(op, dtypes, fn) WF_ROW(op, dtypes, fn, .prepare = prepare)

const wf_kernel wf_kernels_reduce[] = {
    ROW("ReduceSum", WF_TYPES_NUMBER, reduce_sum),
    ROW("ReduceMean", WF_TYPES_NUMBER, reduce_mean),
    {0},
};
