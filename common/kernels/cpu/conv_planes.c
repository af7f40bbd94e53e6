/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/conv_planes.c - convolutions where each map reads one channel (depthwise): tap
 * by tap, along the rows of a plane. */
#include "common/kernels/cpu/conv.h"

#include <string.h>

#define DIRECT(T)                                                                                  \
    /* y[i] += w x[i step] */                                                                      \
    WF_MULTIVERSION static void gather_##T(T w, const T *x, int64_t step, T *y, int64_t n)         \
    {                                                                                              \
        if (step == 1)                                                                             \
            for (int64_t i = 0; i < n; i++)                                                        \
                y[i] += w * x[i];                                                                  \
        else                                                                                       \
            for (int64_t i = 0; i < n; i++)                                                        \
                y[i] += w * x[i * step];                                                           \
    }                                                                                              \
    /* x[i step] += w y[i] */                                                                      \
    WF_MULTIVERSION static void scatter_##T(T w, const T *y, T *x, int64_t step, int64_t n)        \
    {                                                                                              \
        if (step == 1)                                                                             \
            for (int64_t i = 0; i < n; i++)                                                        \
                x[i] += w * y[i];                                                                  \
        else                                                                                       \
            for (int64_t i = 0; i < n; i++)                                                        \
                x[i * step] += w * y[i];                                                           \
    }                                                                                              \
    WF_MULTIVERSION static T dot_##T(const T *x, int64_t step, const T *y, int64_t n)              \
    {                                                                                              \
        T lane[8] = {0}, sum = 0;                                                                  \
        int64_t i = 0;                                                                             \
                                                                                                   \
        if (step == 1)                                                                             \
            for (; i + 8 <= n; i += 8)                                                             \
                for (int k = 0; k < 8; k++)                                                        \
                    lane[k] += x[i + k] * y[i + k];                                                \
        for (; i < n; i++)                                                                         \
            sum += x[i * step] * y[i];                                                             \
        for (int k = 0; k < 8; k++)                                                                \
            sum += lane[k];                                                                        \
        return sum;                                                                                \
    }                                                                                              \
    /* One plane. */                                                                               \
    static void plane_##T(const wf_conv *v, T *x, T *w, T *y)                                      \
    {                                                                                              \
        const wf_spatial *s = &v->s;                                                               \
                                                                                                   \
        for (int64_t k = 0; k < s->taps; k++) {                                                    \
            int64_t kw = k % s->w.kernel[2], kh = k / s->w.kernel[2] % s->w.kernel[1];             \
            int64_t kd = k / s->w.kernel[2] / s->w.kernel[1], lo, hi, step = s->w.stride[2];       \
                                                                                                   \
            wf_spatial_inside(s, 2, kw, &lo, &hi);                                                 \
            for (int64_t r = 0; r < s->out[0] * s->out[1]; r++) {                                  \
                int64_t d = wf_spatial_at(s, 0, r / s->out[1], kd);                                \
                int64_t h = wf_spatial_at(s, 1, r % s->out[1], kh);                                \
                T *xs, *ys = y + r * s->out[2] + lo;                                               \
                                                                                                   \
                if (d < 0 || d >= s->in[0] || h < 0 || h >= s->in[1] || lo == hi)                  \
                    continue;                                                                      \
                xs = x + (d * s->in[1] + h) * s->in[2] + wf_spatial_at(s, 2, lo, kw);              \
                if (v->pass == WF_CONV_FORWARD)                                                    \
                    gather_##T(w[k], xs, step, ys, hi - lo);                                       \
                else if (v->pass == WF_CONV_DATA)                                                  \
                    scatter_##T(w[k], ys, xs, step, hi - lo);                                      \
                else                                                                               \
                    w[k] += dot_##T(xs, step, ys, hi - lo);                                        \
            }                                                                                      \
        }                                                                                          \
    }
DIRECT(float)
DIRECT(double)

/* Group g of an image, added to what the pass makes. */
static void plane(const wf_conv *v, const wf_conv_tensors *t, int64_t image, int64_t g)
{
    void *x = t->x + wf_conv_bytes(v, (image * v->groups + g) * v->s.in_size);
    void *w = t->w + wf_conv_bytes(v, g * v->s.taps);
    void *y = t->y + wf_conv_bytes(v, (image * v->groups + g) * v->s.out_size);

    if (v->dtype == WF_F32)
        plane_float(v, x, w, y);
    else
        plane_double(v, x, w, y);
}

typedef struct job {
    const wf_conv *v;
    const wf_conv_tensors *t;
} job;

static void planes_range(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const wf_conv *v = j->v;
    bool maps = v->pass == WF_CONV_FORWARD;
    size_t bytes = wf_conv_bytes(v, maps ? v->s.out_size : v->s.in_size);

    memset((maps ? j->t->y : j->t->x) + (size_t)begin * bytes, 0, (size_t)(end - begin) * bytes);
    for (int64_t i = begin; i < end; i++) {
        plane(v, j->t, i / v->groups, i % v->groups);
        wf_conv_add_bias(v, j->t, i / v->groups, i % v->groups);
    }
}

static void weights_range(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const wf_conv *v = j->v;

    memset(j->t->w + wf_conv_bytes(v, begin * v->s.taps), 0,
           wf_conv_bytes(v, (end - begin) * v->s.taps));
    for (int64_t g = begin; g < end; g++)
        for (int64_t i = 0; i < v->batch; i++)
            plane(v, j->t, i, g);
}

static wf_status prepare(wf_prep *prep, const wf_conv *v, void **state, wf_err *err)
{
    (void)prep;
    (void)err;
    if (v->c == 1 && v->m == 1 && v->groups > 1)
        *state = (void *)(uintptr_t)v;
    return WF_OK;
}

static void run(const wf_conv *v, const wf_run *run, const wf_conv_tensors *t)
{
    job j = {v, t};

    if (v->pass == WF_CONV_WEIGHTS)
        wf_pool_for(run->pool, v->groups, 1, weights_range, &j);
    else
        wf_pool_for(run->pool, v->batch * v->groups, 1, planes_range, &j);
}

const wf_conv_way wf_conv_by_planes = {.prepare = prepare, .run = run};
