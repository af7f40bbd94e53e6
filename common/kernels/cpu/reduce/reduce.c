/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/reduce/reduce.c - reducing a tensor over any of its axes.
 *
 * f32 and f64 are gathered in double, integers in 64 bits: sums of many f32 keep their digits, and
 * the arithmetic still waits for memory. Outputs are done a tile at a time. Where the elements of
 * one output lie together they are added up in 32 lanes (a compiler may not reorder float sums by
 * itself); where neighbouring outputs lie together, row after row is added to the tile.
 *
 * Threads share the outputs. When those are few and the elements many, the elements are cut into
 * PARTS ranges instead, a number that does not depend on the threads, and joined in their order.
 */
#include "common/kernels/cpu/reduce/reduce.h"
#include "common/kernels/cpu/cpu.h"
#include "common/kernels/cpu/vmath.h"
#include "common/tensor/half.h"

#include <math.h>
#include <string.h>

/* LANES: gcc unrolls loops of up to 16 turns before it looks for vectors, and then finds none. */
enum { LANES = 32, TILE = 512, PARTS = 16 };

typedef union gathered {
    double f;
    int64_t i;
} gathered;

/* Takes n elements of each of `count` outputs into all[count]; outputs are `step` elements apart,
 * those of one output `stride`. */
typedef void fold_fn(const void *x, gathered *all, int64_t count, int64_t step, int64_t n,
                     int64_t stride);

/* join(s, v) takes one more element, merge(s, t) joins two that are gathered already. */
#define FOLD(name, T, A, as, first, join, merge)                                                   \
    static inline A name##_row(const T *x, A s, int64_t n)                                         \
    {                                                                                              \
        A lane[LANES];                                                                             \
        int64_t i = 0;                                                                             \
                                                                                                   \
        if (n >= LANES) {                                                                          \
            for (int k = 0; k < LANES; k++)                                                        \
                lane[k] = first;                                                                   \
            for (; i + LANES <= n; i += LANES)                                                     \
                for (int k = 0; k < LANES; k++)                                                    \
                    lane[k] = join(lane[k], as(A, x[i + k]));                                      \
            for (int width = LANES / 2; width > 0; width /= 2)                                     \
                for (int k = 0; k < width; k++)                                                    \
                    lane[k] = merge(lane[k], lane[k + width]);                                     \
            s = merge(s, lane[0]);                                                                 \
        }                                                                                          \
        for (; i < n; i++)                                                                         \
            s = join(s, as(A, x[i]));                                                              \
        return s;                                                                                  \
    }                                                                                              \
    WF_MULTIVERSION static void name##_rows(const T *x, A *all, int64_t count, int64_t step,       \
                                            int64_t n)                                             \
    {                                                                                              \
        for (int64_t o = 0; o < count; o++)                                                        \
            all[o] = name##_row(x + o * step, all[o], n);                                          \
    }                                                                                              \
    WF_MULTIVERSION static void name##_columns(const T *x, A *all, int64_t count, int64_t n,       \
                                               int64_t stride)                                     \
    {                                                                                              \
        int64_t i = 0;                                                                             \
                                                                                                   \
        for (; i + 4 <= n; i += 4, x += 4 * stride) {                                              \
            WF_NO_OVERLAP                                                                          \
            for (int64_t o = 0; o < count; o++) {                                                  \
                A s = join(all[o], as(A, x[o]));                                                   \
                                                                                                   \
                s = join(s, as(A, x[o + stride]));                                                 \
                s = join(s, as(A, x[o + 2 * stride]));                                             \
                all[o] = join(s, as(A, x[o + 3 * stride]));                                        \
            }                                                                                      \
        }                                                                                          \
        for (; i < n; i++, x += stride) {                                                          \
            WF_NO_OVERLAP                                                                          \
            for (int64_t o = 0; o < count; o++)                                                    \
                all[o] = join(all[o], as(A, x[o]));                                                \
        }                                                                                          \
    }                                                                                              \
    static void name(const void *x, gathered *all, int64_t count, int64_t step, int64_t n,         \
                     int64_t stride)                                                               \
    {                                                                                              \
        if (stride == 1 && n > 1)                                                                  \
            name##_rows(x, (A *)all, count, step, n);                                              \
        else if (step == 1 || count == 1)                                                          \
            name##_columns(x, (A *)all, count, n, stride);                                         \
        else                                                                                       \
            for (int64_t i = 0; i < n; i++)                                                        \
                name##_rows((const T *)x + i * stride, (A *)all, count, step, 1);                  \
    }

