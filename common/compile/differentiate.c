/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/differentiate.c - from the loss to each trainable variable.
 *
 * A trainable variable that the loss reads without a gradient reaching it (class weights, a branch
 * through integers) is frozen here, so that it is never pushed. The eval graph must agree on that
 * with the train graph, so it is asked the same question, on a copy that is thrown away.
 */
#include "common/compile/pass.h"
#include "common/graph/emit.h"
#include <stdlib.h>
#include <string.h>

/* All trainable variables into *wrt, which the caller frees. */
static wf_status list_trainable(const wf_graph *g, wf_value ***wrt, size_t *n, wf_err *err)
{
    *n = 0;
    *wrt = calloc(g->n_values ? g->n_values : 1, sizeof(**wrt));
    if (!*wrt)
        return wf_fail_nomem(err, g->n_values * sizeof(**wrt));
    for (size_t i = 0; i < g->n_values; i++)
        if (g->values[i]->variable == WF_VAR_TRAINABLE)
            (*wrt)[(*n)++] = g->values[i];
    return WF_OK;
}

void wf_mark_ancestors(const wf_graph *g, const wf_value *from, bool seen[])
{
    if (seen[from->index])
        return;
    seen[from->index] = true;
    /* Nodes are in topological order: one sweep backwards is enough and does not recurse. */
    for (size_t i = g->n_nodes; i-- > 0;) {
        const wf_node *n = g->nodes[i];
        bool needed = false;

        for (uint32_t k = 0; k < n->n_out; k++)
            needed = needed || (n->out[k] && seen[n->out[k]->index]);
        for (uint32_t k = 0; needed && k < n->n_in; k++)
            if (n->in[k])
                seen[n->in[k]->index] = true;
    }
}

static wf_status say_no_gradient(wf_unit *u, const wf_value *v, bool read, wf_err *err)
{
    if (u->spec->mode == WF_COMPILE_EVAL)
        return WF_OK; /* the train graph has said it */
    if (read && u->spec->mode == WF_COMPILE_TRAIN)
        return wf_unit_warn(u, err,
                            "\"%s\" is used by the loss, but no gradient reaches it: it keeps its "
                            "content and is not trained",
                            v->name);
    if (read)
        return wf_unit_warn(u, err, "no gradient reaches \"%s\": it is zero", v->name);
    return wf_unit_warn(u, err, "the loss does not depend on \"%s\": %s", v->name,
                        u->spec->mode == WF_COMPILE_TRAIN ? "its branch is pruned and not trained"
                                                          : "its gradient is zero");
}

/* Weights, by what they look like: an initializer of more than one float. */
static bool is_weight(const wf_value *v)
{
    return !v->producer && v->known && !v->is_input && wf_dtype_is_float(v->dtype) &&
           (v->variable != WF_VAR_NOT || wf_elems(v->known) > 1);
}

/* Marks by value index what is computed from weights. */
static void mark_weighed(const wf_graph *g, bool weighed[])
{
    for (size_t i = 0; i < g->n_values; i++)
        weighed[g->values[i]->index] = is_weight(g->values[i]);
    for (size_t i = 0; i < g->n_nodes; i++) {
        const wf_node *n = g->nodes[i];
        bool any = false;

        for (uint32_t k = 0; k < n->n_in; k++)
            any = any || (n->in[k] && weighed[n->in[k]->index]);
        for (uint32_t k = 0; k < n->n_out; k++)
            if (n->out[k])
                weighed[n->out[k]->index] = any;
    }
}

/* The node nearest to the loss that a gradient reaches and that passes none on to a weight; NULL:
 * none. */
static const wf_node *find_cut(const wf_graph *g, const wf_value *loss, const bool weighed[],
                               bool reached[])
{
    reached[loss->index] = true;
    for (size_t i = g->n_nodes; i-- > 0;) {
        const wf_node *n = g->nodes[i];
        bool here = false, wants = false, passes = false;

        for (uint32_t k = 0; k < n->n_out; k++)
            here = here || (n->out[k] && reached[n->out[k]->index]);
        for (uint32_t k = 0; here && k < n->n_in; k++) {
            if (!n->in[k] || !weighed[n->in[k]->index])
                continue;
            wants = true;
            if (!n->op->grad || wf_op_cuts_grad(n->op, k) || !wf_dtype_is_float(n->in[k]->dtype))
                continue;
            passes = true;
            reached[n->in[k]->index] = true;
        }
        if (wants && !passes)
            return n;
    }
    return NULL;
}

