/* SPDX-License-Identifier: Apache-2.0 */
/* common/session/predict.c */
#include "common/session/predict.h"
#include "common/base/size.h"
#include "common/exec/exec.h"
#include "common/session/plans.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct wf_predictor {
    char *name;
    wf_compiled *c;
    wf_plans plans;
    wf_plan_shape *shapes; /* [c->graph->n_inputs]: what the plans at hand were made for */
};

/* One call. */
typedef struct call {
    wf_predictor *p;
    const wf_predict *how;
    wf_fed fed;
    uint64_t records; /* in all; 0: no input has a batch axis */
    uint64_t batch;   /* of one run */
    wf_named_list *out;
} call;

wf_status wf_predictor_new(const wf_graph *g, const char *name,
                           void (*warn)(void *arg, const char *sentence), void *arg,
                           wf_predictor **out, wf_err *err)
{
    wf_compile_spec spec = {.graph = g, .mode = WF_COMPILE_RUN, .are_final = true};
    wf_predictor *p = calloc(1, sizeof *p);
    wf_status rc;

    *out = NULL;
    if (!p || !(p->name = strdup(name))) {
        free(p);
        return wf_fail_nomem(err, sizeof *p);
    }
    rc = wf_compile(&spec, &p->c, err);
    if (rc == WF_OK) {
        p->shapes = calloc(p->c->graph->n_inputs + 1, sizeof *p->shapes);
        rc = p->shapes ? WF_OK : wf_fail_nomem(err, p->c->graph->n_inputs * sizeof *p->shapes);
    }
    if (rc != WF_OK) {
        wf_predictor_free(&p);
        return rc;
    }
    for (size_t i = 0; warn && i < p->c->n_warnings; i++)
        warn(arg, p->c->warnings[i]);
    *out = p;
    return WF_OK;
}

void wf_predictor_free(wf_predictor **p)
{
    if (!*p)
        return;
    wf_plans_close(&(*p)->plans);
    wf_compiled_free(&(*p)->c);
    free((*p)->shapes);
    free((*p)->name);
    free(*p);
    *p = NULL;
}

static bool has_batch_axis(const wf_value *v)
{
    return v->rank > 0 && v->axes[0].size < 0;
}

static wf_status count_records(call *k, wf_err *err)
{
    const wf_graph *g = k->p->c->graph;
    const wf_value *first = NULL;

    for (size_t i = 0; i < g->n_inputs; i++) {
        const wf_tensor *t = k->fed.inputs[i].content;

        if (!t || !has_batch_axis(g->inputs[i]))
            continue;
        if (first && (uint64_t)t->dims[0] != k->records)
            return wf_fail(err, WF_SHAPE, "feed each input the same number of records",
                           "input \"%.64s\" has %" PRId64 " records, and \"%.64s\" %" PRIu64,
                           g->inputs[i]->name, t->dims[0], first->name, k->records);
        if (!first)
            first = g->inputs[i];
        k->records = (uint64_t)t->dims[0];
    }
    k->batch = k->how->batch && k->how->batch < k->records ? k->how->batch : k->records;
    return WF_OK;
}

static bool same_shape(const wf_plan_shape *a, const wf_plan_shape *b)
{
    return a->name == b->name && a->rank == b->rank &&
           memcmp(a->dims, b->dims, a->rank * sizeof a->dims[0]) == 0;
}

/* Plans that were made for other extents than the batch's are of no use. */
static void note_shapes(call *k)
{
    const wf_graph *g = k->p->c->graph;
    bool same = true;

    for (size_t i = 0; i < g->n_inputs; i++) {
        const wf_tensor *t = k->fed.inputs[i].content;
        wf_plan_shape now = {.name = g->inputs[i]->name};

        if (!t)
            continue; /* nothing needs it */
        now.rank = t->rank;
        memcpy(now.dims, t->dims, t->rank * sizeof now.dims[0]);
        if (has_batch_axis(g->inputs[i]))
            now.dims[0] = 0;
        same &= same_shape(&now, &k->p->shapes[i]);
        k->p->shapes[i] = now;
    }
    if (!same)
        wf_plans_close(&k->p->plans);
}

