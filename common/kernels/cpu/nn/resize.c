/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/nn/resize.c - Resize and ResizeGrad, one axis after the other.
 *
 * Along an axis each output is a weighted sum of inputs near it: 1 for nearest, 2 for linear, 4 for
 * cubic, and more where antialias stretches the filter over what shrinks. A table of them is made
 * for every axis that changes, by prepare, or by each run when the roi is not known before; run
 * passes over [outer, axis, inner] once for each, first to last, and the gradient goes the same way
 * back. Nearest moves bytes and knows every type.
 */
#include "common/base/size.h"
#include "common/graph/graph.h"
#include "common/kernels/cpu/cpu.h"

#include <math.h>
#include <string.h>

/* How coordinates are found along one axis. */
typedef struct axis_rule {
    const char *nearest, *transform;
    uint32_t radius; /* of the filter: 0 for nearest, 1 for linear, 2 for cubic */
    int64_t in, out;
    double scale, start, end; /* roi */
    double squeeze;           /* below 1: the filter is wider by its reciprocal */
    double cubic_a;
    bool exclude_outside;
} axis_rule;

/* One axis that changes. */
typedef struct pass {
    uint32_t axis, taps;
    int64_t outer, in, out, inner;
    axis_rule rule;
    int64_t *from;  /* [out, taps] */
    double *weight; /* [out, taps] */
    bool *outside;  /* [out]: the extrapolation value; NULL when there is none */
} pass;

typedef struct resize {
    uint32_t rank, n_passes;
    pass passes[WF_MAX_RANK];
    size_t half; /* bytes of one of the two buffers between passes */
    double extrapolation;
    bool extrapolates, is_nearest;
    bool late; /* tables lie in the workspace and are made by each run, which knows the roi */
} resize;

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
    double reach = r->radius / r->squeeze, sum = 0;
    int64_t first;

    if (r->radius == 0) {
        from[0] = nearest(r, x);
        weight[0] = 1;
        return;
    }
    x = fmin(fmax(x, -reach - 2), (double)r->in + reach + 2);
    first = (int64_t)floor(x - reach) + 1;
    for (uint32_t k = 0; k < taps; k++) {
        int64_t i = first + (int64_t)k;
        double d = fabs(x - (double)i) * r->squeeze;

        weight[k] = r->radius == 2 ? cubic(r->cubic_a, d) : fmax(0, 1 - d);
        if (r->exclude_outside && (i < 0 || i >= r->in))
            weight[k] = 0;
        from[k] = i < 0 ? 0 : i >= r->in ? r->in - 1 : i;
        sum += weight[k];
    }
    /* Where all were excluded, the edge itself. */
    if (sum == 0)
        weight[0] = sum = 1;
    for (uint32_t k = 0; k < taps; k++)
        weight[k] /= sum;
}

static wf_status fill_table(pass *p, wf_err *err)
{
    const axis_rule *r = &p->rule;

    for (int64_t o = 0; o < r->out; o++) {
        double x = coordinate(r, o);

        if (isnan(x))
            return wf_fail(err, WF_INVALID, NULL, "the scale or roi is no number");
        taps_at(r, p->taps, x, p->from + o * p->taps, p->weight + o * p->taps);
        if (p->outside)
            p->outside[o] = x < 0 || x > (double)(r->in - 1);
    }
    return WF_OK;
}

static size_t table_bytes(const pass *p)
{
    return wf_align_up((size_t)p->out * (p->taps * (sizeof p->from[0] + sizeof p->weight[0]) + 1),
                       64);
}

