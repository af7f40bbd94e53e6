/* SPDX-License-Identifier: Apache-2.0 */
/* bench/filled_plan.c - plans with inputs and outputs: of a model, and of products alone. */
#include "bench/filled_plan.h"
#include "common/base/pages.h"
#include "common/base/rng.h"
#include "common/graph/emit.h"
#include "common/graph/narrow.h"
#include "common/session/job_data_conf.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { STREAM = 11 };
/* Of float32 sums of some thousand products, relative: the root of their number, times 2^-24. */
static const float ROUNDING = 0x1p-18f;

/* ---- a batch ---- */

static const wf_compiled_feed *feed_of(const wf_compiled *c, const char *name)
{
    for (size_t i = 0; i < c->n_feeds; i++)
        if (strcmp(c->feeds[i].name, name) == 0)
            return &c->feeds[i];
    return NULL;
}

/* 0: any real number. */
static int64_t limit_of(const filled_model *m, const wf_value *v)
{
    const wf_compiled_feed *f = feed_of(m->compiled, v->name);

    for (size_t i = 0; i < m->spec->n_limits; i++)
        if (strcmp(m->spec->limits[i].input, v->name) == 0)
            return m->spec->limits[i].limit;
    if (f && f->is_share)
        return 2;
    return f ? f->classes : 0;
}

static int64_t extent(const filled_model *m, const wf_value *v, uint32_t axis)
{
    return v->axes[axis].size < 0 && axis == 0 ? m->spec->batch : v->axes[axis].size;
}

static wf_status fill(const filled_model *m, const wf_value *v, void **out, wf_err *err)
{
    wf_rng_key key = {m->spec->seed, wf_rng_fold_str(STREAM, v->name)};
    int64_t n = 1, limit = limit_of(m, v);

    for (int32_t k = 0; k < v->rank; k++)
        n *= extent(m, v, (uint32_t)k);
    if (n < 0)
        return wf_fail(err, WF_UNSUPPORTED, NULL, "\"%s\": an axis behind the first is not known",
                       v->name);
    *out = wf_pages_alloc((size_t)n * wf_dtype_size(v->dtype));
    if (!*out)
        return wf_fail_nomem(err, (size_t)n * wf_dtype_size(v->dtype));
    if (v->dtype == WF_F32)
        for (int64_t i = 0; i < n; i++)
            ((float *)*out)[i] = limit ? (float)wf_rng_below(key, (uint64_t)i, (uint64_t)limit)
                                       : 2 * wf_rng_f32(key, (uint64_t)i) - 1;
    else if (v->dtype == WF_I64 && limit)
        for (int64_t i = 0; i < n; i++)
            ((int64_t *)*out)[i] = (int64_t)wf_rng_below(key, (uint64_t)i, (uint64_t)limit);
    else
        return wf_fail(err, WF_USAGE, "give --below NAME=N: whole numbers from 0 to N - 1",
                       "the input \"%s\" holds %s", v->name, wf_dtype_name(v->dtype));
    return WF_OK;
}

/* ---- a model ---- */

static bool is_job(const char *path)
{
    const char *dot = strrchr(path, '.');

    return dot && (strcmp(dot, ".yaml") == 0 || strcmp(dot, ".yml") == 0);
}

wf_status filled_model_open(const filled_spec *spec, filled_model *out, wf_err *err)
{
    const wf_strategy *strategy = wf_strategy_find("parameter_server");
    wf_compile_spec how = {
        .onnx_path = spec->path, .mode = WF_COMPILE_TRAIN, .strategy = strategy, .n_ps = 1};
    const wf_graph *g;

    *out = (filled_model){.spec = spec};
    if (is_job(spec->path)) {
        WF_TRY(wf_job_load(spec->path, &out->job, err));
        wf_compile_spec_of_job(out->job, WF_COMPILE_TRAIN, strategy, 1, &out->layers, &how);
    }
    how.batch = spec->batch;
    WF_TRY(wf_compile(&how, &out->compiled, err));
    g = out->compiled->graph;
    out->fed = calloc(g->n_inputs + 1, sizeof *out->fed);
    if (!out->fed)
        return wf_fail_nomem(err, g->n_inputs * sizeof *out->fed);
    for (size_t i = 0; i < g->n_inputs; i++)
        WF_TRY(fill(out, g->inputs[i], &out->fed[i], err));
    return WF_OK;
}

void filled_model_close(filled_model *m)
{
    for (size_t i = 0; m->fed && i < m->compiled->graph->n_inputs; i++)
        free(m->fed[i]);
    free(m->fed);
    wf_compiled_free(&m->compiled);
    wf_job_free(&m->job);
}

/* ---- plans ---- */

