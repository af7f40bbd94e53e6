/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/resize.c - Resize and ResizeGrad, one axis after the other.
 *
 * Along an axis each output is a weighted sum of at most four inputs: 1 for nearest, 2 for linear,
 * 4 for cubic. prepare makes that table for every axis that changes; run passes over [outer, axis,
 * inner] once for each, first to last, and the gradient goes the same way back. Nearest moves bytes
 * and knows every type.
 */
#include "common/base/size.h"
#include "common/graph/graph.h"
#include "common/kernels/cpu/cpu.h"

#include <math.h>
#include <string.h>

enum { MOST_TAPS = 4 };

/* One axis that changes. */
typedef struct pass {
    int64_t outer, in, out, inner;
    int64_t *from;  /* [out, taps] */
    double *weight; /* [out, taps] */
    bool *outside;  /* [out]: the extrapolation value; NULL when there is none */
} pass;

typedef struct resize {
    uint32_t n_passes, taps;
    pass passes[WF_MAX_RANK];
    size_t half; /* bytes of one of the two buffers between passes */
    double extrapolation;
    bool extrapolates;
} resize;

/* How coordinates are found along one axis. */
typedef struct axis_rule {
    const char *mode, *nearest, *transform;
    int64_t in, out;
    double scale, start, end; /* roi */
    double cubic_a;
    bool exclude_outside;
} axis_rule;