static wf_status make_plan(void *arg, uint64_t records, wf_plan **out, wf_err *err)
{
    const call *k = arg;
    const wf_graph *g = k->p->c->graph;
    wf_plan_shape *shapes = calloc(g->n_inputs + 1, sizeof *shapes);
    wf_plan_options options = {.device = k->how->device,
                               .pool = k->how->pool,
                               .shapes = shapes,
                               .limit_bytes = k->how->limit_bytes,
                               .limit_hint = k->how->limit_hint};
    wf_status rc;

    if (!shapes)
        return wf_fail_nomem(err, g->n_inputs * sizeof *shapes);
    for (size_t i = 0; i < g->n_inputs; i++) {
        if (!k->p->shapes[i].name)
            continue;
        shapes[options.n_shapes] = k->p->shapes[i];
        if (has_batch_axis(g->inputs[i]))
            shapes[options.n_shapes].dims[0] = (int64_t)records;
        options.n_shapes++;
    }
    if (!options.limit_bytes)
        options.limit_bytes = wf_plan_fair_limit(k->p->c->given_bytes + wf_fed_bytes(&k->fed));
    rc = wf_plan_new(g, &options, out, err);
    free(shapes);
    return rc;
}

static void bind(const call *k, wf_plan *plan, uint64_t at)
{
    const wf_graph *g = k->p->c->graph;

    for (size_t i = 0; i < g->n_inputs; i++) {
        const wf_tensor *t = k->fed.inputs[i].content;
        int64_t port = wf_plan_find_input(plan, g->inputs[i]->name);
        size_t record = t && k->records ? wf_tensor_bytes(t) / k->records : 0;

        if (t && port >= 0)
            wf_plan_bind_input(plan, (uint32_t)port,
                               (const char *)t->data +
                                   (has_batch_axis(g->inputs[i]) ? at * record : 0));
    }
}

/* Makes room for all records of an output, by what the first batch gives. */
static wf_status add_output(call *k, const wf_compiled_output *o, const wf_port *port, wf_err *err)
{
    int64_t dims[WF_MAX_RANK] = {0};
    wf_tensor *t = NULL;
    wf_status rc;

    memcpy(dims, port->dims, port->rank * sizeof dims[0]);
    if (k->batch < k->records) {
        const wf_value *v = wf_graph_value(k->p->c->graph, o->name);

        if (!v || !has_batch_axis(v) || (uint64_t)dims[0] != k->batch)
            return wf_fail(err, WF_SHAPE, "predict all records at once",
                           "output \"%.64s\" is of a batch and not of each record", o->label);
        dims[0] = (int64_t)k->records;
    }
    WF_TRY(wf_tensor_new(port->dtype, port->rank, dims, &t, err));
    rc = wf_named_add(k->out, o->label, &t, false, err);
    wf_tensor_free(&t);
    return rc;
}

static wf_status run_batch(call *k, uint64_t at, uint64_t n, wf_err *err)
{
    const wf_compiled *c = k->p->c;
    wf_plan *plan = NULL;

    WF_TRY(wf_plans_get(&k->p->plans, n, make_plan, k, &plan, err));
    bind(k, plan, at);
    WF_TRY(wf_plan_run(plan, &(wf_step_key){.seed = k->how->seed, .batch = at}, NULL, NULL, err));
    for (size_t i = 0; i < c->n_outputs; i++) {
        uint32_t port_at = (uint32_t)wf_plan_find_output(plan, c->outputs[i].name);
        const wf_port *port = wf_plan_output(plan, port_at);
        wf_tensor *to;

        if (at == 0)
            WF_TRY(add_output(k, &c->outputs[i], port, err));
        to = k->out->rows[i].tensor;
        if (port->bytes)
            memcpy((char *)to->data + (at ? wf_tensor_bytes(to) / k->records * at : 0),
                   wf_plan_output_data(plan, port_at), port->bytes);
    }
    return WF_OK;
}

static wf_status run_all(call *k, char unfed[WF_UNFED_NAME], wf_err *err)
{
    WF_TRY(wf_fed_place(k->p->c->graph, k->p->name, k->how->n_feeds, k->how->feeds, &k->fed, err));
    WF_TRY(wf_fed_check(&k->fed, k->p->name, k->p->c, unfed, err));
    WF_TRY(count_records(k, err));
    note_shapes(k);
    if (k->batch == 0)
        return run_batch(k, 0, 0, err);
    for (uint64_t at = 0; at < k->records; at += k->batch)
        WF_TRY(run_batch(k, at, WF_MIN(k->batch, k->records - at), err));
    return WF_OK;
}

wf_status wf_predictor_run(wf_predictor *p, const wf_predict *how, wf_named_list *out,
                           char unfed[WF_UNFED_NAME], wf_err *err)
{
    call k = {.p = p, .how = how, .out = out};
    wf_status rc;

    unfed[0] = 0;
    rc = run_all(&k, unfed, err);
    wf_fed_close(&k.fed);
    return rc;
}