#define PLAIN(A, v) ((A)(v))
#define OF_BF16(A, v) ((A)wf_bf16_to_f32_inline(v))
#define PLUS(s, v) ((s) + (v))
#define PLUS_SQUARE(s, v) ((s) + (v) * (v))
#define PLUS_ABS(s, v) ((s) + ((v) < 0 ? -(v) : (v)))
#define TIMES(s, v) ((s) * (v))
/* A NaN stays. */
#define LARGER(s, v) ((v) > (s) || (v) != (v) ? (v) : (s))
#define SMALLER(s, v) ((v) < (s) || (v) != (v) ? (v) : (s))
/* Integers wrap. */
#define INT_PLUS(s, v) ((int64_t)((uint64_t)(s) + (uint64_t)(v)))
#define INT_PLUS_SQUARE(s, v) ((int64_t)((uint64_t)(s) + (uint64_t)(v) * (uint64_t)(v)))
#define INT_PLUS_ABS(s, v) INT_PLUS(s, (v) < 0 ? 0 - (uint64_t)(v) : (uint64_t)(v))
#define INT_TIMES(s, v) ((int64_t)((uint64_t)(s) * (uint64_t)(v)))
#define INT_LARGER(s, v) ((v) > (s) ? (v) : (s))
#define INT_SMALLER(s, v) ((v) < (s) ? (v) : (s))