static bool is(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

static double coordinate(const axis_rule *r, int64_t o)
{
    /* The length as the scale has it, which with given scales need not be whole. */
    double x = (double)o, in = (double)r->in, length = r->scale * in;

    if (is(r->transform, "align_corners"))
        return r->out == 1 ? 0 : x * (in - 1) / (length - 1);
    if (is(r->transform, "asymmetric"))
        return x / r->scale;
    if (is(r->transform, "tf_crop_and_resize"))
        return r->out > 1 ? r->start * (in - 1) + x * (r->end - r->start) * (in - 1) / (length - 1)
                          : 0.5 * (r->start + r->end) * (in - 1);
    if (is(r->transform, "pytorch_half_pixel") && r->out == 1)
        return 0;
    x = (x + 0.5) / r->scale - 0.5;
    if (is(r->transform, "half_pixel_symmetric"))
        x += in / 2 * (1 - (double)r->out / length);
    return x;
}

static int64_t nearest(const axis_rule *r, double x)
{
    x = is(r->nearest, "floor")               ? floor(x)
        : is(r->nearest, "ceil")              ? ceil(x)
        : is(r->nearest, "round_prefer_ceil") ? floor(x + 0.5)
                                              : ceil(x - 0.5);
    return x < 0 ? 0 : x >= (double)r->in ? r->in - 1 : (int64_t)x;
}

/* Keys 1981, with a for the slope. */
static double cubic(double a, double d)
{
    d = fabs(d);
    return d <= 1  ? ((a + 2) * d - (a + 3)) * d * d + 1
           : d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
                   : 0;
}

static void taps_at(const axis_rule *r, uint32_t taps, double x, int64_t from[], double weight[])
{
    /* Far outside all taps are the edge; the cast needs the bound. */
    double base = floor(fmin(fmax(x, -4), (double)r->in + 4)), sum = 0;

    if (taps == 1) {
        from[0] = nearest(r, x);
        weight[0] = 1;
        return;
    }
    for (uint32_t k = 0; k < taps; k++) {
        int64_t i = (int64_t)base + (int64_t)k - (taps == 4 ? 1 : 0);
        double d = fabs(x - (double)i);

        weight[k] = taps == 4 ? cubic(r->cubic_a, d) : fmax(0, 1 - d);
        if (r->exclude_outside && (i < 0 || i >= r->in))
            weight[k] = 0;
        from[k] = i < 0 ? 0 : i >= r->in ? r->in - 1 : i;
        sum += weight[k];
    }
    /* Beyond the taps' reach (far outside) the edge itself. */
    if (sum == 0)
        weight[0] = sum = 1;
    for (uint32_t k = 0; k < taps && (r->exclude_outside || taps == 2); k++)
        weight[k] /= sum;
}

static wf_status make_pass(wf_prep *prep, resize *v, const axis_rule *r, pass *p, wf_err *err)
{
    size_t n = (size_t)r->out * v->taps;

    p->from = wf_arena_array(prep->arena, n, sizeof p->from[0]);
    p->weight = wf_arena_array(prep->arena, n, sizeof p->weight[0]);
    if (v->extrapolates)
        p->outside = wf_arena_array(prep->arena, (size_t)r->out, sizeof p->outside[0]);
    if (!p->from || !p->weight || (v->extrapolates && !p->outside))
        return wf_fail_nomem(err, n * 16);
    for (int64_t o = 0; o < r->out; o++) {
        double x = coordinate(r, o);

        if (isnan(x))
            return wf_fail(err, WF_INVALID, NULL, "the scale or roi is no number");
        taps_at(r, v->taps, x, p->from + o * v->taps, p->weight + o * v->taps);
        if (v->extrapolates)
            p->outside[o] = x < 0 || x > (double)(r->in - 1);
    }
    return WF_OK;
}

/* Entry `axis` of a list for all axes or, with attr axes, for some; `otherwise` when it has none.
 */
static double listed(const wf_node *n, const wf_tensor *list, uint32_t axis, uint32_t rank,
                     int64_t part, double otherwise)
{
    size_t n_axes;
    const int64_t *axes = wf_node_ints(n, "axes", &n_axes);
    int64_t each = axes ? (int64_t)n_axes : (int64_t)rank;

    for (int64_t i = 0; i < each; i++) {
        int64_t a = axes ? axes[i] : i;

        if ((a < 0 ? a + rank : a) == axis && part * each + i < wf_elems(list))
            return wf_number_at(list, part * each + i);
    }
    return otherwise;
}

static bool is_there(const wf_tensor *t)
{
    return t && wf_elems(t) > 0;
}

/* With keep_aspect_ratio_policy all listed axes have one scale. */
static double kept_scale(const wf_node *n, const wf_tensor *x, const wf_tensor *sizes,
                         const char *policy)
{
    double best = -1;

    for (uint32_t i = 0; i < x->rank; i++) {
        double size = listed(n, sizes, i, x->rank, 0, -1), scale = size / (double)x->dims[i];

        if (size >= 0 && (best < 0 || (is(policy, "not_larger") ? scale < best : scale > best)))
            best = scale;
    }
    return best;
}

static wf_status axis_scale(const wf_node *n, const wf_tensor *x, const wf_tensor *y, uint32_t i,
                            const wf_tensor *scales, const wf_tensor *sizes, double *scale,
                            wf_err *err)
{
    const char *policy = wf_node_string(n, "keep_aspect_ratio_policy", "stretch");
    const wf_tensor *list = is_there(scales) ? scales : sizes;
    bool stretch = is(policy, "stretch");

    *scale = (double)y->dims[i] / (double)x->dims[i];
    if (list == sizes && stretch)
        return WF_OK;
    if (!list || !list->data)
        return wf_fail(err, WF_UNSUPPORTED, "make them a constant",
                       "the scales or sizes depend on the run");
    if (list == scales)
        *scale = listed(n, scales, i, x->rank, 0, 1);
    else if (listed(n, sizes, i, x->rank, 0, -1) >= 0)
        *scale = kept_scale(n, x, sizes, policy);
    return *scale > 0
               ? WF_OK
               : wf_fail(err, WF_INVALID, NULL, "scale %u is %g, and must be above 0", i, *scale);
}

static wf_status make_axis(wf_prep *prep, resize *v, const wf_tensor *x, const wf_tensor *y,
                           uint32_t i, const wf_tensor *const lists[], wf_err *err)
{
    const wf_node *n = prep->node;
    axis_rule r = {.mode = wf_node_string(n, "mode", "nearest"),
                   .nearest = wf_node_string(n, "nearest_mode", "round_prefer_floor"),
                   .transform = wf_node_string(n, "coordinate_transformation_mode", "half_pixel"),
                   .in = x->dims[i],
                   .out = y->dims[i],
                   .end = 1,
                   .cubic_a = (double)wf_node_float(n, "cubic_coeff_a", -0.75f),
                   .exclude_outside = wf_node_int(n, "exclude_outside", 0) != 0};
    pass *p = &v->passes[v->n_passes];

    WF_TRY(axis_scale(n, x, y, i, lists[1], lists[2], &r.scale, err));
    if (v->extrapolates) {
        if (!is_there(lists[0]) || !lists[0]->data)
            return wf_fail(err, WF_UNSUPPORTED, "make roi a constant",
                           "tf_crop_and_resize needs a roi that is known before the run");
        r.start = listed(n, lists[0], i, x->rank, 0, 0);
        r.end = listed(n, lists[0], i, x->rank, 1, 1);
    }
    if (r.in == r.out && r.scale == 1 && r.start == 0 && r.end == 1)
        return WF_OK;
    *p = (pass){.outer = 1, .in = r.in, .out = r.out, .inner = 1};
    for (uint32_t k = 0; k < i; k++)
        p->outer *= y->dims[k];
    for (uint32_t k = i + 1; k < x->rank; k++)
        p->inner *= x->dims[k];
    v->n_passes++;
    return make_pass(prep, v, &r, p, err);
}

/* lists: roi, scales, sizes. */
static wf_status make(wf_prep *prep, const wf_tensor *x, const wf_tensor *y,
                      const wf_tensor *const lists[], wf_err *err)
{
    resize *v = wf_arena_alloc(prep->arena, sizeof *v);
    const char *mode = wf_node_string(prep->node, "mode", "nearest");

    if (!v)
        return wf_fail_nomem(err, sizeof *v);
    memset(v, 0, sizeof *v);
    v->taps = is(mode, "nearest") ? 1 : is(mode, "linear") ? 2 : MOST_TAPS;
    v->extrapolates =
        is(wf_node_string(prep->node, "coordinate_transformation_mode", ""), "tf_crop_and_resize");
    v->extrapolation = (double)wf_node_float(prep->node, "extrapolation_value", 0);
    prep->state = v;
    if (wf_elems(x) == 0 || wf_elems(y) == 0)
        return wf_elems(y) == wf_elems(x)
                   ? WF_OK
                   : wf_fail(err, WF_SHAPE, NULL, "an empty tensor cannot be resized");
    for (uint32_t i = 0; i < x->rank; i++)
        WF_TRY(make_axis(prep, v, x, y, i, lists, err));
    for (uint32_t k = 0; k < v->n_passes; k++) {
        const pass *p = &v->passes[k];
        size_t bytes = (size_t)(p->outer * p->inner) * wf_dtype_size(x->dtype);

        if (!wf_mul_size(bytes, (size_t)WF_MAX(p->in, p->out), &bytes) || bytes > SIZE_MAX / 4)
            return wf_fail_nomem(err, SIZE_MAX);
        v->half = WF_MAX(v->half, wf_align_up(bytes, 64));
    }
    prep->workspace_bytes = 2 * v->half;
    return WF_OK;
}

static wf_status prepare(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                         wf_err *err)
{
    return make(prep, in[0], out[0], in + 1, err);
}

static wf_status prepare_grad(wf_prep *prep, const wf_tensor *const in[],
                              const wf_tensor *const out[], wf_err *err)
{
    return make(prep, out[0], in[0], in + 2, err);
}

typedef struct job {
    const resize *v;
    const pass *p;
    const char *from;
    char *to;
    size_t size;
} job;

#define PASS(T)                                                                                    \
    WF_MULTIVERSION static void axpy_##T(T w, const T *x, T *y, int64_t n)                         \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++)                                                            \
            y[i] += w * x[i];                                                                      \
    }                                                                                              \
    static void weigh_##T(void *arg, int64_t begin, int64_t end)                                   \
    {                                                                                              \
        const job *j = arg;                                                                        \
        const pass *p = j->p;                                                                      \
                                                                                                   \
        for (int64_t r = begin; r < end; r++) {                                                    \
            int64_t o = r % p->out;                                                                \
            T *y = (T *)(void *)j->to + r * p->inner;                                              \
                                                                                                   \
            memset(y, 0, (size_t)p->inner * sizeof(T));                                            \
            for (uint32_t k = 0; k < j->v->taps; k++)                                              \
                axpy_##T((T)p->weight[o * j->v->taps + k],                                         \
                         (const T *)(const void *)j->from +                                        \
                             (r / p->out * p->in + p->from[o * j->v->taps + k]) * p->inner,        \
                         y, p->inner);                                                             \
        }                                                                                          \
    }                                                                                              \
    static void weigh_back_##T(void *arg, int64_t begin, int64_t end)                              \
    {                                                                                              \
        const job *j = arg;                                                                        \
        const pass *p = j->p;                                                                      \
                                                                                                   \
        for (int64_t r = begin; r < end; r++) {                                                    \
            T *x = (T *)(void *)j->to + r * p->in * p->inner;                                      \
                                                                                                   \
            memset(x, 0, (size_t)(p->in * p->inner) * sizeof(T));                                  \
            for (int64_t o = 0; o < p->out; o++)                                                   \
                for (uint32_t k = 0; k < j->v->taps; k++)                                          \
                    axpy_##T((T)p->weight[o * j->v->taps + k],                                     \
                             (const T *)(const void *)j->from + (r * p->out + o) * p->inner,       \
                             x + p->from[o * j->v->taps + k] * p->inner, p->inner);                \
        }                                                                                          \
    }                                                                                              \
    /* Puts value where any axis lies outside: along this pass's axis. */                          \
    static void outside_##T(const pass *p, double value, T *y)                                     \
    {                                                                                              \
        for (int64_t r = 0; r < p->outer * p->out; r++)                                            \
            for (int64_t i = 0; p->outside[r % p->out] && i < p->inner; i++)                       \
                y[r * p->inner + i] = (T)value;                                                    \
    }
