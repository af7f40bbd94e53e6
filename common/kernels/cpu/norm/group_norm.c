/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/norm/group_norm.c - GroupNormalization, InstanceNormalization and their
 * gradient.
 *
 * A group of channels of one image is normalised by its own mean and variance; scale and bias are
 * per channel or, as opset 18 has it, per group. Groups of images are split over the pool; the sums
 * over images follow in order.
 */
#include "common/base/size.h"
#include "common/graph/graph.h"
#include "common/kernels/cpu/cpu.h"
#include "common/kernels/cpu/norm/rows.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

typedef struct group_norm {
    int64_t images, groups, each, inner; /* each: channels of a group */
    double epsilon;
    bool per_group; /* scale and bias */
} group_norm;

typedef struct job {
    const group_norm *v;
    const void *dy, *x, *scale, *bias;
    void *y;
    double (*sums)[2]; /* [images channels]: of dy, and of dy times the normalised x */
} job;

#define GROUPS(T, suffix)                                                                          \
    static void moments_##suffix(const group_norm *v, const T *x, double *mean, double *inv)       \
    {                                                                                              \
        int64_t n = v->each * v->inner;                                                            \
        double sums[2] = {0, 0}, d;                                                                \
                                                                                                   \
        wf_moments_##suffix(x, n ? x[0] : 0, n, sums);                                             \
        d = sums[0] / (double)n;                                                                   \
        *mean = (n ? (double)x[0] : 0) + d;                                                        \
        d = sums[1] / (double)n - d * d;                                                           \
        *inv = 1 / sqrt((d < 0 ? 0 : d) + v->epsilon);                                             \
    }                                                                                              \
    static void forward_##suffix(void *arg, int64_t begin, int64_t end)                            \
    {                                                                                              \
        const job *j = arg;                                                                        \
        const group_norm *v = j->v;                                                                \
                                                                                                   \
        for (int64_t r = begin; r < end; r++) {                                                    \
            int64_t g = r % v->groups;                                                             \
            const T *x = (const T *)j->x + r * v->each * v->inner;                                 \
            T *y = (T *)j->y + r * v->each * v->inner;                                             \
            double mean, inv;                                                                      \
                                                                                                   \
            moments_##suffix(v, x, &mean, &inv);                                                   \
            for (int64_t c = 0; c < v->each; c++) {                                                \
                int64_t at = v->per_group ? g : g * v->each + c;                                   \
                double a = (double)((const T *)j->scale)[at] * inv;                                \
                double b = (double)((const T *)j->bias)[at] - mean * a;                            \
                                                                                                   \
                wf_affine_##suffix(x + c * v->inner, (T)a, (T)b, y + c * v->inner, v->inner);      \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    static void backward_##suffix(void *arg, int64_t begin, int64_t end)                           \
    {                                                                                              \
        const job *j = arg;                                                                        \
        const group_norm *v = j->v;                                                                \
        double n = (double)(v->each * v->inner);                                                   \
                                                                                                   \
        for (int64_t r = begin; r < end; r++) {                                                    \
            int64_t at = r * v->each * v->inner, g = r % v->groups;                                \
            const T *x = (const T *)j->x + at, *dy = (const T *)j->dy + at;                        \
            T *dx = (T *)j->y + at;                                                                \
            double mean, inv, all[2] = {0, 0}, b;                                                  \
                                                                                                   \
            moments_##suffix(v, x, &mean, &inv);                                                   \
            for (int64_t c = 0; c < v->each; c++) {                                                \
                double *sums = j->sums[r * v->each + c];                                           \
                double scale = (double)((const T *)j->scale)[v->per_group ? g : g * v->each + c];  \
                                                                                                   \
                sums[0] = sums[1] = 0;                                                             \
                wf_grad_sums_##suffix(dy + c * v->inner, x + c * v->inner, (T)mean, v->inner,      \
                                      sums);                                                       \
                sums[1] *= inv;                                                                    \
                all[0] += scale * sums[0];                                                         \
                all[1] += scale * sums[1];                                                         \
            }                                                                                      \
            b = -inv * inv * all[1] / n;                                                           \
            for (int64_t c = 0; j->y && c < v->each; c++) {                                        \
                double scale = (double)((const T *)j->scale)[v->per_group ? g : g * v->each + c];  \
                                                                                                   \
                wf_blend_##suffix(dy + c * v->inner, x + c * v->inner, (T)(inv * scale), (T)b,     \
                                  (T)(-inv * all[0] / n - b * mean), dx + c * v->inner, v->inner); \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    static void parameters_##suffix(const job *j, T *dscale, T *dbias)                             \
    {                                                                                              \
        const group_norm *v = j->v;                                                                \
        int64_t channels = v->groups * v->each, n = v->per_group ? v->groups : channels;           \
        int64_t many = v->per_group ? v->each : 1;                                                 \
                                                                                                   \
        for (int64_t p = 0; p < n; p++) {                                                          \
            double sums[2] = {0, 0};                                                               \
                                                                                                   \
            for (int64_t i = 0; i < v->images; i++)                                                \
                for (int64_t c = p * many; c < (p + 1) * many; c++) {                              \
                    sums[0] += j->sums[i * channels + c][0];                                       \
                    sums[1] += j->sums[i * channels + c][1];                                       \
                }                                                                                  \
            if (dscale)                                                                            \
                dscale[p] = (T)sums[1];                                                            \
            if (dbias)                                                                             \
                dbias[p] = (T)sums[0];                                                             \
        }                                                                                          \
    }
GROUPS(float, f32)
GROUPS(double, f64)

static wf_status make(wf_prep *prep, const wf_tensor *x, const wf_tensor *scale,
                      const wf_tensor *bias, wf_err *err)
{
    group_norm *v = wf_arena_alloc(prep->arena, sizeof *v);
    int64_t channels = x->rank >= 2 ? x->dims[1] : 0, groups, n;

    if (!v)
        return wf_fail_nomem(err, sizeof *v);
    groups = wf_node_int(prep->node, "num_groups", channels);
    n = scale->rank == 1 ? scale->dims[0] : -1;
    if (x->rank < 2 || (channels && (groups < 1 || channels % groups)) ||
        (n != groups && n != channels) || (bias && (bias->rank != 1 || bias->dims[0] != n)))
        return wf_fail(err, WF_SHAPE, NULL,
                       "%" PRId64 " channels, %" PRId64 " groups and %" PRId64
                       " scales do not fit each other",
                       channels, groups, n);
    *v = (group_norm){.images = x->dims[0],
                      .groups = groups,
                      .inner = 1,
                      .each = groups ? channels / groups : 0,
                      .per_group = n != channels};
    for (uint32_t i = 2; i < x->rank; i++)
        v->inner *= x->dims[i];
    v->epsilon = (double)wf_node_float(prep->node, "epsilon", 1e-5f);
    prep->state = v;
    return WF_OK;
}

static wf_status prepare(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                         wf_err *err)
{
    (void)out;
    return make(prep, in[0], in[1], in[2], err);
}

static wf_status prepare_grad(wf_prep *prep, const wf_tensor *const in[],
                              const wf_tensor *const out[], wf_err *err)
{
    (void)out;
    WF_TRY(make(prep, in[1], in[2], NULL, err));
    if (!wf_mul_size((size_t)(in[1]->dims[0] * in[1]->dims[1]), 2 * sizeof(double),
                     &prep->workspace_bytes))
        return wf_fail_nomem(err, SIZE_MAX);
    return WF_OK;
}

static void over_groups(const wf_run *run, job *j, wf_pool_fn *fn)
{
    const group_norm *v = run->state;
    int64_t work = WF_MAX(v->each * v->inner, (int64_t)1);

    j->v = v;
    wf_pool_for(run->pool, v->images * v->groups, WF_GRAIN / work + 1, fn, j);
}

static wf_status group_norm_forward(const wf_run *run, const wf_tensor *const in[],
                                    wf_tensor *const out[], wf_err *err)
{
    job j = {.x = in[0]->data, .scale = in[1]->data, .bias = in[2]->data, .y = out[0]->data};

    (void)err;
    over_groups(run, &j, in[0]->dtype == WF_F32 ? forward_f32 : forward_f64);
    return WF_OK;
}

static wf_status group_norm_grad(const wf_run *run, const wf_tensor *const in[],
                                 wf_tensor *const out[], wf_err *err)
{
    job j = {.dy = in[0]->data, .x = in[1]->data, .scale = in[2]->data, .sums = run->workspace};
    void *dscale = out[1] ? out[1]->data : NULL, *dbias = out[2] ? out[2]->data : NULL;

    (void)err;
    j.y = out[0] ? out[0]->data : NULL;
    over_groups(run, &j, in[0]->dtype == WF_F32 ? backward_f32 : backward_f64);
    if (in[0]->dtype == WF_F32)
        parameters_f32(&j, dscale, dbias);
    else
        parameters_f64(&j, dscale, dbias);
    return WF_OK;
}

const wf_kernel wf_kernels_group_norm[] = {
    WF_ROW("GroupNormalization", WF_TYPES_FLOAT, group_norm_forward, .prepare = prepare),
    WF_ROW("GroupNormalizationGrad", WF_TYPES_FLOAT, group_norm_grad, .prepare = prepare_grad,
           .domain = WF_DOMAIN_WEFT),
    WF_ROW("InstanceNormalization", WF_TYPES_FLOAT, group_norm_forward, .prepare = prepare),
    {0},
};
