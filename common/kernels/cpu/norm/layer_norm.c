/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/norm/layer_norm.c - LayerNormalization, RMSNormalization and their gradients.
 *
 * A row is all from attr axis on, and lies together: its moments, then y, from cache. RMS is the
 * same about 0 and without a bias. Rows are split over the pool; the gradients of scale and bias,
 * sums over rows, by columns.
 */
#include "common/base/size.h"
#include "common/graph/graph.h"
#include "common/graph/op.h"
#include "common/kernels/cpu/cpu.h"
#include "common/kernels/cpu/lanes.h"
#include "common/kernels/cpu/norm/rows.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* The columns of BLOCK rows are summed by themselves before they join the others: an error that
 * grows with BLOCK + rows / BLOCK, not with rows. */
enum { TILE = 256, BLOCK = 32 };

typedef struct layer_norm {
    int64_t rows, n;
    double epsilon;
    bool rms;
} layer_norm;

typedef struct job {
    const layer_norm *v;
    const void *dy, *x, *scale, *bias;
    void *y, *dscale, *dbias;
    float *mean, *inv;    /* outputs, [rows]; may be NULL */
    double (*moments)[2]; /* backwards: mean and 1 / deviation of each row */
} job;

#define LAYERS(T, suffix)                                                                          \
    static void moments_##suffix(const layer_norm *v, const T *x, double *mean, double *inv)       \
    {                                                                                              \
        double sums[2] = {0, 0}, n = (double)v->n, d;                                              \
        T shift = v->rms || !v->n ? 0 : x[0];                                                      \
                                                                                                   \
        wf_moments_##suffix(x, shift, v->n, sums);                                                 \
        d = v->rms ? 0 : sums[0] / n;                                                              \
        *mean = (double)shift + d;                                                                 \
        d = sums[1] / n - d * d;                                                                   \
        *inv = 1 / sqrt((d < 0 ? 0 : d) + v->epsilon);                                             \
    }                                                                                              \
    WF_MULTIVERSION static void row_##suffix(const T *x, const T *scale, const T *bias, T mean,    \
                                             T inv, T *y, int64_t n)                               \
    {                                                                                              \
        if (bias) {                                                                                \
            WF_NO_OVERLAP                                                                          \
            for (int64_t i = 0; i < n; i++)                                                        \
                y[i] = (x[i] - mean) * inv * scale[i] + bias[i];                                   \
        } else {                                                                                   \
            WF_NO_OVERLAP                                                                          \
            for (int64_t i = 0; i < n; i++)                                                        \
                y[i] = (x[i] - mean) * inv * scale[i];                                             \
        }                                                                                          \
    }                                                                                              \
    static void forward_##suffix(void *arg, int64_t begin, int64_t end)                            \
    {                                                                                              \
        const job *j = arg;                                                                        \
                                                                                                   \
        for (int64_t r = begin; r < end; r++) {                                                    \
            double mean, inv;                                                                      \
                                                                                                   \
            moments_##suffix(j->v, (const T *)j->x + r * j->v->n, &mean, &inv);                    \
            if (j->y)                                                                              \
                row_##suffix((const T *)j->x + r * j->v->n, j->scale, j->bias, (T)mean, (T)inv,    \
                             (T *)j->y + r * j->v->n, j->v->n);                                    \
            if (j->mean)                                                                           \
                j->mean[r] = (float)mean;                                                          \
            if (j->inv)                                                                            \
                j->inv[r] = (float)inv;                                                            \
        }                                                                                          \
    }                                                                                              \
    /* sums of dy scale, and of dy scale times the normalised x */                                 \
    WF_MULTIVERSION static void sums_##suffix(const T *dy, const T *x, const T *scale, T mean,     \
                                              T inv, int64_t n, double sums[2])                    \
    {                                                                                              \
        wf_lanes_##suffix sum = {0}, with = {0}, g, v, s;                                          \
        T more = 0, more_with = 0;                                                                 \
        int64_t i = 0;                                                                             \
                                                                                                   \
        for (; i + WF_LANES <= n; i += WF_LANES) {                                                 \
            memcpy(&g, dy + i, sizeof g);                                                          \
            memcpy(&v, x + i, sizeof v);                                                           \
            memcpy(&s, scale + i, sizeof s);                                                       \
            g *= s;                                                                                \
            sum += g;                                                                              \
            with += g * ((v - mean) * inv);                                                        \
        }                                                                                          \
        for (; i < n; i++) {                                                                       \
            more += dy[i] * scale[i];                                                              \
            more_with += dy[i] * scale[i] * ((x[i] - mean) * inv);                                 \
        }                                                                                          \
        sums[0] = (double)(wf_lanes_sum_##suffix(&sum) + more);                                    \
        sums[1] = (double)(wf_lanes_sum_##suffix(&with) + more_with);                              \
    }                                                                                              \
    WF_MULTIVERSION static void dx_##suffix(const T *dy, const T *x, const T *scale, T mean,       \
                                            T inv, T first, T second, T *dx, int64_t n)            \
    {                                                                                              \
        WF_NO_OVERLAP                                                                              \
        for (int64_t i = 0; i < n; i++)                                                            \
            dx[i] = inv * (dy[i] * scale[i] - first - (x[i] - mean) * inv * second);               \
    }                                                                                              \
    static void backward_##suffix(void *arg, int64_t begin, int64_t end)                           \
    {                                                                                              \
        const job *j = arg;                                                                        \
        int64_t n = j->v->n;                                                                       \
                                                                                                   \
        for (int64_t r = begin; r < end; r++) {                                                    \
            const T *dy = (const T *)j->dy + r * n, *x = (const T *)j->x + r * n;                  \
            double sums[2], *m = j->moments[r];                                                    \
                                                                                                   \
            moments_##suffix(j->v, x, &m[0], &m[1]);                                               \
            if (!j->y)                                                                             \
                continue;                                                                          \
            sums_##suffix(dy, x, j->scale, (T)m[0], (T)m[1], n, sums);                             \
            dx_##suffix(dy, x, j->scale, (T)m[0], (T)m[1],                                         \
                        j->v->rms ? 0 : (T)(sums[0] / (double)n), (T)(sums[1] / (double)n),        \
                        (T *)j->y + r * n, n);                                                     \
        }                                                                                          \
    }                                                                                              \
    WF_MULTIVERSION static void add_##suffix(const T *dy, const T *x, T mean, T inv, T *dscale,    \
                                             int64_t n)                                            \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++)                                                            \
            dscale[i] += dy[i] * ((x[i] - mean) * inv);                                            \
    }                                                                                              \
    WF_MULTIVERSION static void plus_##suffix(const T *dy, T *dbias, int64_t n)                    \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++)                                                            \
            dbias[i] += dy[i];                                                                     \
    }                                                                                              \
    /* Rows [from, to) of columns [at, at + n), n at most TILE. */                                 \
    static void tile_##suffix(const job *j, int64_t from, int64_t to, int64_t at, int64_t n)       \
    {                                                                                              \
        T scale[TILE] = {0}, bias[TILE] = {0};                                                     \
        T *dscale = j->dscale, *dbias = j->dbias;                                                  \
                                                                                                   \
        for (int64_t r = from; r < to; r++) {                                                      \
            const T *dy = (const T *)j->dy + r * j->v->n + at;                                     \
            const T *x = (const T *)j->x + r * j->v->n + at;                                       \
                                                                                                   \
            if (dscale)                                                                            \
                add_##suffix(dy, x, (T)j->moments[r][0], (T)j->moments[r][1], scale, n);           \
            if (dbias)                                                                             \
                plus_##suffix(dy, bias, n);                                                        \
        }                                                                                          \
        if (dscale)                                                                                \
            plus_##suffix(scale, dscale + at, n);                                                  \
        if (dbias)                                                                                 \
            plus_##suffix(bias, dbias + at, n);                                                    \
    }                                                                                              \
    static void columns_##suffix(void *arg, int64_t begin, int64_t end)                            \
    {                                                                                              \
        const job *j = arg;                                                                        \
                                                                                                   \
        if (j->dscale)                                                                             \
            memset((T *)j->dscale + begin, 0, (size_t)(end - begin) * sizeof(T));                  \
        if (j->dbias)                                                                              \
            memset((T *)j->dbias + begin, 0, (size_t)(end - begin) * sizeof(T));                   \
        for (int64_t r = 0; r < j->v->rows; r += BLOCK)                                            \
            for (int64_t at = begin; at < end; at += TILE)                                         \
                tile_##suffix(j, r, WF_MIN(r + BLOCK, j->v->rows), at,                             \
                              WF_MIN(end - at, (int64_t)TILE));                                    \
    }