/* Memory of the device for a port that lies there. */
static wf_status take_there(const filled_plan *p, const wf_port *port, void **out, wf_err *err)
{
    *out = wf_device_alloc(p->device, port->bytes);
    return *out ? WF_OK
                : wf_fail(err, WF_NOMEM, NULL, "%s has no %zu bytes left", p->device->name,
                          port->bytes);
}

static wf_status bind_output(filled_plan *p, uint32_t i, wf_err *err)
{
    const wf_port *port = wf_plan_output(p->plan, i);

    p->results[i] = wf_pages_alloc(port->bytes);
    if (!p->results[i])
        return wf_fail_nomem(err, port->bytes);
    if (port->device->is_host) {
        p->bytes_out += port->bytes;
        wf_plan_bind_output(p->plan, i, p->results[i]);
        return WF_OK;
    }
    WF_TRY(take_there(p, port, &p->results_there[i], err));
    wf_plan_bind_output(p->plan, i, p->results_there[i]);
    return WF_OK;
}

static wf_status bind_outputs(filled_plan *p, wf_err *err)
{
    uint32_t n = wf_plan_n_outputs(p->plan);

    p->results = calloc(n + 1, sizeof *p->results);
    p->results_there = calloc(n + 1, sizeof *p->results_there);
    if (!p->results || !p->results_there)
        return wf_fail_nomem(err, n * sizeof *p->results);
    for (uint32_t i = 0; i < n; i++)
        WF_TRY(bind_output(p, i, err));
    return WF_OK;
}

static wf_status bind_input(filled_plan *p, uint32_t i, const void *data, wf_err *err)
{
    const wf_port *port = wf_plan_input(p->plan, i);
    wf_stream *stream = NULL;
    wf_status rc;

    p->inputs[i] = data;
    if (port->device->is_host) {
        p->bytes_in += port->bytes;
        p->pinned[i] = wf_buf_new_pinned(p->device, port->bytes);
        if (!p->pinned[i])
            return wf_fail_nomem(err, port->bytes);
        memcpy(p->pinned[i]->data, data, port->bytes);
        wf_plan_bind_input(p->plan, i, p->pinned[i]->data);
        return WF_OK;
    }
    WF_TRY(take_there(p, port, &p->inputs_there[i], err));
    WF_TRY(wf_stream_new(p->device, &stream, err));
    rc = wf_stream_copy(stream, WF_COPY_IN, p->inputs_there[i], data, port->bytes, err);
    if (rc == WF_OK)
        rc = wf_stream_wait(stream, err);
    wf_stream_free(&stream);
    wf_plan_bind_input(p->plan, i, p->inputs_there[i]);
    return rc;
}

static wf_status bind_inputs(const filled_model *m, filled_plan *p, wf_err *err)
{
    const wf_graph *g = m->compiled->graph;

    p->inputs_there = calloc(wf_plan_n_inputs(p->plan) + (size_t)1, sizeof *p->inputs_there);
    p->inputs = calloc(wf_plan_n_inputs(p->plan) + (size_t)1, sizeof *p->inputs);
    p->pinned = calloc(wf_plan_n_inputs(p->plan) + (size_t)1, sizeof *p->pinned);
    if (!p->inputs_there || !p->inputs || !p->pinned)
        return wf_fail_nomem(err, wf_plan_n_inputs(p->plan) * sizeof *p->inputs_there);
    for (size_t i = 0; i < g->n_inputs; i++) {
        int64_t at = wf_plan_find_input(p->plan, g->inputs[i]->name);

        if (at >= 0)
            WF_TRY(bind_input(p, (uint32_t)at, m->fed[i], err));
    }
    for (uint32_t i = 0; i < wf_plan_n_inputs(p->plan); i++) {
        const char *variable = wf_plan_input(p->plan, i)->variable;
        int64_t v = variable ? wf_compiled_find(m->compiled, variable) : -1;

        if (v >= 0)
            WF_TRY(bind_input(p, i, m->compiled->variables[v].initial->data, err));
    }
    return WF_OK;
}

wf_status filled_plan_of_model(const filled_model *m, const wf_device *device, wf_pool *pool,
                               filled_plan *out, wf_err *err)
{
    const wf_graph *g = m->compiled->graph;
    wf_plan_shape shapes[WF_DATA_MAX_FIELDS];
    wf_plan_options o = {
        .device = device, .pool = pool, .shapes = shapes, .compute = m->spec->compute};
    const char **names;
    wf_status rc;

    *out = (filled_plan){.device = device};
    if (g->n_inputs > WF_DATA_MAX_FIELDS)
        return wf_fail(err, WF_UNSUPPORTED, NULL, "%zu inputs", g->n_inputs);
    for (size_t i = 0; i < g->n_inputs; i++) {
        wf_plan_shape *s = &shapes[o.n_shapes++];

        *s = (wf_plan_shape){.name = g->inputs[i]->name, .rank = (uint32_t)g->inputs[i]->rank};
        for (uint32_t k = 0; k < s->rank; k++)
            s->dims[k] = extent(m, g->inputs[i], k);
    }
    names = calloc(m->compiled->n_variables + 1, sizeof *names);
    if (!names)
        return wf_fail_nomem(err, m->compiled->n_variables * sizeof *names);
    for (size_t i = 0; i < m->compiled->n_variables; i++)
        names[i] = m->compiled->variables[i].name;
    o.resident = names;
    o.n_resident = m->compiled->n_variables;
    rc = wf_plan_new(g, &o, &out->plan, err);
    free(names);
    WF_TRY(rc);
    WF_TRY(bind_inputs(m, out, err));
    return bind_outputs(out, err);
}

