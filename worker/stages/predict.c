/* SPDX-License-Identifier: Apache-2.0 */
/* worker/stages/predict.c - a stage of a prediction. Its variables are constants: each worker reads
 * those of its stage, and compiles what it computes as a process does that has all of the model, so
 * that the outputs have the same bits.
 *
 * The first stage sends a micro-batch ahead of those whose results it has, but not too far: what is
 * under way takes memory at every stage.
 */
#include "common/base/size.h"
#include "common/ckpt/values.h"
#include "common/compile/compile.h"
#include "common/graph/op.h"
#include "common/session/prediction.h"
#include "worker/stages/state.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { AHEAD = 2 /* micro-batches under way, for each stage: one computes, and one is there */ };

/* ---- constants ---- */

typedef struct reading {
    const wf_stage *s;
    wf_arena *arena;
    wf_prediction_ask ask;
    wf_values *saved, *first; /* of the checkpoint, and of what is in none; opened when needed */
} reading;

static wf_status begin_reading(reading *r, wf_err *err)
{
    const Weft__Start *start = r->s->conf.start;

    r->arena = wf_arena_new(0);
    if (!r->arena)
        return wf_fail_nomem(err, 4096);
    WF_TRY(
        wf_prediction_read(start->prediction, strlen(start->prediction), r->arena, &r->ask, err));
    if (!r->ask.job)
        return wf_fail(err, WF_PROTO, "let all tasks run one release of weft",
                       "a prediction of no job, over stages");
    WF_TRY(wf_values_open(r->s->exchange.disk, r->ask.checkpoint_dir, r->ask.run, false,
                          (uint64_t)r->ask.step, &r->saved, err));
    return wf_values_open(r->s->exchange.disk, start->checkpoint_dir, start->job, true, 0,
                          &r->first, err);
}

static void end_reading(reading *r)
{
    wf_values_close(&r->saved);
    wf_values_close(&r->first);
    wf_arena_free(&r->arena);
}

/* What no gradient reaches is with the first values of the run. */
static wf_status read_content(reading *r, const Weft__Variable *v, wf_tensor *t, wf_err *err)
{
    uint64_t n = (uint64_t)wf_elems(t);
    float *to = t->data;
    wf_status rc;

    if (v->kind == WF_KIND_FROZEN)
        return wf_values_read(r->first, v->name, true, 0, n, to, err);
    rc = wf_values_read(r->saved, v->name, false, 0, n, to, err);
    if (rc != WF_MISMATCH)
        return rc;
    if (!wf_values_begin_with(r->saved, v->name))
        return wf_fail(err, WF_UNSUPPORTED, "predict without --spread",
                       "the run did not keep \"%.200s\", which its loss does not need", v->name);
    return wf_values_read(r->saved, v->name, true, 0, n, to, err);
}

static wf_status find_variable(const wf_stage *s, const char *name, const Weft__Variable **out,
                               wf_err *err)
{
    const Weft__Start *start = s->conf.start;

    for (size_t i = 0; i < start->n_variables; i++)
        if (strcmp(start->variables[i]->name, name) == 0 &&
            start->variables[i]->stage == start->stage &&
            start->variables[i]->n_dims <= WF_MAX_RANK) {
            *out = start->variables[i];
            return WF_OK;
        }
    return wf_fail(err, WF_PROTO, "let all tasks run one release of weft",
                   "variable \"%.200s\" is not one of this stage", name);
}

/* The content in place of what a Pull gives. */
static wf_status put_content(reading *r, wf_graph *g, const wf_node *pull, wf_err *err)
{
    const char *variable = wf_node_string(pull, "variable", "");
    wf_value *old = pull->out[0], *constant;
    char *name = wf_arena_strdup(g->arena, old->name);
    char *aside = wf_arena_printf(g->arena, "%s/saved", old->name);
    const Weft__Variable *v = NULL;
    wf_tensor *t = NULL;
    wf_status rc;

    if (!name || !aside)
        return wf_fail_nomem(err, strlen(old->name));
    WF_TRY(find_variable(r->s, variable, &v, err));
    WF_TRY(wf_tensor_new(WF_F32, (uint32_t)v->n_dims, v->dims, &t, err));
    rc = read_content(r, v, t, err);
    if (rc == WF_OK)
        rc = wf_graph_rename_value(g, old, aside, err);
    if (rc == WF_OK)
        rc = wf_graph_add_variable(g, name, WF_VAR_FROZEN, &t, &constant, err);
    wf_tensor_free(&t);
    if (rc != WF_OK)
        return rc;
    wf_graph_replace_uses(g, old, constant);
    return WF_OK;
}

static bool is_pull(const wf_node *n)
{
    return (n->op->flags & WF_OP_SOURCE) && n->n_out == 1 && n->out[0] && n->n_in == 0;
}

static wf_status put_all(reading *r, wf_graph *g, wf_err *err)
{
    bool *keep = calloc(g->n_nodes + 1, sizeof *keep);
    wf_status rc = keep ? WF_OK : wf_fail_nomem(err, g->n_nodes);

    for (size_t i = 0; rc == WF_OK && i < g->n_nodes; i++) {
        keep[i] = !is_pull(g->nodes[i]);
        if (!keep[i])
            rc = put_content(r, g, g->nodes[i], err);
    }
    if (rc == WF_OK)
        wf_graph_keep_nodes(g, keep);
    free(keep);
    return rc;
}