LAYERS(float, f32)
LAYERS(double, f64)

static wf_status make(wf_prep *prep, const wf_tensor *x, const wf_tensor *scale,
                      const wf_tensor *bias, wf_err *err)
{
    layer_norm *v = wf_arena_alloc(prep->arena, sizeof *v);
    uint32_t axis = wf_axis_at(wf_node_int(prep->node, "axis", -1), x->rank);

    if (!v)
        return wf_fail_nomem(err, sizeof *v);
    *v = (layer_norm){.rows = 1, .n = 1, .rms = prep->node->op->name[0] == 'R'};
    for (uint32_t i = 0; i < x->rank; i++)
        *(i < axis ? &v->rows : &v->n) *= x->dims[i];
    if (wf_elems(scale) != v->n || (bias && wf_elems(bias) != v->n))
        return wf_fail(err, WF_UNSUPPORTED, "Expand the scale and the bias to the row first",
                       "scale has %" PRId64 " elements, and a row that is normalised %" PRId64,
                       wf_elems(scale), v->n);
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
    const layer_norm *v;

    (void)out;
    WF_TRY(make(prep, in[1], in[2], NULL, err));
    v = prep->state;
    if (!wf_mul_size((size_t)v->rows, 2 * sizeof(double), &prep->workspace_bytes))
        return wf_fail_nomem(err, SIZE_MAX);
    return WF_OK;
}

