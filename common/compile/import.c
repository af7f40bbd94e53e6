/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/import.c - the first pass: a model becomes a graph with named inputs and
 * variables.
 *
 * A graph that trains has a symbolic leading axis on each input: the batch, of which the last one
 * of an epoch may be short. Inputs that name it differently, or not at all, all get the same
 * symbol, so that inference sees that features and labels go together.
 */
#include "common/compile/exporter/exporter.h"
#include "common/compile/pass.h"
#include "common/onnx/onnx.h"
#include <string.h>

static const char batch_symbol[] = "batch";

/* Whether tables of the job need no content in the graph: parameter servers have it, or whoever
 * evaluates or exports the model gives it. */
static bool tables_are_blank(const wf_compile_spec *s)
{
    return s->mode == WF_COMPILE_INFER || s->mode == WF_COMPILE_EVAL ||
           (s->mode == WF_COMPILE_TRAIN && s->strategy && wf_strategy_has_tables(s->strategy));
}

static wf_status build_layers(wf_unit *u, wf_err *err)
{
    const wf_compile_spec *s = u->spec;
    wf_model_facts facts = {0};
    wf_model m = *s->model;

    m.is_blank = s->is_blank;
    if (tables_are_blank(s)) {
        m.tables = s->tables;
        m.n_tables = s->n_tables;
    }
    WF_TRY(wf_model_build(&m, s->batch, s->seed, &u->graph, &facts, err));
    u->penalty = facts.penalty;
    u->unbounded = facts.unbounded;
    u->seeded = facts.seeded;
    return WF_OK;
}

static wf_status read_source(wf_unit *u, wf_err *err)
{
    const wf_compile_spec *s = u->spec;

    if (!!s->graph + !!s->onnx_path + !!s->model != 1)
        return wf_fail(err, WF_INVALID, NULL, "a model comes from exactly one source, not %d",
                       !!s->graph + !!s->onnx_path + !!s->model);
    if (s->graph)
        return wf_graph_copy(s->graph, &u->graph, err);
    if (s->onnx_path)
        return wf_onnx_read(s->onnx_path, &u->graph, err);
    return build_layers(u, err);
}

/* Whether shapes are to follow from the records of a batch alone: no plan could be made before. */
static bool is_of_records(const wf_compile_spec *s)
{
    return s->mode == WF_COMPILE_TRAIN || s->mode == WF_COMPILE_EVAL ||
           (s->mode == WF_COMPILE_INFER && s->n_stages > 0);
}

/* Whether v's leading axis may be taken for the batch: it is one at all. */
static wf_status bind_batch(wf_unit *u, wf_value *v, wf_err *err)
{
    wf_axis *lead = &v->axes[0];
    bool trains = is_of_records(u->spec);
    char text[128];

    if (v->rank < 1) {
        if (trains)
            return wf_fail(err, WF_UNSUPPORTED, "make it an initializer of the model",
                           "input \"%s\" is %s, and has no axis for the batch", v->name,
                           wf_value_str(v, text, sizeof(text)));
        return WF_OK;
    }
    if (lead->size >= 0) {
        if (trains)
            return wf_fail(err, WF_SHAPE,
                           "export the model with a symbolic batch axis (PyTorch: dynamic_axes or "
                           "dynamic_shapes)",
                           "input \"%s\" is %s: its batch is fixed at %lld", v->name,
                           wf_value_str(v, text, sizeof(text)), (long long)lead->size);
        return WF_OK;
    }
    if (trains || !lead->symbol)
        lead->symbol = batch_symbol;
    if (u->spec->batch > 0)
        lead->bound = u->spec->batch;
    return WF_OK;
}

/* Gives a bound to every axis that goes by the batch's symbol, also where it is not the first. */
static wf_status bind_inputs(wf_unit *u, wf_err *err)
{
    const wf_graph *g = u->graph;

    for (size_t i = 0; i < g->n_inputs; i++)
        WF_TRY(bind_batch(u, g->inputs[i], err));
    if (u->spec->batch <= 0)
        return WF_OK;
    for (size_t i = 0; i < g->n_inputs; i++)
        for (int32_t a = 1; a < g->inputs[i]->rank; a++) {
            wf_axis *axis = &g->inputs[i]->axes[a];

            if (axis->size < 0 && axis->symbol && !strcmp(axis->symbol, batch_symbol))
                axis->bound = u->spec->batch;
        }
    return WF_OK;
}

static wf_status check_feed(const wf_value *v, const wf_tensor *t, wf_err *err)
{
    char ours[96], theirs[128];
    bool fits = v->dtype == t->dtype && (v->rank < 0 || (uint32_t)v->rank == t->rank);

    for (uint32_t i = 0; fits && v->rank >= 0 && i < t->rank; i++)
        fits = v->axes[i].size < 0 || v->axes[i].size == t->dims[i];
    if (fits)
        return WF_OK;
    return wf_fail(err, WF_SHAPE, NULL, "input \"%s\" is %s, and is given %s%s", v->name,
                   wf_value_str(v, theirs, sizeof(theirs)), wf_dtype_name(t->dtype),
                   wf_dims_str(t->rank, t->dims, ours, sizeof(ours)));
}

static void drop_input(wf_graph *g, wf_value *v)
{
    size_t kept = 0;

    for (size_t i = 0; i < g->n_inputs; i++)
        if (g->inputs[i] != v)
            g->inputs[kept++] = g->inputs[i];
    g->n_inputs = kept;
    v->is_input = false;
}