/* What a compute type keeps between the operations of a compiled graph. */
static wf_dtype kept_of(wf_compute compute)
{
    return compute == WF_COMPUTE_BF16 ? WF_BF16 : compute == WF_COMPUTE_F16 ? WF_F16 : WF_F32;
}

/* A matrix of n x n whose products with itself neither grow nor vanish: a constant times `one`,
 * since what follows from constants alone would be computed when the plan is made. */
static wf_value *square(wf_emit *e, const char *name, int64_t n, wf_value *one)
{
    wf_tensor *t = NULL;

    if (wf_tensor_new(WF_F32, 2, (int64_t[]){n, n}, &t, e->err) != WF_OK)
        return NULL;
    for (int64_t i = 0; i < n * n; i++)
        wf_f32_mut(t)[i] = (float)((wf_rng_f64((wf_rng_key){1, STREAM}, (uint64_t)i) - 0.5) *
                                   sqrt(12.0 / (double)n));
    return wf_emit_mul(e, wf_emit_constant(e, name, &t), one);
}

/* Has all nodes keep their results, but for the last one. */
static wf_status keep(wf_graph *g, wf_dtype kept, wf_err *err)
{
    if (kept == WF_F32)
        return WF_OK;
    for (size_t i = 0; i < g->n_nodes; i++) {
        wf_node *n = g->nodes[i];

        WF_TRY(wf_node_set_string(g, n, WF_NARROW, wf_dtype_name(kept), err));
        WF_TRY(wf_node_set_int(g, n, WF_NARROW_OUT, n->out[0] != g->outputs[0], err));
    }
    return wf_infer(g, err);
}

static wf_status make_products(wf_graph *g, int64_t n, wf_dtype kept, wf_err *err)
{
    wf_value *one, *a, *x;
    wf_emit e;

    WF_TRY(wf_graph_add_value(g, "one", &one, err));
    wf_value_set_type(one, WF_F32, 1, (int64_t[]){1});
    WF_TRY(wf_graph_add_input(g, one, err));
    e = wf_emit_begin(g, "products", err);
    a = square(&e, "a", n, one);
    x = square(&e, "x", n, one);
    for (int i = 0; i < FILLED_PRODUCTS; i++)
        x = wf_emit_matmul(&e, a, x);
    x = wf_emit_reduce_sum(&e, x, 0, NULL, false);
    WF_TRY(wf_emit_end(&e));
    WF_TRY(wf_graph_add_output(g, x, err));
    return keep(g, kept, err);
}

wf_status filled_plan_of_products(int64_t n, wf_compute compute, const wf_device *device,
                                  wf_pool *pool, filled_plan *out, wf_err *err)
{
    static const float one = 1;
    wf_plan_options o = {.device = device, .pool = pool, .compute = compute};
    wf_graph *g = NULL;
    wf_status rc = wf_graph_new("products", &g, err);

    *out = (filled_plan){.device = device};
    if (rc == WF_OK)
        rc = make_products(g, n, kept_of(compute), err);
    if (rc == WF_OK)
        rc = wf_plan_new(g, &o, &out->plan, err);
    if (rc == WF_OK) {
        wf_plan_bind_input(out->plan, 0, &one);
        out->bytes_in = sizeof one;
        rc = bind_outputs(out, err);
    }
    wf_graph_free(&g);
    return rc;
}

void filled_plan_close(filled_plan *p)
{
    for (uint32_t i = 0; p->results && i < wf_plan_n_outputs(p->plan); i++)
        free(p->results[i]);
    for (uint32_t i = 0; p->results_there && i < wf_plan_n_outputs(p->plan); i++)
        wf_device_free(p->device, p->results_there[i]);
    for (uint32_t i = 0; p->inputs_there && i < wf_plan_n_inputs(p->plan); i++)
        wf_device_free(p->device, p->inputs_there[i]);
    for (uint32_t i = 0; p->moved && i < wf_plan_n_inputs(p->plan); i++)
        free(p->moved[i]);
    for (uint32_t i = 0; p->pinned && i < wf_plan_n_inputs(p->plan); i++)
        wf_buf_unref(&p->pinned[i]);
    free(p->moved);
    free(p->pinned);
    free(p->inputs);
    free(p->results);
    free(p->results_there);
    free(p->inputs_there);
    wf_plan_free(&p->plan);
}

