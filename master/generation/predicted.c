/* SPDX-License-Identifier: Apache-2.0 */
/* master/generation/predicted.c */
#include "master/generation/predicted.h"
#include "common/base/size.h"
#include "common/compile/compile.h"
#include "common/conf/conf.h"
#include "common/session/model.h"
#include "master/generation/divided.h"

#include <string.h>

enum { MOST_RECORDS = 1 << 30 };

/* Frozen variables and constants are in no checkpoint: their content is kept, and becomes the job's
 * file of first values. */
static wf_status add_variable(wf_prepared *p, const wf_compiled_variable *v, const wf_tensor **to,
                              wf_err *err)
{
    wf_arena *a = p->arena;
    Weft__Variable *row = wf_arena_alloc(a, sizeof *row);
    wf_tensor *first = wf_arena_alloc(a, sizeof *first);

    if (!row || !first)
        return wf_fail_nomem(err, sizeof *row);
    weft__variable__init(row);
    row->name = wf_arena_strdup(a, v->name);
    row->dtype = v->dtype;
    row->kind = v->kind;
    row->stage = v->stage;
    row->n_dims = v->rank;
    row->dims = wf_arena_memdup(a, v->dims, v->rank * sizeof v->dims[0]);
    *first = *v->initial;
    first->buf = NULL;
    first->data = v->kind == WF_VAR_FROZEN ? wf_arena_memdup(a, v->initial->data, v->bytes) : NULL;
    if (!row->name || !row->dims || (v->kind == WF_VAR_FROZEN && !first->data))
        return wf_fail_nomem(err, v->bytes);
    p->setup.variables[p->setup.n_variables++] = row;
    *to = first;
    return WF_OK;
}

static wf_status fill_variables(wf_prepared *p, const wf_compiled *c, wf_err *err)
{
    const wf_tensor **initial = wf_arena_array(p->arena, c->n_variables + 1, sizeof(*initial));

    p->setup.variables = wf_arena_array(p->arena, c->n_variables + 1, sizeof(*p->setup.variables));
    if (!initial || !p->setup.variables)
        return wf_fail_nomem(err, c->n_variables * sizeof(*initial));
    for (size_t i = 0; i < c->n_variables; i++)
        if (c->variables[i].on_ps) /* others are in the graph */
            WF_TRY(add_variable(p, &c->variables[i], &initial[p->setup.n_variables], err));
    p->initial = initial;
    return WF_OK;
}

/* What computes nothing is sent by nobody. */
static wf_status check_output(const wf_value *v, const char *label, wf_err *err)
{
    if (v->producer)
        return WF_OK;
    return wf_fail(
        err, WF_UNSUPPORTED, "predict without --spread",
        "output \"%.64s\" does not depend on the records, and the model is divided among "
        "workers",
        label);
}

static wf_status fill_outputs(wf_prepared *p, const wf_compiled *c, wf_err *err)
{
    Weft__Start *s = &p->start;

    s->eval_outputs = wf_arena_array(p->arena, c->n_outputs + 1, sizeof(*s->eval_outputs));
    if (!s->eval_outputs)
        return wf_fail_nomem(err, c->n_outputs * sizeof(*s->eval_outputs));
    for (size_t i = 0; i < c->n_outputs; i++) {
        const wf_value *v = wf_graph_value(c->graph, c->outputs[i].name);
        Weft__Output *o = wf_arena_alloc(p->arena, sizeof *o);
        int64_t sizes[WF_MAX_RANK];

        WF_TRY(check_output(v, c->outputs[i].label, err));
        if (!o)
            return wf_fail_nomem(err, sizeof *o);
        if (!wf_value_sizes(v, sizes)) /* whoever asked was told */
            return wf_fail(err, WF_PROTO, "let all programs be of one release of weft",
                           "output \"%.64s\" is not of records", c->outputs[i].label);
        weft__output__init(o);
        o->name = wf_arena_strdup(p->arena, c->outputs[i].name);
        o->label = wf_arena_strdup(p->arena, c->outputs[i].label);
        o->meaning = c->outputs[i].meaning;
        o->dtype = v->dtype;
        o->n_sizes = (size_t)v->rank;
        o->sizes = wf_arena_memdup(p->arena, sizes, (size_t)v->rank * sizeof *sizes);
        if (!o->name || !o->label || (v->rank && !o->sizes))
            return wf_fail_nomem(err, sizeof *o);
        s->eval_outputs[s->n_eval_outputs++] = o;
    }
    return WF_OK;
}

static wf_status compile(const wf_job_conf *job, const wf_stage_home homes[], uint32_t n,
                         uint64_t batch, wf_compiled **out, wf_err *err)
{
    wf_compile_spec spec;
    wf_model model;

    wf_model_spec_blank(job, &model, &spec);
    wf_stages_put(job, homes, n, &spec);
    spec.strategy = wf_strategy_find("stages");
    spec.batch = (int64_t)batch;
    return wf_compile(&spec, out, err);
}

static wf_status fill(wf_prepared *p, const wf_prediction_ask *ask, const wf_job_conf *job,
                      const wf_stage_workers *of, wf_err *err)
{
    wf_stage_home homes[WF_STAGES_MOST];
    uint32_t n;
    uint64_t batch = WF_MIN(ask->batch, ask->records);
    wf_job_conf own = *job;
    wf_compiled *c = NULL;
    wf_status rc;

    if (batch > MOST_RECORDS)
        return wf_fail(err, WF_UNSUPPORTED, "take a smaller --batch",
                       "a batch of %lu records, and the model is divided among workers",
                       (unsigned long)batch);
    own.micro_batches = 1; /* a step's are of no matter */
    WF_TRY(wf_stages_of_job(&own, of, homes, &n, err));
    WF_TRY(compile(job, homes, n, batch, &c, err));
    p->start.strategy = (char *)"stages";
    p->start.micro_batches = 1;
    p->start.first_records = batch;
    p->start.seed = job->seed;
    rc = wf_divided_stages(p, homes, n, err);
    if (rc == WF_OK)
        rc = fill_variables(p, c, err);
    if (rc == WF_OK)
        rc = fill_outputs(p, c, err);
    if (rc == WF_OK)
        rc = wf_divided_fill(p, c, false, err);
    wf_compiled_free(&c);
    return rc;
}

wf_status wf_predicted_fill(wf_prepared *p, const wf_prediction_ask *ask,
                            const wf_stage_workers *of, wf_err *err)
{
    wf_job_conf *job = NULL;
    wf_status rc = WF_OK;

    if (!ask->job)
        return WF_OK;
    WF_TRY(wf_job_parse(ask->job, strlen(ask->job), ask->job_path, &job, err));
    if (wf_job_is_divided(job))
        rc = fill(p, ask, job, of, err);
    wf_job_free(&job);
    return rc;
}