/* The inputs of a graph that is evaluated once get the shapes, or the content, that they will have.
 * One that is an output too stays an input: outputs are made or fed. */
static wf_status bind_feeds(wf_unit *u, wf_err *err)
{
    for (size_t i = 0; i < u->spec->n_feeds; i++) {
        const wf_compile_feed *f = &u->spec->feeds[i];
        wf_value *v = wf_graph_value(u->graph, f->name);
        wf_tensor *t = NULL;

        if (!v || !v->is_input)
            return wf_fail(err, WF_NOTFOUND, NULL, "the model has no input \"%s\"", f->name);
        WF_TRY(check_feed(v, f->content, err));
        wf_value_set_type(v, v->dtype, f->content->rank, f->content->dims);
        if (!f->is_constant || wf_is_output(u->graph, v))
            continue;
        WF_TRY(wf_tensor_share(f->content, &t, err));
        drop_input(u->graph, v);
        wf_value_set_known(v, &t);
    }
    return WF_OK;
}

/* The condition of a Choose, when it is known. */
static bool is_decided(const wf_node *n, bool *value)
{
    wf_elem elems[WF_MAX_CARRIED];
    uint32_t count;

    if (!wf_node_is(n, WF_DOMAIN_WEFT, "Choose") || !wf_value_elems(n->in[0], elems, &count) ||
        count != 1 || !elems[0].is_known)
        return false;
    *value = elems[0].value != 0;
    return true;
}

/* Where the condition of an If is known, what follows reads the branch that is taken. That may make
 * other conditions known. */
static wf_status take_branches(wf_unit *u, wf_err *err)
{
    bool taken = true, value = false;

    while (taken) {
        taken = false;
        for (size_t i = 0; i < u->graph->n_nodes; i++) {
            wf_node *n = u->graph->nodes[i];

            if (!is_decided(n, &value))
                continue;
            for (uint32_t k = 0; k < n->n_out; k++) {
                if (!wf_uses(u->graph, n->out[k]))
                    continue;
                WF_TRY(wf_hand_over(u, n->out[k], n->in[value ? 1 + k : 1 + n->n_out + k], err));
                taken = true;
            }
        }
        if (taken)
            WF_TRY(wf_infer(u->graph, err));
    }
    return WF_OK;
}

/* Variables that nobody will change are constants like others. */
static void settle_variables(wf_unit *u)
{
    for (size_t i = 0; i < u->graph->n_values; i++)
        if (u->spec->are_final && u->spec->mode == WF_COMPILE_RUN)
            u->graph->values[i]->variable = WF_VAR_NOT;
}

/* What the source brought, against which later sizes are judged. */
static size_t bytes_given(const wf_graph *g)
{
    size_t bytes = 0;

    for (size_t i = 0; i < g->n_values; i++)
        if (g->values[i]->known && !g->values[i]->producer)
            bytes += wf_tensor_bytes(g->values[i]->known);
    return bytes;
}

static wf_status keep_outputs(wf_unit *u, wf_err *err)
{
    u->n_model_outputs = u->graph->n_outputs;
    u->model_outputs = wf_arena_memdup(u->arena, u->graph->outputs,
                                       u->n_model_outputs * sizeof(*u->model_outputs));
    return u->model_outputs ? WF_OK : wf_fail_nomem(err, u->n_model_outputs * sizeof(wf_value *));
}

/* A stage that `weft graph` wrote says where variables lie, and holds none. */
static wf_status refuse_stages(const wf_unit *u, wf_err *err)
{
    for (size_t i = 0; i < u->graph->n_nodes; i++) {
        const wf_node *n = u->graph->nodes[i];

        if (n->op->flags & (WF_OP_SOURCE | WF_OP_SINK))
            return wf_fail(err, WF_INVALID, "give the model that it was made from",
                           "node \"%s\" is a %s: the file is a stage that was compiled already",
                           n->name, n->op->name);
    }
    return WF_OK;
}

wf_status wf_pass_import(wf_unit *u, wf_err *err)
{
    WF_TRY(read_source(u, err));
    u->c->given_bytes = bytes_given(u->graph);
    WF_TRY(refuse_stages(u, err));
    if (!u->graph->n_outputs)
        return wf_fail(err, WF_INVALID, "name its outputs when exporting it",
                       "the model has no outputs");
    WF_TRY(bind_inputs(u, err));
    WF_TRY(bind_feeds(u, err));
    WF_TRY(wf_infer(u->graph, err));
    WF_TRY(take_branches(u, err));
    /* Of the model as it is in all modes: before it is widened. */
    WF_TRY(wf_graph_digest(u->graph, u->spec, &u->c->digest, err));
    WF_TRY(wf_import_widen(u, err));
    WF_TRY(keep_outputs(u, err));
    WF_TRY(wf_exporter_describe(u, err));
    if (u->spec->mode == WF_COMPILE_TRAIN || u->spec->warns_of_export)
        WF_TRY(wf_exporter_warn(u, err));
    settle_variables(u);
    return WF_OK;
}

wf_status wf_pass_infer(wf_unit *u, wf_err *err)
{
    WF_TRY(wf_infer(u->graph, err));
    return is_of_records(u->spec) ? wf_check_open(u, err) : WF_OK;
}