/* The weight that n's results come from. */
static const wf_value *weight_before(const wf_node *n, const bool weighed[])
{
    const wf_value *v = n->out[0];

    while (v->producer) {
        uint32_t k = 0;

        while (!v->producer->in[k] || !weighed[v->producer->in[k]->index])
            k++;
        v = v->producer->in[k];
    }
    return v;
}

static wf_status say_cut(const wf_unit *u, const wf_node *n, const bool weighed[], wf_err *err)
{
    const char *weight = weight_before(n, weighed)->name;
    char text[128] = "?";

    for (uint32_t k = 0; k < n->n_in; k++)
        if (n->in[k] && weighed[n->in[k]->index])
            wf_value_str(n->in[k], text, sizeof(text));
    return wf_fail(err, WF_INVALID, "compute the loss from what lies before that node",
                   "no gradient reaches a variable: the way from the loss \"%s\" to \"%s\" ends at "
                   "%s \"%s\", %s%s",
                   u->loss->name, weight, n->op->name, n->name,
                   n->op->grad ? "which takes " : "which has no gradient", n->op->grad ? text : "");
}

/* Why there is nothing to train. */
static wf_status say_nothing_is_trained(const wf_unit *u, size_t n, wf_value *const wrt[],
                                        wf_err *err)
{
    const wf_graph *g = u->graph;
    bool *weighed = calloc(2 * g->n_values + 1, sizeof(*weighed));
    const wf_node *cut;
    wf_status rc;

    if (!weighed)
        return wf_fail_nomem(err, 2 * g->n_values);
    mark_weighed(g, weighed);
    cut = find_cut(g, u->loss, weighed, weighed + g->n_values);
    if (cut)
        rc = say_cut(u, cut, weighed, err);
    else if (n)
        rc = wf_fail(err, WF_INVALID, "check which output is the loss",
                     "the loss \"%s\" depends on none of the %zu trainable variables (\"%s\"...)",
                     u->loss->name, n, wrt[0]->name);
    else if (u->spec->n_freeze)
        rc = wf_unit_in_file(u, u->spec->freeze_line,
                             wf_fail(err, WF_USAGE, "freeze fewer of them",
                                     "\"freeze\" leaves no variable to train"),
                             err);
    else
        rc = wf_fail(err, WF_INVALID, "export the model with its weights as initializers",
                     "the model has no trainable variable");
    free(weighed);
    return rc;
}

/* What is not trained is frozen, and of frozen variables a worker has all rows. */
static wf_status say_no_table(const wf_unit *u, const wf_value *v, wf_err *err)
{
    return wf_unit_in_file(u, u->spec->tables_line,
                           wf_fail(err, WF_USAGE, "take it out of \"tables\"",
                                   "\"%.200s\" cannot be a table: no gradient of the loss reaches "
                                   "it",
                                   v->name),
                           err);
}

/* Keeps the targets, and freezes what the loss reads and no gradient reaches. */
static wf_status keep_targets(wf_unit *u, size_t n, wf_value *const wrt[], wf_value *const grads[],
                              const bool read[], wf_err *err)
{
    bool any = false;

    u->targets = wf_arena_array(u->arena, n, sizeof(*u->targets));
    if (!u->targets)
        return wf_fail_nomem(err, n * sizeof(*u->targets));
    for (size_t i = 0; i < n; i++) {
        any = any || grads[i];
        u->targets[i] = (wf_target){.variable = wrt[i], .gradient = grads[i]};
        WF_TRY(wf_unit_share(u, wrt[i]->known, &u->targets[i].initial, err));
        u->n_targets++;
        if (grads[i])
            continue;
        if (wf_unit_table(u, wrt[i]->name))
            return say_no_table(u, wrt[i], err);
        WF_TRY(say_no_gradient(u, wrt[i], read[wrt[i]->index], err));
        if (u->spec->mode != WF_COMPILE_GRAD)
            wrt[i]->variable = WF_VAR_FROZEN;
    }
    return any ? WF_OK : say_nothing_is_trained(u, n, wrt, err);
}