static wf_status move_input(filled_plan *p, uint32_t i, wf_err *err)
{
    const wf_port *port = wf_plan_input(p->plan, i);
    const float *from = p->inputs[i];
    float *to = p->moved[i] = wf_pages_alloc(port->bytes);

    if (!to)
        return wf_fail_nomem(err, port->bytes);
    for (int64_t k = 0; k < port->elems; k++)
        to[k] = from[k] * (k % 2 ? 1 + ROUNDING : 1 - ROUNDING);
    wf_plan_bind_input(p->plan, i, to);
    return WF_OK;
}

wf_status filled_plan_move(filled_plan *p, wf_err *err)
{
    uint32_t n = wf_plan_n_inputs(p->plan);

    wf_assert(p->device->is_host && !p->moved);
    p->moved = calloc(n + (size_t)1, sizeof *p->moved);
    if (!p->moved)
        return wf_fail_nomem(err, n * sizeof *p->moved);
    for (uint32_t i = 0; i < n; i++)
        if (p->inputs[i] && wf_plan_input(p->plan, i)->dtype == WF_F32)
            WF_TRY(move_input(p, i, err));
    return WF_OK;
}

/* The batch of the next run, which is the same. */
static wf_status bring_ahead(filled_plan *p, wf_err *err)
{
    for (uint32_t i = 0; i < wf_plan_n_inputs(p->plan); i++)
        if (p->pinned && p->pinned[i])
            WF_TRY(wf_plan_bring_ahead(p->plan, i, p->pinned[i]->data, err));
    return WF_OK;
}

wf_status filled_plan_run(filled_plan *p, uint64_t number, wf_err *err)
{
    const wf_step_key key = {.seed = 1, .batch = number};
    wf_status rc = wf_plan_start(p->plan, &key, NULL, NULL, err), waited;

    if (rc == WF_OK)
        rc = bring_ahead(p, err);
    waited = wf_plan_wait(p->plan, rc == WF_OK ? err : NULL);
    if (rc != WF_OK || waited != WF_OK)
        return rc != WF_OK ? rc : waited;
    wf_plan_take_ahead(p->plan);
    return WF_OK;
}

/* ---- what came out ---- */

wf_status filled_plan_fetch(filled_plan *p, wf_err *err)
{
    for (uint32_t i = 0; i < wf_plan_n_outputs(p->plan); i++)
        if (p->results_there[i])
            WF_TRY(wf_device_read(p->device, p->results[i], p->results_there[i],
                                  wf_plan_output(p->plan, i)->bytes, err));
    return WF_OK;
}

uint64_t filled_plan_digest(const filled_plan *p)
{
    uint64_t digest = 0;

    for (uint32_t i = 0; i < wf_plan_n_outputs(p->plan); i++)
        digest = XXH3_64bits_withSeed(p->results[i], wf_plan_output(p->plan, i)->bytes, digest);
    return digest;
}

static double largest(const filled_plan *p, uint32_t i)
{
    const wf_port *port = wf_plan_output(p->plan, i);
    double most = 0;

    for (int64_t k = 0; port->dtype == WF_F32 && k < port->elems; k++)
        most = fmax(most, fabs((double)((const float *)p->results[i])[k]));
    return most;
}

static double difference(const float a[], const float b[], int64_t n)
{
    double most = 0;

    for (int64_t k = 0; k < n; k++)
        if (isfinite(a[k]) && isfinite(b[k]))
            most = fmax(most, fabs((double)a[k] - (double)b[k]));
        else if (memcmp(&a[k], &b[k], sizeof a[k]) != 0)
            return INFINITY;
    return most;
}

filled_difference filled_plan_compare(const filled_plan *p, const filled_plan *of_cpu)
{
    filled_difference d = {0, ""};
    double all = 0;

    for (uint32_t i = 0; i < wf_plan_n_outputs(p->plan); i++)
        all = fmax(all, largest(of_cpu, i));
    for (uint32_t i = 0; i < wf_plan_n_outputs(p->plan); i++) {
        const wf_port *port = wf_plan_output(p->plan, i);
        double off;

        if (port->dtype == WF_F32)
            off = difference(p->results[i], of_cpu->results[i], port->elems) /
                  fmax(fmax(largest(of_cpu, i), all / 100), 1e-30);
        else
            off = memcmp(p->results[i], of_cpu->results[i], port->bytes) == 0 ? 0 : INFINITY;
        if (off >= d.largest)
            d = (filled_difference){off, port->variable ? port->variable : port->name};
    }
    return d;
}
