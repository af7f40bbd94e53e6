/* SPDX-License-Identifier: Apache-2.0 */
/* common/session/extend.c */
#include "common/session/extend.h"
#include "common/base/size.h"
#include "common/graph/infer.h"
#include "common/graph/op.h"

#include <stdlib.h>
#include <string.h>

wf_status wf_extend_begin(wf_graph **out, wf_err *err)
{
    return wf_graph_new("session", out, err);
}

/* ---- which values are variables ---- */

static bool takes_variable(const wf_node *n)
{
    return strcmp(n->op->domain, WF_DOMAIN_WEFT) == 0 &&
           (strcmp(n->op->name, "Read") == 0 || strcmp(n->op->name, "Assign") == 0 ||
            strcmp(n->op->name, "AssignAdd") == 0);
}

/* What an operation on variables takes is one, of whatever dtype. An input may be a variable of the
 * session. */
static wf_status mark_variables(wf_graph *model, wf_err *err)
{
    for (size_t i = 0; i < model->n_nodes; i++) {
        const wf_node *n = model->nodes[i];
        wf_value *v = takes_variable(n) ? n->in[0] : NULL;

        if (!v || v->is_input)
            continue;
        if (v->producer || !v->known)
            return wf_fail(err, WF_INVALID, "give it an initializer",
                           "%s \"%s\" takes \"%s\", which is no variable", n->op->name, n->name,
                           v->name);
        if (v->variable == WF_VAR_NOT)
            v->variable = WF_VAR_FROZEN;
    }
    return WF_OK;
}

static wf_status check_variables(const wf_graph *g, wf_err *err)
{
    for (size_t i = 0; i < g->n_nodes; i++) {
        const wf_node *n = g->nodes[i];

        if (takes_variable(n) && n->in[0]->variable == WF_VAR_NOT)
            return wf_fail(err, WF_INVALID, "name a variable of the session",
                           "%s \"%s\" takes \"%s\", which is no variable", n->op->name, n->name,
                           n->in[0]->name);
    }
    return WF_OK;
}

/* ---- values ---- */

static wf_status copy_axes(wf_graph *to, const wf_value *from, wf_value *v, wf_err *err)
{
    v->dtype = from->dtype;
    v->rank = from->rank;
    for (int32_t i = 0; i < from->rank; i++) {
        v->axes[i] = from->axes[i];
        WF_TRY(wf_copy_symbol(to, &v->axes[i].symbol, err));
    }
    return WF_OK;
}

static wf_status check_same(const wf_value *is, const wf_value *given, wf_err *err)
{
    char has[WF_VALUE_STR], gives[WF_VALUE_STR];
    bool same = is->dtype == given->dtype && is->rank == given->rank;

    for (int32_t i = 0; same && i < is->rank; i++)
        same = is->axes[i].size == given->axes[i].size;
    if (same)
        return WF_OK;
    return wf_fail(err, WF_SHAPE, "give one of them another name",
                   "variable \"%s\" is %s in the session, and %s in the model", is->name,
                   wf_value_str(is, has, sizeof has), wf_value_str(given, gives, sizeof gives));
}

/* As far as both say it: an input of the session that the model has, too. */
static wf_status check_input(const wf_value *is, const wf_value *given, wf_err *err)
{
    char has[WF_VALUE_STR], gives[WF_VALUE_STR];
    bool same = is->dtype == WF_NONE || given->dtype == WF_NONE || is->dtype == given->dtype;

    if (same && is->rank >= 0 && given->rank >= 0)
        same = is->rank == given->rank;
    for (int32_t i = 0; same && i < WF_MIN(is->rank, given->rank); i++)
        same = is->axes[i].size < 0 || given->axes[i].size < 0 ||
               is->axes[i].size == given->axes[i].size;
    if (same)
        return WF_OK;
    return wf_fail(err, WF_SHAPE, "give one of them another name",
                   "\"%s\" is %s in the session, and %s in the model", is->name,
                   wf_value_str(is, has, sizeof has), wf_value_str(given, gives, sizeof gives));
}