/* EVAL: grads[i] is wrt[i] itself where the train graph has a gradient, else NULL. */
static wf_status ask_copy(const wf_unit *u, size_t n, wf_value *const wrt[], wf_value *grads[],
                          wf_err *err)
{
    wf_status rc;
    wf_graph *copy = NULL;
    wf_value **theirs = calloc(n ? n : 1, sizeof(*theirs));

    if (!theirs)
        return wf_fail_nomem(err, n * sizeof(*theirs));
    rc = wf_graph_copy(u->graph, &copy, err);
    if (rc != WF_OK)
        goto out;
    for (size_t i = 0; i < n; i++)
        theirs[i] = wf_graph_value(copy, wrt[i]->name);
    rc = wf_graph_differentiate(copy, wf_graph_value(copy, u->loss->name), theirs, n, grads, err);
    for (size_t i = 0; rc == WF_OK && i < n; i++)
        grads[i] = grads[i] ? wrt[i] : NULL;
out:
    wf_graph_free(&copy);
    free(theirs);
    return rc;
}

/* What is differentiated: the loss, or its product with an input, by which the pass `update`
 * divides. In float16 gradients of the loss alone may be too small (worker/loss_scale.h). */
static wf_status scaled_loss(wf_unit *u, wf_value **out, wf_err *err)
{
    wf_emit e = wf_emit_begin(u->graph, "loss_scale", err);

    *out = u->loss;
    if (!u->spec->scales_loss || u->spec->mode != WF_COMPILE_TRAIN)
        return WF_OK;
    WF_TRY(wf_graph_add_value_like(u->graph, "loss_scale", &u->loss_scale, err));
    wf_value_set_type(u->loss_scale, WF_F32, 0, NULL);
    WF_TRY(wf_graph_add_input(u->graph, u->loss_scale, err));
    *out = wf_emit_mul(&e, u->loss, wf_emit_cast(&e, u->loss_scale, u->loss->dtype));
    return wf_emit_end(&e);
}

static wf_status differentiate_loss(wf_unit *u, size_t n, wf_value *const wrt[], wf_value *grads[],
                                    wf_err *err)
{
    wf_value *loss;

    WF_TRY(scaled_loss(u, &loss, err));
    return wf_graph_differentiate(u->graph, loss, wrt, n, grads, err);
}

static wf_status differentiate(wf_unit *u, size_t n, wf_value *const wrt[], wf_value *grads[],
                               wf_err *err)
{
    wf_status rc;
    bool eval = u->spec->mode == WF_COMPILE_EVAL;
    bool *read = calloc(u->graph->n_values, sizeof(*read));

    if (!read)
        return wf_fail_nomem(err, u->graph->n_values);
    wf_mark_ancestors(u->graph, u->loss, read); /* before gradients are added: indices are fixed */
    rc = eval ? ask_copy(u, n, wrt, grads, err) : differentiate_loss(u, n, wrt, grads, err);
    if (rc == WF_OK)
        rc = keep_targets(u, n, wrt, grads, read, err);
    free(read);
    return rc;
}

wf_status wf_pass_differentiate(wf_unit *u, wf_err *err)
{
    wf_status rc;
    wf_value **wrt = NULL, **grads = NULL;
    size_t n = 0;

    if (u->spec->mode == WF_COMPILE_RUN || u->spec->mode == WF_COMPILE_INFER ||
        (u->spec->mode == WF_COMPILE_EVAL && !u->spec->strategy))
        return WF_OK;
    rc = list_trainable(u->graph, &wrt, &n, err);
    if (rc != WF_OK)
        return rc;
    grads = calloc(n ? n : 1, sizeof(*grads));
    rc = grads ? differentiate(u, n, wrt, grads, err) : wf_fail_nomem(err, n * sizeof(*grads));
    free(grads);
    free(wrt);
    return rc;
}
