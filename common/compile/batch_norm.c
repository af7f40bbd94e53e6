/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/batch_norm.c - the form of BatchNormalization, and its running values as
 * variables.
 *
 * Running mean and variance become variables of kind statistic in every mode that trains or uses
 * what was trained. TRAIN normalises by the batch, whatever the file says (exporters write the
 * inference form from a model in train mode), and leaves the batch's mean and variance for the
 * strategy to push; EVAL and INFER normalise by the running values. Where the file says that they
 * are frozen, the node keeps the inference form in TRAIN too.
 *
 * Exporters let equal initializers of several nodes become one: a running value that more than one
 * node reads is given to each as a variable of its own, named after the node. A running value has
 * one name in all modes.
 */
#include "common/compile/pass.h"
#include "common/graph/emit.h"
#include <string.h>

enum { MEAN = 3, VAR = 4 };

/* The initializer behind Identities, or NULL when it is computed. */
static wf_value *source_of(wf_value *v)
{
    while (v && v->producer && strcmp(v->producer->op->name, "Identity") == 0)
        v = v->producer->in[0];
    return v && v->known && !v->producer && !v->is_input ? v : NULL;
}

static bool is_batch_norm(const wf_node *n)
{
    return wf_node_is(n, WF_DOMAIN_ONNX, "BatchNormalization");
}

/* Whether one input of one node alone takes it for a running value. */
static bool has_one_reader(const wf_graph *g, size_t n_nodes, const wf_value *source)
{
    size_t n = 0;

    for (size_t i = 0; i < n_nodes; i++)
        for (uint32_t k = MEAN; is_batch_norm(g->nodes[i]) && k <= VAR; k++)
            n += source_of(g->nodes[i]->in[k]) == source;
    return n == 1;
}

/* A variable of kind statistic for input i of n, in its place. */
static wf_status own(wf_unit *u, wf_node *n, uint32_t i, wf_value *source, bool alone, wf_err *err)
{
    static const char *const suffix[] = {[MEAN] = "running_mean", [VAR] = "running_var"};
    wf_tensor *copy = NULL;
    wf_value *mine = NULL;
    const char *name;
    wf_status rc;

    if (alone) {
        source->variable = WF_VAR_STATISTIC;
        wf_node_set_in(n, i, source);
        return WF_OK;
    }
    name = wf_arena_printf(u->arena, "%s/%s", n->out[0] ? n->out[0]->name : n->name, suffix[i]);
    if (!name)
        return wf_fail_nomem(err, strlen(n->name));
    WF_TRY(wf_tensor_copy(source->known, &copy, err));
    rc = wf_graph_add_variable(u->graph, name, WF_VAR_STATISTIC, &copy, &mine, err);
    wf_tensor_free(&copy);
    if (rc == WF_OK)
        wf_node_set_in(n, i, mine);
    return rc;
}

/* The old node's outputs but for y: who reads them reads the running value as it was. */
static wf_status drop_running_outputs(wf_unit *u, wf_node *n, wf_err *err)
{
    for (uint32_t i = 1; i < 3; i++) {
        if (!wf_node_has_out(n, i))
            continue;
        WF_TRY(wf_hand_over(u, n->out[i], n->in[i + 2], err));
        n->out[i]->producer = NULL;
        n->out[i] = NULL;
    }
    n->n_out = 1;
    return WF_OK;
}

static wf_status add_statistic(wf_unit *u, const wf_value *variable, wf_value *batch,
                               double momentum, wf_err *err)
{
    wf_statistic *s = &u->statistics[u->n_statistics];

    *s = (wf_statistic){.name = variable->name, .batch = batch, .momentum = momentum};
    WF_TRY(wf_unit_share(u, variable->known, &s->initial, err));
    u->n_statistics++;
    return WF_OK;
}

static wf_status to_train(wf_unit *u, wf_node *n, wf_err *err)
{
    wf_emit e = wf_emit_begin(u->graph, n->name, err);
    wf_attr epsilon = wf_attr_float("epsilon", wf_node_float(n, "epsilon", 1e-5f));
    double momentum = (double)wf_node_float(n, "momentum", 0.9f);
    wf_value *in[3] = {n->in[0], n->in[1], n->in[2]}, *out[3];

    if (!(momentum >= 0 && momentum <= 1))
        return wf_fail(err, WF_INVALID, "write a momentum from 0 to 1",
                       "BatchNormalization \"%s\" has a momentum of %g", n->name, momentum);
    wf_emit_node(&e, "BatchNormalizationTrain", 3, in, 1, &epsilon, 3, out);
    WF_TRY(wf_emit_end(&e));
    WF_TRY(add_statistic(u, n->in[MEAN], out[1], momentum, err));
    WF_TRY(add_statistic(u, n->in[VAR], out[2], momentum, err));
    WF_TRY(drop_running_outputs(u, n, err));
    return n->out[0] ? wf_hand_over(u, n->out[0], out[0], err) : WF_OK;
}

static wf_status to_inference(wf_unit *u, wf_node *n, wf_err *err)
{
    WF_TRY(drop_running_outputs(u, n, err));
    wf_node_drop_attr(n, "training_mode");
    return WF_OK;
}

static wf_status one(wf_unit *u, wf_node *n, bool alone, wf_err *err)
{
    wf_value *mean = source_of(n->in[MEAN]), *var = source_of(n->in[VAR]);

    if (!mean || !var || mean->variable == WF_VAR_FROZEN || var->variable == WF_VAR_FROZEN)
        return to_inference(u, n, err);
    WF_TRY(own(u, n, MEAN, mean, alone, err));
    WF_TRY(own(u, n, VAR, var, alone, err));
    return u->spec->mode == WF_COMPILE_TRAIN ? to_train(u, n, err) : to_inference(u, n, err);
}

wf_status wf_mode_batch_norm(wf_unit *u, wf_err *err)
{
    size_t n_nodes = u->graph->n_nodes;
    bool *alone = wf_arena_array(u->arena, n_nodes, sizeof(*alone));

    u->statistics = wf_arena_array(u->arena, 2 * n_nodes, sizeof(*u->statistics));
    if (!u->statistics || !alone)
        return wf_fail_nomem(err, n_nodes * sizeof(*u->statistics));
    /* All of them before the first changes: a variable's name must not depend on the order. */
    for (size_t i = 0; i < n_nodes; i++) {
        const wf_node *n = u->graph->nodes[i];

        alone[i] = is_batch_norm(n) && has_one_reader(u->graph, n_nodes, source_of(n->in[MEAN])) &&
                   has_one_reader(u->graph, n_nodes, source_of(n->in[VAR]));
    }
    for (size_t i = 0; i < n_nodes; i++)
        if (is_batch_norm(u->graph->nodes[i]))
            WF_TRY(one(u, u->graph->nodes[i], alone[i], err));
    return WF_OK;
}