static wf_status add_variable(wf_graph *to, const wf_value *from, wf_value **out, wf_err *err)
{
    wf_tensor *blank = NULL;
    wf_status rc;

    WF_TRY(
        wf_tensor_new_blank(from->known->dtype, from->known->rank, from->known->dims, &blank, err));
    rc = wf_graph_add_variable(to, from->name, from->variable, &blank, out, err);
    wf_tensor_free(&blank);
    return rc;
}

static wf_status add_constant(wf_graph *to, const wf_value *from, wf_value **out, wf_err *err)
{
    wf_tensor *t = NULL;
    wf_status rc;

    WF_TRY(wf_tensor_share(from->known, &t, err));
    rc = wf_graph_add_constant(to, from->name, &t, out, err);
    wf_tensor_free(&t);
    return rc;
}

/* What is in `to` for a value of the model. */
static wf_status place_value(wf_graph *to, const wf_value *from, wf_value **out, wf_err *err)
{
    wf_value *there = wf_graph_value(to, from->name);

    *out = there;
    if (wf_value_is_constant(from) && !from->producer)
        return add_constant(to, from, out, err); /* by a name like its own */
    if (from->variable != WF_VAR_NOT && there && there->variable != WF_VAR_NOT)
        return check_same(there, from, err);
    if (from->is_input && there) /* of a variable the node that takes it says more */
        return there->variable == WF_VAR_NOT ? check_input(there, from, err) : WF_OK;
    if (there)
        return wf_fail(err, WF_EXISTS, "give it another name in the model",
                       "the session has a value \"%s\" already", from->name);
    if (from->variable != WF_VAR_NOT)
        return add_variable(to, from, out, err);
    WF_TRY(wf_graph_add_value(to, from->name, out, err));
    WF_TRY(copy_axes(to, from, *out, err));
    return from->is_input ? wf_graph_add_input(to, *out, err) : WF_OK;
}

static wf_status add_node(wf_graph *to, const wf_node *n, wf_value *const values[], wf_err *err)
{
    wf_value **in = wf_arena_array(to->arena, n->n_in, sizeof(*in));
    wf_value **out = wf_arena_array(to->arena, n->n_out, sizeof(*out));
    wf_node *added = NULL;

    if (!in || !out)
        return wf_fail_nomem(err, (n->n_in + n->n_out) * sizeof(*in));
    for (uint32_t i = 0; i < n->n_in; i++)
        in[i] = n->in[i] ? values[n->in[i]->index] : NULL;
    for (uint32_t i = 0; i < n->n_out; i++)
        out[i] = n->out[i] ? values[n->out[i]->index] : NULL;
    WF_TRY(wf_graph_add_node_like(to, n->op, n->name, n->n_in, in, n->n_out, out, &added, err));
    for (uint32_t i = 0; i < n->n_attrs; i++)
        WF_TRY(wf_node_set_attr(to, added, &n->attrs[i], err));
    if (n->device) { /* the worker that it is to run on */
        added->device = wf_arena_strdup(to->arena, n->device);
        if (!added->device)
            return wf_fail_nomem(err, strlen(n->device));
    }
    return WF_OK;
}

static wf_status add_parts(wf_graph *to, const wf_graph *model, wf_value *values[], wf_err *err)
{
    for (size_t i = 0; i < model->n_values; i++)
        WF_TRY(place_value(to, model->values[i], &values[model->values[i]->index], err));
    for (size_t i = 0; i < model->n_nodes; i++)
        WF_TRY(add_node(to, model->nodes[i], values, err));
    WF_TRY(check_variables(to, err));
    return wf_infer(to, err);
}

wf_status wf_extend(const wf_graph *g, wf_graph *model, wf_graph **out, wf_err *err)
{
    wf_value **values = calloc(model->n_values + 1, sizeof(*values));
    wf_status rc;

    *out = NULL;
    if (!values)
        return wf_fail_nomem(err, model->n_values * sizeof(*values));
    rc = mark_variables(model, err);
    if (rc == WF_OK)
        rc = wf_graph_copy(g, out, err);
    if (rc == WF_OK)
        rc = add_parts(*out, model, values, err);
    free(values);
    if (rc != WF_OK)
        wf_graph_free(out);
    return rc;
}
