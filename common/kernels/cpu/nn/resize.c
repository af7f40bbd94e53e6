/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/nn/resize.c - Resize and ResizeGrad, by the passes of shape/resize.h.
 *
 * A table of the taps is made for every pass, by prepare, or by each run when the roi is not known
 * before. Nearest moves bytes and knows every type.
 */
#include "common/kernels/shape/resize.h"
#include "common/base/size.h"
#include "common/graph/graph.h"
#include "common/kernels/cpu/cpu.h"

#include <math.h>
#include <string.h>

/* One axis that changes, with its table. */
typedef struct pass {
    uint32_t axis, taps;
    int64_t outer, in, out, inner;
    wf_axis_rule rule;
    int64_t *from;  /* [out, taps] */
    double *weight; /* [out, taps] */
    bool *outside;  /* [out]: the extrapolation value; NULL when there is none */
} pass;

typedef struct resize {
    wf_resize g;
    pass passes[WF_MAX_RANK]; /* late: tables lie in the workspace and are made by each run */
} resize;

static void taps_at(const wf_axis_rule *r, uint32_t taps, double x, int64_t from[], double weight[])
{
    double sum = 0;

    for (uint32_t k = 0; k < taps; k++) {
        wf_resize_tap tap = wf_resize_tap_at(r, x, k);

        from[k] = tap.from;
        weight[k] = tap.weight;
        sum += tap.weight;
    }
    /* Where all were excluded, the edge itself. */
    if (sum == 0)
        weight[0] = sum = 1;
    for (uint32_t k = 0; k < taps; k++)
        weight[k] /= sum;
}

static wf_status fill_table(pass *p, wf_err *err)
{
    const wf_axis_rule *r = &p->rule;

    for (int64_t o = 0; o < r->out; o++) {
        double x = wf_resize_coordinate(r, o);

        if (isnan(x))
            return wf_resize_no_number(err);
        taps_at(r, p->taps, x, p->from + o * p->taps, p->weight + o * p->taps);
        if (p->outside)
            p->outside[o] = wf_resize_is_outside(r, x);
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
    p->outside = v->g.extrapolates ? (bool *)(p->weight + n) : NULL;
}

/* Tables, and how much lies in the workspace. */
static wf_status make_tables(wf_prep *prep, resize *v, wf_err *err)
{
    for (uint32_t k = 0; k < v->g.n_passes; k++) {
        const wf_resize_pass *g = &v->g.passes[k];
        pass *p = &v->passes[k];
        size_t bytes;

        *p = (pass){.axis = g->axis,
                    .taps = g->taps,
                    .outer = g->outer,
                    .in = g->in,
                    .out = g->out,
                    .inner = g->inner,
                    .rule = g->rule};
        bytes = table_bytes(p);
        if (v->g.late) {
            prep->workspace_bytes += bytes;
            continue;
        }
        lay_table(v, p, wf_arena_alloc(prep->arena, bytes));
        if (!p->from)
            return wf_fail_nomem(err, bytes);
        WF_TRY(fill_table(p, err));
    }
    prep->workspace_bytes += 2 * v->g.half;
    return WF_OK;
}

/* lists: roi, scales, sizes. */
static wf_status make(wf_prep *prep, const wf_tensor *x, const wf_tensor *y,
                      const wf_tensor *const lists[], wf_err *err)
{
    resize *v = wf_arena_alloc(prep->arena, sizeof *v);

    if (!v)
        return wf_fail_nomem(err, sizeof *v);
    prep->state = v;
    WF_TRY(wf_resize_read(prep->node, x, y, lists, &v->g, err));
    return make_tables(prep, v, err);
}

static double listed(const wf_node *n, const wf_tensor *list, uint32_t axis, uint32_t rank,
                     int64_t part, double otherwise)
{
    int64_t at = wf_resize_listed(n, list, axis, rank, part);

    return at < 0 ? otherwise : wf_number_at(list, at);
}

/* Start and end of the roi along an axis. */
static void set_roi(const wf_node *n, const wf_tensor *roi, uint32_t rank, pass *p)
{
    p->rule.start = listed(n, roi, p->axis, rank, 0, 0);
    p->rule.end = listed(n, roi, p->axis, rank, 1, 1);
}

/* The same with the tables that a run makes from its roi, behind the two buffers. */
static wf_status with_tables(const wf_run *run, const wf_tensor *roi, resize *v, wf_err *err)
{
    char *at = (char *)run->workspace;

    *v = *(const resize *)run->state;
    at += 2 * v->g.half;
    for (uint32_t k = 0; v->g.late && k < v->g.n_passes; k++) {
        pass *p = &v->passes[k];

        lay_table(v, p, at);
        at += table_bytes(p);
        set_roi(run->node, roi, v->g.rank, p);
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
    for (uint32_t k = 0; v->g.extrapolates && k < v->g.n_passes; k++) {
        pass p = v->passes[k];

        /* inner as the output has it: later axes have changed since. */
        p.inner = wf_elems(y) / (p.outer * p.out);
        if (y->dtype == WF_F32)
            outside_float(&p, v->g.extrapolation, y->data);
        else if (y->dtype == WF_F64)
            outside_double(&p, v->g.extrapolation, y->data);
    }
}

static wf_status run_resize(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                            wf_err *err)
{
    const char *from = in[0]->data;
    resize v;
    wf_pool_fn *weigh = in[0]->dtype == WF_F64 ? weigh_double : weigh_float;

    WF_TRY(with_tables(run, in[1], &v, err));
    if (v.g.extrapolates && in[0]->dtype != WF_F32 && in[0]->dtype != WF_F64)
        return wf_fail(err, WF_UNSUPPORTED, "Cast it first", "tf_crop_and_resize of %s",
                       wf_dtype_name(in[0]->dtype));
    if (v.g.n_passes == 0)
        wf_copy(out[0]->data, from, wf_tensor_bytes(out[0]));
    for (uint32_t k = 0; k < v.g.n_passes; k++) {
        const pass *p = &v.passes[k];
        char *half = (char *)run->workspace + (k % 2) * v.g.half;
        job j = {p, from, k + 1 == v.g.n_passes ? out[0]->data : half, wf_dtype_size(in[0]->dtype)};

        wf_pool_for(run->pool, p->outer * p->out, WF_GRAIN / p->inner + 1,
                    v.g.is_nearest ? move : weigh, &j);
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
    zero.g.extrapolation = 0;
    extrapolate(&zero, &t);
}

static wf_status run_grad(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                          wf_err *err)
{
    const char *from = in[0]->data;
    resize v;
    char *halves[2] = {run->workspace};

    WF_TRY(with_tables(run, in[2], &v, err));
    halves[1] = halves[0] + v.g.half;
    if (v.g.n_passes == 0)
        wf_copy(out[0]->data, from, wf_tensor_bytes(out[0]));
    if (v.g.n_passes && v.g.extrapolates) {
        cut_outside(&v, in[0], halves[v.g.n_passes % 2]);
        from = halves[v.g.n_passes % 2];
    }
    for (uint32_t k = v.g.n_passes; k-- > 0;) {
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
    if (strcmp(wf_node_string(prep->node, "mode", "nearest"), "nearest") != 0)
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