static void *data_of(const wf_tensor *t)
{
    return t ? t->data : NULL;
}

static wf_status layer_norm_forward(const wf_run *run, const wf_tensor *const in[],
                                    wf_tensor *const out[], wf_err *err)
{
    const layer_norm *v = run->state;
    job j = {.v = v, .x = in[0]->data, .scale = in[1]->data, .bias = data_of(in[2])};

    (void)err;
    j.y = data_of(out[0]);
    j.mean = data_of(out[1]);
    j.inv = data_of(out[2]);
    wf_pool_for(run->pool, v->rows, WF_GRAIN / 4 / WF_MAX(v->n, (int64_t)1) + 1,
                in[0]->dtype == WF_F32 ? forward_f32 : forward_f64, &j);
    return WF_OK;
}

static wf_status layer_norm_grad(const wf_run *run, const wf_tensor *const in[],
                                 wf_tensor *const out[], wf_err *err)
{
    const layer_norm *v = run->state;
    job j = {.v = v, .dy = in[0]->data, .x = in[1]->data, .scale = in[2]->data};
    bool f32 = in[0]->dtype == WF_F32;

    (void)err;
    j.moments = run->workspace;
    j.y = data_of(out[0]);
    j.dscale = data_of(out[1]);
    j.dbias = data_of(out[2]);
    wf_pool_for(run->pool, v->rows, WF_GRAIN / 8 / WF_MAX(v->n, (int64_t)1) + 1,
                f32 ? backward_f32 : backward_f64, &j);
    if (j.dscale || j.dbias)
        wf_pool_for(run->pool, v->n, WF_GRAIN / WF_MAX(v->rows, (int64_t)1) + WF_LANES,
                    f32 ? columns_f32 : columns_f64, &j);
    return WF_OK;
}

#define ROW(op, fn) WF_ROW(op, WF_TYPES_FLOAT, fn, .prepare = prepare)
#define GRAD(op, fn)                                                                               \
    WF_ROW(op, WF_TYPES_FLOAT, fn, .prepare = prepare_grad, .domain = WF_DOMAIN_WEFT)

const wf_kernel wf_kernels_layer_norm[] = {
    ROW("LayerNormalization", layer_norm_forward),
    GRAD("LayerNormalizationGrad", layer_norm_grad),
    ROW("RMSNormalization", layer_norm_forward),
    GRAD("RMSNormalizationGrad", layer_norm_grad),
    {0},
};