PASS(float)
PASS(double)

static void move(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const pass *p = j->p;
    size_t row = (size_t)p->inner * j->size;

    for (int64_t r = begin; r < end; r++)
        memcpy(j->to + (size_t)r * row,
               j->from + (size_t)(r / p->out * p->in + p->from[r % p->out]) * row, row);
}

/* The extrapolation value along pass k's axis: what later axes made of it is of one value too, so
 * it is put in once all are done. */
static void extrapolate(const resize *v, wf_tensor *y)
{
    for (uint32_t k = 0; v->extrapolates && k < v->n_passes; k++) {
        pass p = v->passes[k];

        /* inner as the output has it: later axes have changed since. */
        p.inner = wf_elems(y) / (p.outer * p.out);
        if (y->dtype == WF_F32)
            outside_float(&p, v->extrapolation, y->data);
        else if (y->dtype == WF_F64)
            outside_double(&p, v->extrapolation, y->data);
    }
}

static wf_status run_resize(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                            wf_err *err)
{
    const resize *v = run->state;
    const char *from = in[0]->data;
    wf_pool_fn *weigh = in[0]->dtype == WF_F64 ? weigh_double : weigh_float;

    if (v->extrapolates && in[0]->dtype != WF_F32 && in[0]->dtype != WF_F64)
        return wf_fail(err, WF_UNSUPPORTED, "Cast it first", "tf_crop_and_resize of %s",
                       wf_dtype_name(in[0]->dtype));
    if (v->n_passes == 0)
        wf_copy(out[0]->data, from, wf_tensor_bytes(out[0]));
    for (uint32_t k = 0; k < v->n_passes; k++) {
        const pass *p = &v->passes[k];
        char *half = (char *)run->workspace + (k % 2) * v->half;
        job j = {v, p, from, k + 1 == v->n_passes ? out[0]->data : half,
                 wf_dtype_size(in[0]->dtype)};

        wf_pool_for(run->pool, p->outer * p->out, WF_GRAIN / p->inner + 1,
                    v->taps == 1 ? move : weigh, &j);
        from = j.to;
    }
    extrapolate(v, out[0]);
    return WF_OK;
}