/* The table of a pass in table_bytes() of memory. */
static void lay_table(const resize *v, pass *p, void *memory)
{
    size_t n = (size_t)p->out * p->taps;

    p->from = memory;
    p->weight = (double *)(p->from + n);
    p->outside = v->extrapolates ? (bool *)(p->weight + n) : NULL;
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

/* Start and end of the roi along an axis. */
static void set_roi(const wf_node *n, const wf_tensor *roi, uint32_t rank, pass *p)
{
    p->rule.start = listed(n, roi, p->axis, rank, 0, 0);
    p->rule.end = listed(n, roi, p->axis, rank, 1, 1);
}

/* How many inputs an output is made of. */
static wf_status count_taps(pass *p, wf_err *err)
{
    double reach = p->rule.radius / p->rule.squeeze;

    /* A scale that shrinks the axis to one element or more reaches no further. */
    if (!(reach <= 4 * (double)p->in + 4) || reach > INT32_MAX / 4)
        return wf_fail(err, WF_INVALID, NULL, "a scale of %g for an axis of %lld", p->rule.scale,
                       (long long)p->in);
    p->taps = p->rule.radius == 0 ? 1 : 2 * (uint32_t)ceil(reach);
    return (uint64_t)p->out <= (uint64_t)INT64_MAX / 64 / p->taps ? WF_OK
                                                                  : wf_fail_nomem(err, SIZE_MAX);
}

static wf_status make_axis(wf_prep *prep, resize *v, const wf_tensor *x, const wf_tensor *y,
                           uint32_t i, const wf_tensor *const lists[], wf_err *err)
{
    const wf_node *n = prep->node;
    const char *mode = wf_node_string(n, "mode", "nearest");
    axis_rule r = {.nearest = wf_node_string(n, "nearest_mode", "round_prefer_floor"),
                   .transform = wf_node_string(n, "coordinate_transformation_mode", "half_pixel"),
                   .radius = is(mode, "nearest")  ? 0
                             : is(mode, "linear") ? 1
                                                  : 2,
                   .in = x->dims[i],
                   .out = y->dims[i],
                   .end = 1,
                   .squeeze = 1,
                   .cubic_a = (double)wf_node_float(n, "cubic_coeff_a", -0.75f),
                   .exclude_outside = wf_node_int(n, "exclude_outside", 0) != 0};
    pass *p = &v->passes[v->n_passes];

    WF_TRY(axis_scale(n, x, y, i, lists[1], lists[2], &r.scale, err));
    if (wf_node_int(n, "antialias", 0))
        r.squeeze = fmin(r.scale, 1);
    *p = (pass){.axis = i, .outer = 1, .in = r.in, .out = r.out, .inner = 1, .rule = r};
    if (v->extrapolates && !v->late)
        set_roi(n, lists[0], x->rank, p);
    if (r.in == r.out && r.scale == 1 && !v->late && p->rule.start == 0 && p->rule.end == 1)
        return WF_OK;
    for (uint32_t k = 0; k < i; k++)
        p->outer *= y->dims[k];
    for (uint32_t k = i + 1; k < x->rank; k++)
        p->inner *= x->dims[k];
    v->n_passes++;
    return count_taps(p, err);
}

/* Tables, and how much lies in the workspace. */
static wf_status make_tables(wf_prep *prep, resize *v, wf_dtype dtype, wf_err *err)
{
    for (uint32_t k = 0; k < v->n_passes; k++) {
        pass *p = &v->passes[k];
        size_t bytes = (size_t)(p->outer * p->inner) * wf_dtype_size(dtype);

        if (!wf_mul_size(bytes, (size_t)WF_MAX(p->in, p->out), &bytes) || bytes > SIZE_MAX / 64)
            return wf_fail_nomem(err, SIZE_MAX);
        v->half = WF_MAX(v->half, wf_align_up(bytes, 64));
        bytes = table_bytes(p);
        if (v->late) {
            prep->workspace_bytes += bytes;
            continue;
        }
        lay_table(v, p, wf_arena_alloc(prep->arena, bytes));
        if (!p->from)
            return wf_fail_nomem(err, bytes);
        WF_TRY(fill_table(p, err));
    }
    prep->workspace_bytes += 2 * v->half;
    return WF_OK;
}

/* lists: roi, scales, sizes. */
static wf_status make(wf_prep *prep, const wf_tensor *x, const wf_tensor *y,
                      const wf_tensor *const lists[], wf_err *err)
{
    resize *v = wf_arena_alloc(prep->arena, sizeof *v);

    if (!v)
        return wf_fail_nomem(err, sizeof *v);
    memset(v, 0, sizeof *v);
    v->rank = x->rank;
    v->is_nearest = is(wf_node_string(prep->node, "mode", "nearest"), "nearest");
    v->extrapolates =
        is(wf_node_string(prep->node, "coordinate_transformation_mode", ""), "tf_crop_and_resize");
    v->extrapolation = (double)wf_node_float(prep->node, "extrapolation_value", 0);
    prep->state = v;
    if (v->extrapolates && !is_there(lists[0]))
        return wf_fail(err, WF_INVALID, NULL, "tf_crop_and_resize needs a roi");
    v->late = v->extrapolates && !lists[0]->data;
    if (wf_elems(x) == 0 || wf_elems(y) == 0)
        return wf_elems(y) == wf_elems(x)
                   ? WF_OK
                   : wf_fail(err, WF_SHAPE, NULL, "an empty tensor cannot be resized");
    for (uint32_t i = 0; i < x->rank; i++)
        WF_TRY(make_axis(prep, v, x, y, i, lists, err));
    return make_tables(prep, v, x->dtype, err);
}

/* The same with the tables that a run makes from its roi, behind the two buffers. */
static wf_status with_tables(const wf_run *run, const wf_tensor *roi, resize *v, wf_err *err)
{
    char *at = (char *)run->workspace;

    *v = *(const resize *)run->state;
    at += 2 * v->half;
    for (uint32_t k = 0; v->late && k < v->n_passes; k++) {
        pass *p = &v->passes[k];

        lay_table(v, p, at);
        at += table_bytes(p);
        set_roi(run->node, roi, v->rank, p);
        WF_TRY(fill_table(p, err));
    }
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
    const pass *p;
    const char *from;
    char *to;
    size_t size;
} job;

#define T float
#define SUFFIX float
#include "common/kernels/cpu/nn/resize_template.h"

#define T double
#define SUFFIX double
#include "common/kernels/cpu/nn/resize_template.h"

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
    const char *from = in[0]->data;
    resize v;
    wf_pool_fn *weigh = in[0]->dtype == WF_F64 ? weigh_double : weigh_float;

    WF_TRY(with_tables(run, in[1], &v, err));
    if (v.extrapolates && in[0]->dtype != WF_F32 && in[0]->dtype != WF_F64)
        return wf_fail(err, WF_UNSUPPORTED, "Cast it first", "tf_crop_and_resize of %s",
                       wf_dtype_name(in[0]->dtype));
    if (v.n_passes == 0)
        wf_copy(out[0]->data, from, wf_tensor_bytes(out[0]));
    for (uint32_t k = 0; k < v.n_passes; k++) {
        const pass *p = &v.passes[k];
        char *half = (char *)run->workspace + (k % 2) * v.half;
        job j = {p, from, k + 1 == v.n_passes ? out[0]->data : half, wf_dtype_size(in[0]->dtype)};

        wf_pool_for(run->pool, p->outer * p->out, WF_GRAIN / p->inner + 1,
                    v.is_nearest ? move : weigh, &j);
        from = j.to;
    }
    extrapolate(&v, out[0]);
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
    const char *from = in[0]->data;
    resize v;
    char *halves[2] = {run->workspace};

    WF_TRY(with_tables(run, in[2], &v, err));
    halves[1] = halves[0] + v.half;
    if (v.n_passes == 0)
        wf_copy(out[0]->data, from, wf_tensor_bytes(out[0]));
    if (v.n_passes && v.extrapolates) {
        cut_outside(&v, in[0], halves[v.n_passes % 2]);
        from = halves[v.n_passes % 2];
    }
    for (uint32_t k = v.n_passes; k-- > 0;) {
        const pass *p = &v.passes[k];
        job j = {p, from, k == 0 ? out[0]->data : halves[k % 2], wf_dtype_size(in[0]->dtype)};

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