/* Inputs that nothing reads need not be fed. */
static void drop_idle_inputs(wf_graph *g)
{
    size_t kept = 0;

    for (size_t i = 0; i < g->n_inputs; i++) {
        wf_value *v = g->inputs[i];
        bool used = v->first_use != NULL;

        for (size_t k = 0; k < g->n_outputs; k++)
            used |= g->outputs[k] == v;
        v->is_input = used;
        if (used)
            g->inputs[kept++] = v;
    }
    g->n_inputs = kept;
}

/* The book's names are those of the graph, which goes. */
static wf_status keep_names(wf_stage_book *b, const wf_graph *g, wf_err *err)
{
    for (uint32_t i = 0; i < b->n_values; i++) {
        b->values[i].name = wf_arena_strdup(g->arena, b->values[i].name);
        if (!b->values[i].name)
            return wf_fail_nomem(err, WF_GRAPH_LONGEST_NAME);
    }
    return WF_OK;
}

static wf_status compile(wf_stage_book *b, wf_err *err)
{
    wf_stage_part *part = &b->parts[WF_PART_FORWARD];
    wf_compile_spec spec = {.graph = part->graph, .mode = WF_COMPILE_RUN, .are_final = true};
    wf_compiled *c = NULL;
    wf_status rc;

    if (part->graph->n_outputs == 0)
        return WF_OK;
    rc = wf_compile(&spec, &c, err);
    if (rc == WF_OK)
        rc = keep_names(b, c->graph, err);
    if (rc == WF_OK) {
        wf_graph_free(&part->graph);
        part->graph = wf_compiled_take_graph(c);
        drop_idle_inputs(part->graph);
    }
    wf_compiled_free(&c);
    return rc;
}

wf_status wf_stage_settle(wf_stage *s, wf_err *err)
{
    wf_stage_part *part = &s->books[false].parts[WF_PART_FORWARD];
    reading r = {.s = s};
    wf_status rc;

    if (!part->graph)
        return wf_fail(err, WF_PROTO, "let all tasks run one release of weft",
                       "a prediction without a graph");
    rc = begin_reading(&r, err);
    if (rc == WF_OK)
        rc = put_all(&r, part->graph, err);
    if (rc == WF_OK)
        rc = compile(&s->books[false], err);
    end_reading(&r);
    return rc;
}

/* ---- results ---- */

bool wf_stage_may_send(const wf_stage *s)
{
    return !wf_stage_predicts(s) || !wf_stage_is_first(s) ||
           s->now.schedule.forwards - s->now.taken < AHEAD * s->now.schedule.stages;
}

bool wf_stage_can_take(wf_stage *s)
{
    const wf_stage_book *b = wf_stage_book_now(s);

    if (!wf_stage_predicts(s) || !wf_stage_is_first(s) || s->now.taken == s->now.schedule.forwards)
        return false;
    for (uint32_t i = 0; i < b->n_values; i++)
        if (b->values[i].result >= 0 && !wf_stage_hold(s, s->now.taken, i)->buf)
            return false;
    return true;
}

/* That a result is what the start says of it, for so many records. */
static wf_status check_result(const Weft__Output *o, const wf_stage_held *h, uint32_t records,
                              wf_err *err)
{
    Weft__StageEdge e = WEFT__STAGE_EDGE__INIT;
    int64_t elems = 1;

    e.name = o->label;
    e.dtype = o->dtype;
    e.sizes = o->sizes;
    e.n_sizes = o->n_sizes;
    WF_TRY(wf_stage_edge_elems(&e, records, &elems, err));
    if ((wf_dtype)o->dtype == h->dtype && elems == h->elems)
        return WF_OK;
    return wf_fail(err, WF_SHAPE, "predict without --spread",
                   "output \"%.64s\" of %u records has %" PRId64 " elements of %s, and %" PRId64
                   " of %s were to come",
                   o->label, records, h->elems, wf_dtype_name(h->dtype), elems,
                   wf_dtype_name((wf_dtype)o->dtype));
}

wf_status wf_stage_take_results(wf_stage *s, wf_err *err)
{
    const Weft__Start *start = s->conf.start;
    const wf_stage_book *b = wf_stage_book_now(s);
    uint32_t batch = s->now.taken;
    const void **outputs = calloc(start->n_eval_outputs + 1, sizeof(*outputs));
    wf_status rc = outputs ? WF_OK : wf_fail_nomem(err, start->n_eval_outputs * sizeof(*outputs));

    for (uint32_t i = 0; rc == WF_OK && i < b->n_values; i++) {
        const wf_stage_held *h = wf_stage_hold(s, batch, i);

        if (b->values[i].result < 0)
            continue;
        rc = check_result(start->eval_outputs[b->values[i].result], h, s->now.records[batch], err);
        outputs[b->values[i].result] = h->buf->data;
    }
    if (rc == WF_OK)
        rc = s->conf.take(s->conf.arg, batch, outputs, err);
    free(outputs);
    for (uint32_t i = 0; i < b->n_values; i++)
        if (b->values[i].result >= 0)
            wf_buf_unref(&wf_stage_hold(s, batch, i)->buf);
    s->now.taken++;
    return rc;
}
