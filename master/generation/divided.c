/* SPDX-License-Identifier: Apache-2.0 */
/* master/generation/divided.c */
#include "master/generation/divided.h"
#include "common/onnx/onnx.h"

#include <string.h>

/* The variables of the training graph have the stages that they were given there. */
static wf_status settle(const wf_prepared *p, wf_compile_spec *spec, wf_err *err)
{
    size_t n = p->setup.n_variables;
    wf_compiled_variable *rows = wf_arena_array(p->arena, n + 1, sizeof *rows);

    if (!rows)
        return wf_fail_nomem(err, n * sizeof *rows);
    for (size_t i = 0; i < n; i++)
        rows[i] = (wf_compiled_variable){.name = p->setup.variables[i]->name,
                                         .stage = p->setup.variables[i]->stage};
    spec->settled = rows;
    spec->n_settled = n;
    return WF_OK;
}

wf_status wf_divided_stages(wf_prepared *p, const wf_stage_home homes[], uint32_t n, wf_err *err)
{
    Weft__Start *s = &p->start;

    s->stages = wf_arena_array(p->arena, n + (size_t)1, sizeof(*s->stages));
    if (!s->stages)
        return wf_fail_nomem(err, n * sizeof(*s->stages));
    for (; s->n_stages < n; s->n_stages++) {
        Weft__Stage *row = wf_arena_alloc(p->arena, sizeof *row);

        if (!row)
            return wf_fail_nomem(err, sizeof *row);
        weft__stage__init(row);
        row->worker = homes[s->n_stages].worker;
        if (homes[s->n_stages].device)
            row->device = wf_arena_strdup(p->arena, homes[s->n_stages].device);
        if (!row->device)
            return wf_fail_nomem(err, sizeof *row);
        s->stages[s->n_stages] = row;
    }
    return WF_OK;
}

wf_status wf_divided_begin(wf_prepared *p, const wf_job_conf *job, const wf_stage_workers *of,
                           wf_compile_spec *spec, wf_err *err)
{
    wf_stage_home homes[WF_STAGES_MOST];
    uint32_t n;

    WF_TRY(wf_stages_of_job(job, of, homes, &n, err));
    wf_stages_put(job, homes, n, spec);
    p->start.micro_batches = (uint32_t)(job->batch / (uint64_t)spec->batch);
    p->start.first_records = (uint64_t)spec->batch;
    p->eval_unit = 4 * job->batch;
    if (spec->mode == WF_COMPILE_TRAIN)
        return wf_divided_stages(p, homes, n, err);
    return settle(p, spec, err);
}

static wf_status fill_edges(wf_prepared *p, const wf_compiled *c, Weft__StageEdge ***list,
                            size_t *n, wf_err *err)
{
    *list = wf_arena_array(p->arena, c->n_edges + 1, sizeof(**list));
    if (!*list)
        return wf_fail_nomem(err, c->n_edges * sizeof(**list));
    for (size_t i = 0; i < c->n_edges; i++) {
        const wf_compiled_edge *from = &c->edges[i];
        Weft__StageEdge *e = wf_arena_alloc(p->arena, sizeof *e);

        if (!e)
            return wf_fail_nomem(err, sizeof *e);
        weft__stage_edge__init(e);
        e->name = wf_arena_strdup(p->arena, from->name);
        e->dtype = from->dtype;
        e->n_sizes = from->rank;
        e->sizes = wf_arena_memdup(p->arena, from->sizes, from->rank * sizeof from->sizes[0]);
        e->from = from->from;
        e->to = from->to;
        e->is_result = from->is_result;
        if (!e->name || (from->rank && !e->sizes))
            return wf_fail_nomem(err, strlen(from->name));
        (*list)[(*n)++] = e;
    }
    return WF_OK;
}

/* An empty part takes no bytes. */
static wf_status put_part(wf_prepared *p, const wf_compiled *c, uint32_t stage, bool backward,
                          ProtobufCBinaryData *out, wf_err *err)
{
    wf_bytes bytes = {0};
    wf_graph *g = NULL;
    wf_status rc = wf_stages_cut(c, stage, backward, &g, err);

    if (rc == WF_OK && (!backward || g->n_nodes > 0))
        rc = wf_onnx_encode(g, &bytes, err);
    if (rc == WF_OK && bytes.size > 0) {
        out->data = wf_arena_memdup(p->arena, bytes.data, bytes.size);
        out->len = bytes.size;
        if (!out->data)
            rc = wf_fail_nomem(err, bytes.size);
    }
    wf_bytes_close(&bytes);
    wf_graph_free(&g);
    return rc;
}

wf_status wf_divided_fill(wf_prepared *p, const wf_compiled *c, bool train, wf_err *err)
{
    Weft__Start *s = &p->start;

    WF_TRY(train ? fill_edges(p, c, &s->train_edges, &s->n_train_edges, err)
                 : fill_edges(p, c, &s->eval_edges, &s->n_eval_edges, err));
    for (uint32_t i = 0; i < s->n_stages; i++) {
        Weft__Stage *row = s->stages[i];

        if (i == 0)
            WF_TRY(put_part(p, c, i, false, train ? &s->train_graph : &s->eval_graph, err));
        else
            WF_TRY(put_part(p, c, i, false, train ? &row->forward : &row->evaluates, err));
        if (train)
            WF_TRY(put_part(p, c, i, true, &row->backward, err));
    }
    return WF_OK;
}
