/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/nn/pooling.c - MaxPool, AveragePool, LpPool, their global forms, and their
 * gradients.
 *
 * A plane is one channel of one image; planes are split over the pool. A row of outputs is done tap
 * by tap, which vectorises along the row; where each output's own taps matter (indices, the way
 * back to the largest) they are gone through one by one. Windows of 2 by 2 side by side have loops
 * of their own (pairs.h).
 */
#include "common/kernels/shape/pooling.h"
#include "common/base/size.h"
#include "common/graph/graph.h"
#include "common/kernels/cpu/cpu.h"
#include "common/kernels/cpu/narrow.h"
#include "common/kernels/cpu/nn/pairs.h"

#include <float.h>
#include <math.h>
#include <string.h>

typedef struct pooling {
    wf_pooling g;
    bool in_pairs;                 /* 2 by 2, side by side */
    double *share[WF_WINDOW_AXES]; /* [out[i]]: 1 / taps that count along axis i */
    bool is_narrow;                /* some of the tensors are of bfloat16: planes are widened, in */
    int64_t parts;                 /* parts, each with workspace of its own */
    int64_t (*span)[2]; /* [kernel[2]]: the outputs along the last axis that read a tap inside */
} pooling;

typedef struct job {
    const pooling *v;
    const void *in[3];
    void *out;
    int64_t *index;
} job;

/* One tap over one row of outputs: outputs [lo, hi) read x + at + (o - lo) * step. */
typedef struct tap {
    int64_t lo, hi, at, step;
} tap;
typedef void tap_fn(const tap *t, void *arg);

/* Calls fn for every tap of output row r. */
static void row_taps(const pooling *v, int64_t r, tap_fn *fn, void *arg)
{
    const wf_spatial *s = &v->g.s;
    int64_t od = r / s->out[1], oh = r % s->out[1], d[2], h[2];
    tap t = {.step = s->w.stride[2]};

    wf_spatial_taps(s, 0, od, &d[0], &d[1]);
    wf_spatial_taps(s, 1, oh, &h[0], &h[1]);
    for (int64_t kd = d[0]; kd < d[1]; kd++)
        for (int64_t kh = h[0]; kh < h[1]; kh++)
            for (int64_t kw = 0; kw < s->w.kernel[2]; kw++) {
                t.lo = v->span[kw][0];
                t.hi = v->span[kw][1];
                t.at = (wf_spatial_at(s, 0, od, kd) * s->in[1] + wf_spatial_at(s, 1, oh, kh)) *
                           s->in[2] +
                       wf_spatial_at(s, 2, t.lo, kw);
                if (t.hi > t.lo)
                    fn(&t, arg);
            }
}

/* Calls fn for every tap of one output with where it reads, until fn says true. */
typedef bool one_fn(int64_t at, void *arg);

static void output_taps(const wf_spatial *s, int64_t o, one_fn *fn, void *arg)
{
    int64_t where[WF_WINDOW_AXES] = {o / s->out[2] / s->out[1], o / s->out[2] % s->out[1],
                                     o % s->out[2]};
    int64_t lo[WF_WINDOW_AXES], hi[WF_WINDOW_AXES];

    for (uint32_t i = 0; i < WF_WINDOW_AXES; i++)
        wf_spatial_taps(s, i, where[i], &lo[i], &hi[i]);
    for (int64_t d = lo[0]; d < hi[0]; d++)
        for (int64_t h = lo[1]; h < hi[1]; h++) {
            int64_t row =
                (wf_spatial_at(s, 0, where[0], d) * s->in[1] + wf_spatial_at(s, 1, where[1], h)) *
                s->in[2];

            for (int64_t w = lo[2]; w < hi[2]; w++)
                if (fn(row + wf_spatial_at(s, 2, where[2], w), arg))
                    return;
        }
}

/* What the row functions work on: the plane and the row of outputs. */
typedef struct strip {
    const void *x;
    void *y;
    const void *dy, *out; /* of gradients: rows of dy and of the forward result */
    void *left;           /* of MaxPool's gradient: what of dy has found no place yet */
    const double *share;
    double weight, p;
} strip;

