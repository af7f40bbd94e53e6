/* SPDX-License-Identifier: Apache-2.0 */
/* common/session/evaluate.c */
#include "common/session/evaluate.h"
#include "common/ckpt/pretrained.h"
#include "common/compile/compile.h"
#include "common/data/reader.h"
#include "common/exec/exec.h"
#include "common/session/job_data_conf.h"
#include "common/session/model.h"
#include "common/session/plans.h"

#include <stdio.h>

enum { BATCH = 500 };

typedef struct evaluation {
    const wf_compiled *c;
    wf_dataset *data;
    wf_pool *pool;
    wf_plans plans;
    wf_scores *out;
} evaluation;

static wf_status make_plan(void *arg, uint64_t records, wf_plan **out, wf_err *err)
{
    const evaluation *e = arg;
    wf_plan_shape shapes[WF_DATA_MAX_FIELDS];
    wf_plan_options o = {.pool = e->pool, .shapes = shapes};

    for (uint32_t i = 0; i < wf_dataset_n_fields(e->data); i++) {
        const wf_field_info *f = wf_dataset_field(e->data, i);

        shapes[i] = (wf_plan_shape){.name = f->name};
        wf_job_data_dims(wf_graph_value(e->c->graph, f->name), f, records, &shapes[i].rank,
                         shapes[i].dims);
        o.n_shapes++;
    }
    return wf_plan_new(e->c->graph, &o, out, err);
}

static wf_status run_batch(evaluation *e, const wf_batch *b, wf_err *err)
{
    wf_plan *p = NULL;

    WF_TRY(wf_plans_get(&e->plans, b->n, make_plan, e, &p, err));
    for (uint32_t i = 0; i < wf_dataset_n_fields(e->data); i++) {
        int64_t at = wf_plan_find_input(p, wf_dataset_field(e->data, i)->name);

        if (at >= 0)
            wf_plan_bind_input(p, (uint32_t)at, b->fields[i].data);
    }
    WF_TRY(wf_plan_run(p, &(wf_step_key){0, 0, 0, b->index}, NULL, NULL, err));
    for (uint32_t i = 0; i < e->out->n; i++) {
        const wf_compiled_output *o = &e->c->outputs[i];
        uint32_t at = (uint32_t)wf_plan_find_output(p, o->name);
        const wf_port *port = wf_plan_output(p, at);

        WF_TRY(wf_metric_add(&e->out->measures[i], o->meaning, o->per_record, b->n, port->dtype,
                             (size_t)port->elems, wf_plan_output_data(p, at), err));
    }
    return WF_OK;
}

static wf_status run_all(evaluation *e, wf_data_reader *reader, wf_err *err)
{
    const wf_batch *b;
    wf_status rc;

    rc = wf_data_reader_open(reader, 0, 0, 0, e->out->records, 0, err);
    while (rc == WF_OK && (rc = wf_data_reader_next(reader, &b, err)) == WF_OK && b) {
        rc = run_batch(e, b, err);
        wf_data_reader_release(reader, &b);
    }
    return rc;
}

static wf_status put_weights(wf_compiled *c, const wf_named_list *w, wf_err *err)
{
    size_t taken = 0;

    for (size_t i = 0; w && i < w->n; i++) {
        int64_t at = wf_compiled_find(c, w->rows[i].name);
        wf_tensor *copy = NULL;
        wf_status rc;

        taken += at >= 0;
        if (at < 0 || c->variables[at].is_unbounded)
            continue; /* what the loss alone needs; rows, which the compiler was given */
        WF_TRY(wf_tensor_copy(w->rows[i].tensor, &copy, err));
        rc = wf_compiled_set_variable(c, w->rows[i].name, &copy, err);
        wf_tensor_free(&copy);
        if (rc != WF_OK)
            return rc;
    }
    return taken || !w || !w->n || !c->n_variables ? WF_OK : wf_model_refuse_weights(w, err);
}

static wf_status compile(const wf_job_conf *job, const wf_named_list *weights, wf_compiled **out,
                         wf_err *err)
{
    wf_compile_spec spec;
    wf_model model;

    wf_compile_spec_of_job(job, WF_COMPILE_EVAL, NULL, 0, &model, &spec);
    spec.read_weights = wf_pretrained_read;
    spec.batch = BATCH;
    spec.rows = weights;
    WF_TRY(wf_compile(&spec, out, err));
    return put_weights(*out, weights, err);
}

static wf_status open_data(const wf_job_conf *job, const wf_learnt_list *learnt, evaluation *e,
                           wf_err *err)
{
    wf_job_data d;

    WF_TRY(wf_job_data_of(job, &job->eval, e->c, &d, err));
    if (learnt)
        WF_TRY(wf_job_data_give(&d, learnt, err));
    WF_TRY(wf_job_data_open(&d, e->c->graph, &e->data, err));
    e->out->records = wf_dataset_records(e->data);
    for (; e->out->n < e->c->n_outputs && e->out->n < WF_MEASURES_MOST; e->out->n++) {
        const wf_compiled_output *o = &e->c->outputs[e->out->n];
        wf_measure *m = &e->out->measures[e->out->n];

        snprintf(m->name, sizeof m->name, "%s", o->label);
        snprintf(m->metric, sizeof m->metric, "%s", o->metric ? o->metric : "");
    }
    return WF_OK;
}

wf_status wf_evaluate(const wf_job_conf *job, const wf_named_list *weights,
                      const wf_learnt_list *learnt, wf_pool *pool, wf_scores *out, wf_err *err)
{
    evaluation e = {.pool = pool, .out = out};
    wf_compiled *c = NULL;
    wf_data_reader *reader = NULL;
    wf_status rc;

    if (!wf_job_evaluates(job) && !job->synthetic_records)
        return wf_fail(err, WF_USAGE, "name its files under data.eval",
                       "%s:%d: the job has no data to evaluate on", job->path, job->data_line);
    rc = compile(job, weights, &c, err);
    e.c = c;
    if (rc == WF_OK)
        rc = open_data(job, learnt, &e, err);
    if (rc == WF_OK)
        rc = wf_data_reader_new(&(wf_data_reader_spec){.dataset = e.data, .batch = BATCH}, &reader,
                                err);
    if (rc == WF_OK)
        rc = run_all(&e, reader, err);
    wf_plans_close(&e.plans);
    wf_data_reader_free(&reader);
    wf_dataset_free(&e.data);
    wf_compiled_free(&c);
    return rc;
}

void wf_scores_close(wf_scores *e)
{
    wf_measures_close(e->measures, e->n);
    *e = (wf_scores){0};
}