/* What was extrapolated does not depend on x. */
static void cut_outside(const resize *v, const wf_tensor *dy, char *copy)
{
    wf_tensor t = *dy;
    resize zero = *v;

    memcpy(copy, dy->data, wf_tensor_bytes(dy));
    t.data = copy;
    zero.extrapolation = 0;
    extrapolate(&zero, &t);
}

static wf_status run_grad(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                          wf_err *err)
{
    const resize *v = run->state;
    const char *from = in[0]->data;
    char *halves[] = {run->workspace, (char *)run->workspace + v->half};

    (void)err;
    if (v->n_passes == 0)
        wf_copy(out[0]->data, from, wf_tensor_bytes(out[0]));
    if (v->n_passes && v->extrapolates) {
        cut_outside(v, in[0], halves[v->n_passes % 2]);
        from = halves[v->n_passes % 2];
    }
    for (uint32_t k = v->n_passes; k-- > 0;) {
        const pass *p = &v->passes[k];
        job j = {v, p, from, k == 0 ? out[0]->data : halves[k % 2], wf_dtype_size(in[0]->dtype)};

        wf_pool_for(run->pool, p->outer, WF_GRAIN / (p->inner * p->out) + 1,
                    in[0]->dtype == WF_F64 ? weigh_back_double : weigh_back_float, &j);
        from = j.to;
    }
    return WF_OK;
}

static wf_status prepare_move(wf_prep *prep, const wf_tensor *const in[],
                              const wf_tensor *const out[], wf_err *err)
{
    if (!is(wf_node_string(prep->node, "mode", "nearest"), "nearest"))
        return wf_fail(err, WF_UNSUPPORTED, "Cast it to float32 first", "only nearest resizes %s",
                       wf_dtype_name(in[0]->dtype));
    return prepare(prep, in, out, err);
}

const wf_kernel wf_kernels_resize[] = {
    WF_ROW("Resize", WF_TYPES_FLOAT, run_resize, .prepare = prepare),
    WF_ROW("Resize", WF_TYPES_ALL & ~WF_TYPES_FLOAT, run_resize, .prepare = prepare_move),
    WF_ROW("ResizeGrad", WF_TYPES_FLOAT, run_grad, .prepare = prepare_grad,
           .domain = WF_DOMAIN_WEFT),
    {0},
};