/* Outputs of a row whose rest of dy lies on the stack. */
enum { MOST_LEFT = 1024 };

#define MAX_ROW(T, lowest)                                                                         \
    WF_MULTIVERSION static void max_loop_##T(const T *x, int64_t step, T *y, int64_t n)            \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++) {                                                          \
            T v = x[i * step];                                                                     \
                                                                                                   \
            y[i] = ((v > y[i]) | (v != v)) ? v : y[i];                                             \
        }                                                                                          \
    }                                                                                              \
    static void max_tap_##T(const tap *t, void *arg)                                               \
    {                                                                                              \
        const strip *s = arg;                                                                      \
                                                                                                   \
        max_loop_##T((const T *)s->x + t->at, t->step, (T *)s->y + t->lo, t->hi - t->lo);          \
    }                                                                                              \
    typedef struct top_##T {                                                                       \
        const T *x;                                                                                \
        T best;                                                                                    \
        int64_t at;                                                                                \
    } top_##T;                                                                                     \
    static bool max_one_##T(int64_t at, void *arg)                                                 \
    {                                                                                              \
        top_##T *s = arg;                                                                          \
                                                                                                   \
        if (s->at < 0 || s->x[at] > s->best || s->x[at] != s->x[at]) {                             \
            s->best = s->x[at];                                                                    \
            s->at = at;                                                                            \
        }                                                                                          \
        return false;                                                                              \
    }                                                                                              \
    static void max_plane_##T(const job *j, int64_t p)                                             \
    {                                                                                              \
        const wf_spatial *g = &j->v->g.s;                                                          \
        const T *x = (const T *)j->in[0] + p * g->in_size;                                         \
        T *y = (T *)j->out + p * g->out_size;                                                      \
        int64_t rows = g->out[0] * g->out[1];                                                      \
                                                                                                   \
        if (j->index || j->v->g.whole) {                                                           \
            for (int64_t o = 0; o < g->out_size; o++) {                                            \
                top_##T s = {x, lowest, -1};                                                       \
                                                                                                   \
                output_taps(g, o, max_one_##T, &s);                                                \
                if (j->out)                                                                        \
                    y[o] = s.best;                                                                 \
                if (j->index)                                                                      \
                    j->index[p * g->out_size + o] = flat(j->v, p, WF_MAX(s.at, (int64_t)0));       \
            }                                                                                      \
            return;                                                                                \
        }                                                                                          \
        for (int64_t r = 0; r < rows; r++) {                                                       \
            strip s = {.x = x, .y = y + r * g->out[2]};                                            \
                                                                                                   \
            for (int64_t i = 0; i < g->out[2]; i++)                                                \
                ((T *)s.y)[i] = lowest;                                                            \
            row_taps(j->v, r, max_tap_##T, &s);                                                    \
        }                                                                                          \
    }

/* Element `at` of a plane as MaxPool's indices count. */
static int64_t flat(const pooling *v, int64_t plane, int64_t at)
{
    const int64_t *in = v->g.s.in;

    if (v->g.by_columns) {
        int64_t w = at % in[2], h = at / in[2] % in[1], d = at / in[2] / in[1];

        at = d + in[0] * (h + in[1] * w);
    }
    return plane * v->g.s.in_size + at;
}

MAX_ROW(float, -INFINITY)
MAX_ROW(double, -(double)INFINITY)
MAX_ROW(uint8_t, 0)

#define T float
#define SUFFIX float
#define POWER powf
#define ABSOLUTE fabsf
#include "common/kernels/cpu/nn/pooling_template.h"

#define T double
#define SUFFIX double
#define POWER pow
#define ABSOLUTE fabs
#include "common/kernels/cpu/nn/pooling_template.h"

#define RANGE(name, T, field)                                                                      \
    static void name##_##T##_range(void *arg, int64_t begin, int64_t end)                          \
    {                                                                                              \
        for (int64_t p = begin; p < end; p++)                                                      \
            name##_plane_##T(arg, p);                                                              \
    }
#define RANGES(name) RANGE(name, float, ) RANGE(name, double, )
RANGE(max, uint8_t, )
RANGES(max)
RANGES(max_grad)
RANGES(average)
RANGES(average_grad)
RANGES(lp)
RANGES(lp_grad)

static wf_pairs pairs_of(const pooling *v)
{
    return (wf_pairs){v->g.s.in[1], v->g.s.in[2], v->g.s.out[1], v->g.s.out[2]};
}

static void pairs_range(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    wf_pairs pairs = pairs_of(j->v);

    for (int64_t p = begin; p < end; p++)
        wf_pairs_max_f32(&pairs, (const float *)j->in[0] + p * j->v->g.s.in_size,
                         (float *)j->out + p * j->v->g.s.out_size);
}

static void pairs_grad_range(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    wf_pairs pairs = pairs_of(j->v);

    for (int64_t p = begin; p < end; p++)
        wf_pairs_max_grad_f32(&pairs, (const float *)j->in[1] + p * j->v->g.s.in_size,
                              (const float *)j->in[2] + p * j->v->g.s.out_size,
                              (const float *)j->in[0] + p * j->v->g.s.out_size,
                              (float *)j->out + p * j->v->g.s.in_size);
}

/* The same where x and y are of bfloat16. */
static void narrow_pairs_range(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    wf_pairs pairs = pairs_of(j->v);

    for (int64_t p = begin; p < end; p++)
        wf_pairs_max_bf16(&pairs, (const uint16_t *)j->in[0] + p * j->v->g.s.in_size,
                          (uint16_t *)j->out + p * j->v->g.s.out_size);
}

static void narrow_pairs_grad_range(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    wf_pairs pairs = pairs_of(j->v);

    for (int64_t p = begin; p < end; p++)
        wf_pairs_max_grad_bf16(&pairs, (const uint16_t *)j->in[1] + p * j->v->g.s.in_size,
                               (const uint16_t *)j->in[2] + p * j->v->g.s.out_size,
                               (const float *)j->in[0] + p * j->v->g.s.out_size,
                               (float *)j->out + p * j->v->g.s.in_size);
}

static bool is_in_pairs(const wf_spatial *s)
{
    for (uint32_t i = 1; i < WF_WINDOW_AXES; i++)
        if (s->w.kernel[i] != 2 || s->w.stride[i] != 2 || s->w.dilation[i] != 1 ||
            s->w.before[i] != 0 || 2 * s->out[i] > s->in[i])
            return false;
    return s->w.kernel[0] == 1 && s->in[0] == 1 && s->out[0] == 1;
}

/* 1 / taps along axis i that count for each output: those inside or, with the padding, all of the
 * window, also where ceil_mode lets it reach past the padding (onnx's node suite has it so). */
static wf_status make_shares(wf_prep *prep, pooling *v, uint32_t i, wf_err *err)
{
    v->share[i] = wf_arena_array(prep->arena, (size_t)v->g.s.out[i], sizeof(double));
    if (!v->share[i])
        return wf_fail_nomem(err, (size_t)v->g.s.out[i] * sizeof(double));
    for (int64_t o = 0; o < v->g.s.out[i]; o++) {
        int64_t lo, hi;

        wf_spatial_taps(&v->g.s, i, o, &lo, &hi);
        v->share[i][o] =
            1.0 / (double)(v->g.pads ? v->g.s.w.kernel[i] : WF_MAX(hi - lo, (int64_t)1));
    }
    return WF_OK;
}

static wf_status make(wf_prep *prep, const wf_pooling *g, wf_err *err)
{
    pooling *v = wf_arena_alloc(prep->arena, sizeof *v);

    if (!v)
        return wf_fail_nomem(err, sizeof *v);
    *v = (pooling){.g = *g};
    v->in_pairs = is_in_pairs(&v->g.s);
    for (uint32_t i = 0; i < WF_WINDOW_AXES; i++)
        WF_TRY(make_shares(prep, v, i, err));
    v->span = wf_arena_array(prep->arena, (size_t)v->g.s.w.kernel[2], sizeof v->span[0]);
    if (!v->span)
        return wf_fail_nomem(err, (size_t)v->g.s.w.kernel[2] * sizeof v->span[0]);
    for (int64_t k = 0; k < v->g.s.w.kernel[2]; k++)
        wf_spatial_inside(&v->g.s, 2, k, &v->span[k][0], &v->span[k][1]);
    prep->state = v;
    return WF_OK;
}

/* Elements that a part's planes take, widened. */
static int64_t room_of(const pooling *v)
{
    return (int64_t)wf_align_up((size_t)(2 * v->g.s.in_size + 2 * v->g.s.out_size), 16);
}

/* Where some are of bfloat16: workspace for a plane of each; not for indices, which count through
 * all planes. */
static wf_status make_narrow(wf_prep *prep, const wf_tensor *const in[],
                             const wf_tensor *const out[], wf_err *err)
{
    pooling *v = prep->state;

    v->is_narrow = wf_is_bf16(out[0]);
    for (uint32_t i = 0; i < 3; i++)
        v->is_narrow = v->is_narrow || wf_is_bf16(in[i]);
    if (!v->is_narrow)
        return WF_OK;
    prep->widens = !out[0] || out[1];
    v->parts = WF_MAX(WF_MIN((int64_t)prep->threads, v->g.planes), (int64_t)1);
    return wf_prep_workspace(prep, (size_t)v->parts, (size_t)room_of(v) * sizeof(float), err);
}

static wf_status prepare(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                         wf_err *err)
{
    wf_pooling g;

    WF_TRY(wf_pooling_of(prep->node, in[0], out[0] ? out[0] : out[1], &g, err));
    WF_TRY(make(prep, &g, err));
    return make_narrow(prep, in, out, err);
}

/* dy, x, (y) -> dx. */
static wf_status prepare_grad(wf_prep *prep, const wf_tensor *const in[],
                              const wf_tensor *const out[], wf_err *err)
{
    wf_pooling g;

    WF_TRY(wf_pooling_grad_of(prep->node, in, &g, err));
    WF_TRY(make(prep, &g, err));
    return make_narrow(prep, in, out, err);
}

/* Planes that are widened: the pass over one of them, and its tensors. */
typedef struct narrow_job {
    const pooling *v;
    wf_pool_fn *plane;
    const wf_tensor *const *in;
    const wf_tensor *out;
    float *rooms;
} narrow_job;

/* Elements of a plane of t, which is as large as a plane before or behind the pooling. */
static int64_t plane_of(const pooling *v, const wf_tensor *t)
{
    return wf_elems(t) / v->g.planes;
}

static void narrow_parts(void *arg, int64_t begin, int64_t end)
{
    const narrow_job *n = arg;
    const pooling *v = n->v;

    for (int64_t part = begin; part < end; part++)
        for (int64_t p = part * v->g.planes / v->parts; p < (part + 1) * v->g.planes / v->parts;
             p++) {
            float *room = n->rooms + part * room_of(v);
            int64_t size = plane_of(v, n->out);
            job one = {.v = v};

            one.out = wf_wide_room(n->out->data, wf_is_bf16(n->out), p * size, room);
            room += size;
            for (uint32_t i = 0; i < 3; i++) {
                int64_t elems = n->in[i] ? plane_of(v, n->in[i]) : 0;

                if (n->in[i])
                    one.in[i] =
                        wf_wide(n->in[i]->data, wf_is_bf16(n->in[i]), p * elems, elems, room);
                room += elems;
            }
            n->plane(&one, 0, 1);
            wf_narrow(n->out->data, wf_is_bf16(n->out), p * size, size, one.out);
        }
}

static wf_status run_as_they_are(const wf_run *run, const wf_tensor *const in[],
                                 wf_tensor *const out[], wf_pool_fn *fn)
{
    const pooling *v = run->state;
    job j = {.v = v, .out = out[0] ? out[0]->data : NULL};
    int64_t work = WF_MAX(v->g.s.out_size * v->g.s.taps, (int64_t)1);

    for (uint32_t i = 0; i < 3; i++)
        j.in[i] = in[i] ? in[i]->data : NULL;
    j.index = out[1] ? out[1]->data : NULL;
    if (v->g.s.in_size || v->g.s.out_size)
        wf_pool_for(run->pool, v->g.planes, WF_GRAIN / work + 1, fn, &j);
    return WF_OK;
}

static wf_status run_planes(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                            wf_dtype dtype, wf_pool_fn *f32, wf_pool_fn *f64)
{
    const pooling *v = run->state;
    narrow_job n = {v, f32, in, out[0], run->workspace};

    if (!v->is_narrow)
        return run_as_they_are(run, in, out, dtype == WF_F64 ? f64 : f32);
    if (v->g.planes && (v->g.s.in_size || v->g.s.out_size))
        wf_pool_for(run->pool, v->parts, 1, narrow_parts, &n);
    return WF_OK;
}

static wf_status max_pool_u8(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                             wf_err *err)
{
    (void)err;
    return run_planes(run, in, out, WF_U8, max_uint8_t_range, NULL);
}

#define KERNEL(name, ranges)                                                                       \
    static wf_status name(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],  \
                          wf_err *err)                                                             \
    {                                                                                              \
        (void)err;                                                                                 \
        return run_planes(run, in, out, in[0]->dtype, ranges##_float_range,                        \
                          ranges##_double_range);                                                  \
    }
KERNEL(average_pool, average)
KERNEL(average_pool_grad, average_grad)
KERNEL(lp_pool, lp)
KERNEL(lp_pool_grad, lp_grad)

static wf_status max_pool(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                          wf_err *err)
{
    const pooling *v = run->state;

    (void)err;
    if (v->in_pairs && wf_is_bf16(in[0]) && wf_is_bf16(out[0]))
        return run_as_they_are(run, in, out, narrow_pairs_range);
    return run_planes(run, in, out, in[0]->dtype,
                      v->in_pairs && !out[1] ? pairs_range : max_float_range, max_double_range);
}

static wf_status max_pool_grad(const wf_run *run, const wf_tensor *const in[],
                               wf_tensor *const out[], wf_err *err)
{
    const pooling *v = run->state;

    (void)err;
    if (v->in_pairs && !wf_is_bf16(in[0]) && wf_is_bf16(in[1]) && wf_is_bf16(in[2]) &&
        !wf_is_bf16(out[0]))
        return run_as_they_are(run, in, out, narrow_pairs_grad_range);
    return run_planes(run, in, out, in[0]->dtype,
                      v->in_pairs ? pairs_grad_range : max_grad_float_range, max_grad_double_range);
}

#define ROW(op, fn) WF_ROW(op, WF_TYPES_FLOAT, fn, .prepare = prepare, .is_narrow = true)
#define GRAD(op, fn)                                                                               \
    WF_ROW(op, WF_TYPES_FLOAT, fn, .prepare = prepare_grad, .domain = WF_DOMAIN_WEFT,              \
           .is_narrow = true)

const wf_kernel wf_kernels_pooling[] = {
    ROW("AveragePool", average_pool),
    ROW("GlobalAveragePool", average_pool),
    ROW("GlobalMaxPool", max_pool),
    ROW("LpPool", lp_pool),
    ROW("MaxPool", max_pool),
    WF_ROW("MaxPool", WF_TYPE(WF_U8), max_pool_u8, .prepare = prepare),
    GRAD("AveragePoolGrad", average_pool_grad),
    GRAD("LpPoolGrad", lp_pool_grad),
    GRAD("MaxPoolGrad", max_pool_grad),
    {0},
};