#define FLOAT_FOLDS(type, T)                                                                       \
    FOLD(sum_##type, T, double, PLAIN, 0, PLUS, PLUS)                                              \
    FOLD(squares_##type, T, double, PLAIN, 0, PLUS_SQUARE, PLUS)                                   \
    FOLD(abs_##type, T, double, PLAIN, 0, PLUS_ABS, PLUS)                                          \
    FOLD(prod_##type, T, double, PLAIN, 1, TIMES, TIMES)                                           \
    FOLD(max_##type, T, double, PLAIN, -(double)INFINITY, LARGER, LARGER)                          \
    FOLD(min_##type, T, double, PLAIN, (double)INFINITY, SMALLER, SMALLER)
#define INT_FOLDS(type, T)                                                                         \
    FOLD(sum_##type, T, int64_t, PLAIN, 0, INT_PLUS, INT_PLUS)                                     \
    FOLD(squares_##type, T, int64_t, PLAIN, 0, INT_PLUS_SQUARE, INT_PLUS)                          \
    FOLD(abs_##type, T, int64_t, PLAIN, 0, INT_PLUS_ABS, INT_PLUS)                                 \
    FOLD(prod_##type, T, int64_t, PLAIN, 1, INT_TIMES, INT_TIMES)                                  \
    FOLD(max_##type, T, int64_t, PLAIN, INT64_MIN, INT_LARGER, INT_LARGER)                         \
    FOLD(min_##type, T, int64_t, PLAIN, INT64_MAX, INT_SMALLER, INT_SMALLER)
FLOAT_FOLDS(f32, float)
FLOAT_FOLDS(f64, double)
FOLD(sum_bf16, uint16_t, double, OF_BF16, 0, PLUS, PLUS)
INT_FOLDS(i32, int32_t)
INT_FOLDS(i64, int64_t)
FOLD(max_u8, uint8_t, int64_t, PLAIN, INT64_MIN, INT_LARGER, INT_LARGER)
FOLD(min_u8, uint8_t, int64_t, PLAIN, INT64_MAX, INT_SMALLER, INT_SMALLER)

typedef enum kind { SUM, SQUARES, ABS, PROD, MAX, MIN, N_KINDS } kind;

static kind kind_of(wf_reduction how)
{
    switch (how) {
    case WF_REDUCE_SUM_SQUARE:
    case WF_REDUCE_L2:
        return SQUARES;
    case WF_REDUCE_L1:
        return ABS;
    case WF_REDUCE_PROD:
        return PROD;
    case WF_REDUCE_MAX:
    case WF_REDUCE_LOG_SUM_EXP: /* its first pass */
        return MAX;
    case WF_REDUCE_MIN:
        return MIN;
    case WF_REDUCE_SUM:
    case WF_REDUCE_MEAN:
    case WF_REDUCE_LOG_SUM:
        break;
    }
    return SUM;
}

static fold_fn *fold_of(kind k, wf_dtype dtype)
{
    static fold_fn *const f32[] = {sum_f32, squares_f32, abs_f32, prod_f32, max_f32, min_f32};
    static fold_fn *const f64[] = {sum_f64, squares_f64, abs_f64, prod_f64, max_f64, min_f64};
    static fold_fn *const i32[] = {sum_i32, squares_i32, abs_i32, prod_i32, max_i32, min_i32};
    static fold_fn *const i64[] = {sum_i64, squares_i64, abs_i64, prod_i64, max_i64, min_i64};

    switch (dtype) {
    case WF_F32:
        return f32[k];
    case WF_F64:
        return f64[k];
    case WF_I32:
        return i32[k];
    case WF_I64:
        return i64[k];
    default:
        return k == MAX ? max_u8 : min_u8;
    }
}

/* What an output holds before its first element. Of no elements at all the smallest is the largest
 * number of the type. */
static gathered start_of(kind k, wf_dtype dtype)
{
    bool is_float = wf_dtype_is_float(dtype);
    int64_t low = dtype == WF_I32 ? INT32_MIN : dtype == WF_I64 ? INT64_MIN : 0;
    int64_t high = dtype == WF_I32    ? INT32_MAX
                   : dtype == WF_I64  ? INT64_MAX
                   : dtype == WF_BOOL ? 1
                                      : UINT8_MAX;

    switch (k) {
    case PROD:
        return is_float ? (gathered){.f = 1} : (gathered){.i = 1};
    case MAX:
        return is_float ? (gathered){.f = -(double)INFINITY} : (gathered){.i = low};
    case MIN:
        return is_float ? (gathered){.f = (double)INFINITY} : (gathered){.i = high};
    default:
        return is_float ? (gathered){.f = 0} : (gathered){.i = 0};
    }
}

/* all[o] += e^(x - top[o]), as a fold. */
#define EXP_FOLD(name, T, exponential)                                                             \
    WF_MULTIVERSION static void name(const T *x, double *all, const double *top, int64_t count,    \
                                     int64_t step, int64_t n, int64_t stride)                      \
    {                                                                                              \
        if (stride == 1) {                                                                         \
            for (int64_t o = 0; o < count; o++) {                                                  \
                double lane[LANES] = {0}, s = 0;                                                   \
                int64_t i = 0;                                                                     \
                                                                                                   \
                for (; i + LANES <= n; i += LANES)                                                 \
                    for (int k = 0; k < LANES; k++)                                                \
                        lane[k] += exponential((double)x[o * step + i + k] - top[o]);              \
                for (; i < n; i++)                                                                 \
                    s += exponential((double)x[o * step + i] - top[o]);                            \
                for (int width = LANES / 2; width > 0; width /= 2)                                 \
                    for (int k = 0; k < width; k++)                                                \
                        lane[k] += lane[k + width];                                                \
                all[o] += lane[0] + s;                                                             \
            }                                                                                      \
            return;                                                                                \
        }                                                                                          \
        for (int64_t i = 0; i < n; i++) {                                                          \
            WF_NO_OVERLAP                                                                          \
            for (int64_t o = 0; o < count; o++)                                                    \
                all[o] += exponential((double)x[o * step + i * stride] - top[o]);                  \
        }                                                                                          \
    }
EXP_FOLD(exp_f32, float, wf_exp_wide)
EXP_FOLD(exp_f64, double, exp)
EXP_FOLD(exp_i32, int32_t, exp)
EXP_FOLD(exp_i64, int64_t, exp)

typedef struct job {
    const wf_reduce_plan *plan;
    const char *in;
    wf_tensor *out;
    size_t size;
    wf_dtype dtype;
    wf_reduction how;
    kind kind;
    fold_fn *fold;
    int64_t each;   /* elements of one output */
    gathered *cuts; /* [PARTS, outputs], or NULL */
} job;

/* A tile of outputs on its way through the walk over what is reduced. */
typedef struct tile {
    const job *job;
    const char *x; /* the first element of its first output */
    gathered *all; /* [count] */
    const double *top;
    int64_t count, step;
} tile;

static void take_span(void *arg, const wf_span *s)
{
    const tile *t = arg;
    const job *j = t->job;

    j->fold(t->x + s->at[0] * (int64_t)j->size, t->all, t->count, t->step, s->count, s->step[0]);
}

static void take_exp_span(void *arg, const wf_span *s)
{
    const tile *t = arg;
    const void *x = t->x + s->at[0] * (int64_t)t->job->size;
    double *all = &t->all[0].f;

    if (t->job->dtype == WF_F32)
        exp_f32(x, all, t->top, t->count, t->step, s->count, s->step[0]);
    else if (t->job->dtype == WF_F64)
        exp_f64(x, all, t->top, t->count, t->step, s->count, s->step[0]);
    else if (t->job->dtype == WF_I32)
        exp_i32(x, all, t->top, t->count, t->step, s->count, s->step[0]);
    else
        exp_i64(x, all, t->top, t->count, t->step, s->count, s->step[0]);
}

static void take_all(tile *t, int64_t begin, int64_t end)
{
    gathered start = start_of(t->job->kind, t->job->dtype);

    for (int64_t o = 0; o < t->count; o++)
        t->all[o] = start;
    wf_walk_range(&t->job->plan->reduced, begin, end, take_span, t);
}

/* ln(sum e^x) = top + ln(sum e^(x - top)), where top is the largest x; when that is infinite or
 * NaN it is the result. */
static void log_sum_exp(tile *t)
{
    double top[TILE], usable[TILE];

    for (int64_t o = 0; o < t->count; o++) {
        top[o] = wf_dtype_is_float(t->job->dtype) ? t->all[o].f : (double)t->all[o].i;
        usable[o] = isfinite(top[o]) ? top[o] : 0;
        t->all[o].f = 0;
    }
    if (t->job->each == 0)
        for (int64_t o = 0; o < t->count; o++)
            top[o] = -(double)INFINITY;
    t->top = usable;
    wf_walk_range(&t->job->plan->reduced, 0, t->job->each, take_exp_span, t);
    for (int64_t o = 0; o < t->count; o++)
        t->all[o].f = isfinite(top[o]) ? top[o] + log(t->all[o].f) : top[o];
}

static int64_t int_of(double x)
{
    return x >= 0x1p63 ? INT64_MAX : x > -0x1p63 ? (int64_t)x : INT64_MIN;
}

static double finished(const job *j, double x)
{
    switch (j->how) {
    case WF_REDUCE_MEAN:
        return x / (double)j->each;
    case WF_REDUCE_L2:
        return sqrt(x);
    case WF_REDUCE_LOG_SUM:
        return log(x);
    default:
        return x;
    }
}

static int64_t finished_int(const job *j, gathered x)
{
    switch (j->how) {
    case WF_REDUCE_MEAN:
        return j->each ? x.i / j->each : 0;
    case WF_REDUCE_L2:
    case WF_REDUCE_LOG_SUM:
        return int_of(finished(j, (double)x.i));
    case WF_REDUCE_LOG_SUM_EXP:
        return int_of(x.f);
    default:
        return x.i;
    }
}

static void finish(const job *j, const gathered *all, int64_t first, int64_t count)
{
    for (int64_t o = 0; o < count; o++) {
        if (j->dtype == WF_F32)
            ((float *)j->out->data)[first + o] = (float)finished(j, all[o].f);
        else if (j->dtype == WF_F64)
            ((double *)j->out->data)[first + o] = finished(j, all[o].f);
        else if (j->dtype == WF_I32)
            ((int32_t *)j->out->data)[first + o] = (int32_t)finished_int(j, all[o]);
        else if (j->dtype == WF_I64)
            ((int64_t *)j->out->data)[first + o] = finished_int(j, all[o]);
        else
            ((uint8_t *)j->out->data)[first + o] = (uint8_t)all[o].i;
    }
}

static void kept_span(void *arg, const wf_span *s)
{
    const job *j = arg;
    gathered all[TILE];

    for (int64_t o = 0; o < s->count; o += TILE) {
        tile t = {.job = j,
                  .x = j->in + (s->at[0] + o * s->step[0]) * (int64_t)j->size,
                  .all = all,
                  .count = WF_MIN(s->count - o, (int64_t)TILE),
                  .step = s->step[0]};

        take_all(&t, 0, j->each);
        if (j->how == WF_REDUCE_LOG_SUM_EXP)
            log_sum_exp(&t);
        finish(j, all, s->first + o, t.count);
    }
}

static void kept_range(void *arg, int64_t begin, int64_t end)
{
    wf_walk_range(&((job *)arg)->plan->kept, begin, end, kept_span, arg);
}

/* One part of the elements of all outputs. */
typedef struct cut {
    const job *job;
    int64_t part;
} cut;

static void cut_span(void *arg, const wf_span *s)
{
    const cut *c = arg;
    const job *j = c->job;
    int64_t share = (j->each + PARTS - 1) / PARTS, begin = c->part * share;
    tile t = {.job = j,
              .x = j->in + s->at[0] * (int64_t)j->size,
              .all = j->cuts + c->part * j->plan->kept.elems + s->first,
              .count = s->count,
              .step = s->step[0]};

    take_all(&t, begin, WF_MIN(begin + share, j->each));
}

static void cut_range(void *arg, int64_t begin, int64_t end)
{
    for (int64_t part = begin; part < end; part++) {
        cut c = {arg, part};

        wf_walk_range(&c.job->plan->kept, 0, c.job->plan->kept.elems, cut_span, &c);
    }
}

static gathered merged(const job *j, gathered a, gathered b)
{
    bool is_float = wf_dtype_is_float(j->dtype);

    switch (j->kind) {
    case PROD:
        return is_float ? (gathered){.f = a.f * b.f} : (gathered){.i = INT_TIMES(a.i, b.i)};
    case MAX:
        return is_float ? (gathered){.f = LARGER(a.f, b.f)} : (gathered){.i = INT_LARGER(a.i, b.i)};
    case MIN:
        return is_float ? (gathered){.f = SMALLER(a.f, b.f)}
                        : (gathered){.i = INT_SMALLER(a.i, b.i)};
    default:
        return is_float ? (gathered){.f = a.f + b.f} : (gathered){.i = INT_PLUS(a.i, b.i)};
    }
}

static void join_cuts(const job *j)
{
    int64_t outputs = j->plan->kept.elems;

    for (int64_t part = 1; part < PARTS; part++)
        for (int64_t o = 0; o < outputs; o++)
            j->cuts[o] = merged(j, j->cuts[o], j->cuts[part * outputs + o]);
    finish(j, j->cuts, 0, outputs);
}

static bool is_cut(const wf_reduce_plan *p)
{
    return p->kept.elems > 0 && p->kept.elems <= TILE && p->reduced.elems >= WF_REDUCE_LEAST_CUT;
}

wf_status wf_reduce_prepare(wf_prep *prep, const wf_tensor *x, uint32_t mask, wf_err *err)
{
    wf_reduce_plan *p = wf_arena_alloc(prep->arena, sizeof *p);

    if (!p)
        return wf_fail_nomem(err, sizeof *p);
    wf_reduce_plan_of(x, mask, p);
    if (is_cut(p))
        prep->workspace_bytes = (size_t)p->kept.elems * PARTS * sizeof(gathered);
    prep->state = p;
    return WF_OK;
}

void wf_reduce_run(const wf_run *run, wf_reduction how, const wf_tensor *in, wf_tensor *out)
{
    const wf_reduce_plan *p = run->state;
    job j = {.plan = p,
             .in = in->data,
             .out = out,
             .size = wf_dtype_size(in->dtype),
             .dtype = in->dtype == WF_BF16 ? WF_F32 : in->dtype,
             .how = how,
             .kind = kind_of(how),
             .each = p->reduced.elems};

    wf_assert(in->dtype != WF_BF16 || j.kind == SUM);
    j.fold = in->dtype == WF_BF16 ? sum_bf16 : fold_of(j.kind, in->dtype);
    if (is_cut(p) && how != WF_REDUCE_LOG_SUM_EXP) {
        j.cuts = run->workspace;
        wf_pool_for(run->pool, PARTS, 1, cut_range, &j);
        join_cuts(&j);
        return;
    }
    wf_pool_for(run->pool, p->kept.elems, WF_GRAIN / WF_MAX(j.each, (int64_t)1) + 1, kept_range,
                &j);
}
