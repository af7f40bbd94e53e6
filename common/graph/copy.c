/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/copy.c - a deep copy of a graph; constant tensors share their storage. */
#include "common/graph/graph.h"
#include "common/graph/infer.h"
#include "common/graph/op.h"

#include <stdlib.h>
#include <string.h>

static wf_status copy_value(wf_graph *to, const wf_value *v, wf_value **out, wf_err *err)
{
    wf_value *copy = NULL;
    wf_tensor *known = NULL;

    WF_TRY(wf_graph_add_value(to, v->name, &copy, err));
    copy->dtype = v->dtype;
    copy->rank = v->rank;
    for (int32_t i = 0; i < v->rank; i++) {
        copy->axes[i] = v->axes[i];
        WF_TRY(wf_copy_symbol(to, &copy->axes[i].symbol, err));
    }
    copy->variable = v->variable;
    if (v->carried) {
        copy->carried = wf_arena_array(to->arena, v->n_carried, sizeof copy->carried[0]);
        if (!copy->carried)
            return wf_fail_nomem(err, v->n_carried * sizeof copy->carried[0]);
        copy->n_carried = v->n_carried;
        for (uint32_t i = 0; i < v->n_carried; i++) {
            copy->carried[i] = v->carried[i];
            WF_TRY(wf_copy_symbol(to, &copy->carried[i].symbol, err));
        }
    }
    if (v->known) {
        WF_TRY(wf_tensor_share(v->known, &known, err));
        wf_value_set_known(copy, &known);
    }
    *out = copy;
    return WF_OK;
}

static wf_status copy_node(wf_graph *to, const wf_node *n, wf_value *const values[], wf_err *err)
{
    wf_value **in = wf_arena_array(to->arena, n->n_in, sizeof in[0]);
    wf_value **out = wf_arena_array(to->arena, n->n_out, sizeof out[0]);
    wf_node *copy = NULL;

    if (!in || !out)
        return wf_fail_nomem(err, (n->n_in + n->n_out) * sizeof in[0]);
    for (uint32_t i = 0; i < n->n_in; i++)
        in[i] = n->in[i] ? values[n->in[i]->index] : NULL;
    for (uint32_t i = 0; i < n->n_out; i++)
        out[i] = n->out[i] ? values[n->out[i]->index] : NULL;
    WF_TRY(wf_graph_add_node(to, n->op, n->name, n->n_in, in, n->n_out, out, &copy, err));
    for (uint32_t a = 0; a < n->n_attrs; a++)
        WF_TRY(wf_node_set_attr(to, copy, &n->attrs[a], err));
    copy->is_tentative = n->is_tentative;
    if (n->device) {
        copy->device = wf_arena_strdup(to->arena, n->device);
        if (!copy->device)
            return wf_fail_nomem(err, strlen(n->device) + 1);
    }
    return WF_OK;
}

static wf_status copy_origin(const wf_origin *o, wf_graph *to, wf_err *err)
{
    const char **numbers = wf_arena_array(to->arena, o->n_numbers, sizeof numbers[0]);

    to->origin = (wf_origin){
        .producer = o->producer ? wf_arena_strdup(to->arena, o->producer) : NULL,
        .version = o->version ? wf_arena_strdup(to->arena, o->version) : NULL,
        .opset = o->opset,
        .names_variables = o->names_variables,
        .numbers = numbers,
    };
    if (!numbers || (o->producer && !to->origin.producer) || (o->version && !to->origin.version))
        return wf_fail_nomem(err, o->n_numbers * sizeof numbers[0]);
    for (; to->origin.n_numbers < o->n_numbers; to->origin.n_numbers++) {
        size_t i = to->origin.n_numbers;

        numbers[i] = wf_arena_strdup(to->arena, o->numbers[i]);
        if (!numbers[i])
            return wf_fail_nomem(err, strlen(o->numbers[i]) + 1);
    }
    return WF_OK;
}

/* values [g->n_values] is filled with the copies. */
static wf_status copy_parts(const wf_graph *g, wf_graph *to, wf_value *values[], wf_err *err)
{
    for (size_t i = 0; i < g->n_values; i++) {
        wf_assert(g->values[i]->index == i);
        WF_TRY(copy_value(to, g->values[i], &values[i], err));
    }
    for (size_t i = 0; i < g->n_nodes; i++)
        WF_TRY(copy_node(to, g->nodes[i], values, err));
    for (size_t i = 0; i < g->n_inputs; i++)
        WF_TRY(wf_graph_add_input(to, values[g->inputs[i]->index], err));
    for (size_t i = 0; i < g->n_outputs; i++)
        WF_TRY(wf_graph_add_output(to, values[g->outputs[i]->index], err));
    to->next_name = g->next_name;
    return copy_origin(&g->origin, to, err);
}

wf_status wf_graph_copy(const wf_graph *g, wf_graph **out, wf_err *err)
{
    wf_graph *to = NULL;
    wf_value **values = calloc(g->n_values + 1, sizeof values[0]);
    wf_status rc;

    if (!values)
        return wf_fail_nomem(err, g->n_values * sizeof values[0]);
    rc = wf_graph_new(g->name, &to, err);
    if (rc == WF_OK)
        rc = copy_parts(g, to, values, err);
    free(values);
    if (rc != WF_OK) {
        wf_graph_free(&to);
        return rc;
    }
    *out = to;
    return WF_OK;
}
