/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/graph.c - making graphs: values, nodes, names, copies. */
#include "common/graph/graph.h"
#include "common/base/size.h"
#include "common/graph/names.h"
#include "common/graph/op.h"
#include "common/graph/uses.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

wf_status wf_graph_new(const char *name, wf_graph **out, wf_err *err)
{
    wf_graph *g = calloc(1, sizeof *g);

    if (!g)
        return wf_fail_nomem(err, sizeof *g);
    g->arena = wf_arena_new(0);
    g->names = calloc(1, sizeof *g->names);
    if (g->arena)
        g->name = wf_arena_strdup(g->arena, name && name[0] ? name : "graph");
    if (!g->names || !g->name) {
        wf_graph_free(&g);
        return wf_fail_nomem(err, sizeof *g);
    }
    *out = g;
    return WF_OK;
}

void wf_graph_free(wf_graph **g)
{
    wf_graph *it = *g;

    if (!it)
        return;
    for (size_t i = 0; i < it->n_values; i++)
        wf_tensor_free(&it->values[i]->known);
    for (size_t i = 0; i < it->n_nodes; i++)
        while (it->nodes[i]->n_attrs)
            wf_node_drop_attr(it->nodes[i], it->nodes[i]->attrs[0].name);
    if (it->names) {
        wf_names_close(&it->names->values);
        wf_names_close(&it->names->nodes);
        free(it->names);
    }
    free(it->nodes);
    free(it->values);
    free(it->inputs);
    free(it->outputs);
    wf_arena_free(&it->arena);
    free(it);
    *g = NULL;
}

/* Makes room for one more element of *list. */
static wf_status reserve(void **list, size_t n, size_t *room, size_t element, wf_err *err)
{
    size_t bigger = *room ? *room * 2 : 16, bytes;
    void *p;

    if (n < *room)
        return WF_OK;
    if (!wf_mul_size(bigger, element, &bytes))
        return wf_fail_nomem(err, SIZE_MAX);
    p = realloc(*list, bytes);
    if (!p)
        return wf_fail_nomem(err, bytes);
    *list = p;
    *room = bigger;
    return WF_OK;
}

/* How many bytes of `text` are at most `most` and end no UTF-8 character in its middle. */
static int cut_at(const char *text, size_t most)
{
    size_t n = strnlen(text, most + 1);

    if (n <= most)
        return (int)n;
    for (n = most; n > 0 && ((unsigned char)text[n] & 0xC0) == 0x80;)
        n--;
    return (int)n;
}

/* A name like `hint` that `table` does not have, in the arena. */
static char *free_name(wf_graph *g, const wf_name_table *table, const char *hint)
{
    enum { DIGITS = 21 }; /* of a 64-bit number and the sign before it */
    char *name = wf_arena_printf(g->arena, "%.*s", cut_at(hint, WF_GRAPH_LONGEST_NAME), hint);

    if (!name || !wf_names_find(table, name))
        return name;
    do
        name = wf_arena_printf(g->arena, "%.*s_%" PRIu64,
                               cut_at(hint, WF_GRAPH_LONGEST_NAME - DIGITS), hint, ++g->next_name);
    while (name && wf_names_find(table, name));
    return name;
}

/* `name` is in the arena and free. */
static wf_status add_value(wf_graph *g, const char *name, wf_value **out, wf_err *err)
{
    wf_value *v = wf_arena_alloc(g->arena, sizeof *v);

    if (!v || !name)
        return wf_fail_nomem(err, sizeof *v);
    v->name = name;
    v->rank = -1;
    v->index = (uint32_t)g->n_values;
    WF_TRY(reserve((void **)&g->values, g->n_values, &g->values_room, sizeof g->values[0], err));
    WF_TRY(wf_names_add(&g->names->values, name, v, err));
    g->values[g->n_values++] = v;
    *out = v;
    return WF_OK;
}

wf_status wf_graph_add_value(wf_graph *g, const char *name, wf_value **out, wf_err *err)
{
    if (!name)
        return wf_graph_add_value_like(g, "value", out, err);
    if (wf_graph_value(g, name))
        return wf_fail(err, WF_EXISTS, "give one of them another name",
                       "two values are called \"%s\"", name);
    return add_value(g, wf_arena_strdup(g->arena, name), out, err);
}

wf_status wf_graph_add_value_like(wf_graph *g, const char *hint, wf_value **out, wf_err *err)
{
    return add_value(g, free_name(g, &g->names->values, hint), out, err);
}

void wf_value_set_type(wf_value *v, wf_dtype dtype, uint32_t rank, const int64_t dims[])
{
    wf_assert(rank <= WF_MAX_RANK);
    v->dtype = dtype;
    v->rank = (int32_t)rank;
    for (uint32_t i = 0; i < rank; i++)
        v->axes[i] = (wf_axis){.size = dims[i], .bound = dims[i]};
}

wf_status wf_graph_add_constant(wf_graph *g, const char *hint, wf_tensor **t, wf_value **out,
                                wf_err *err)
{
    WF_TRY(wf_graph_add_value_like(g, hint, out, err));
    wf_value_set_type(*out, (*t)->dtype, (*t)->rank, (*t)->dims);
    wf_value_set_known(*out, t);
    return WF_OK;
}

wf_status wf_graph_add_variable(wf_graph *g, const char *name, wf_var_kind kind, wf_tensor **t,
                                wf_value **out, wf_err *err)
{
    WF_TRY(wf_graph_add_value(g, name, out, err));
    wf_value_set_type(*out, (*t)->dtype, (*t)->rank, (*t)->dims);
    wf_value_set_known(*out, t);
    (*out)->variable = kind;
    return WF_OK;
}

wf_status wf_graph_rename_value(wf_graph *g, wf_value *v, const char *name, wf_err *err)
{
    char *copy;

    if (strcmp(v->name, name) == 0)
        return WF_OK;
    if (wf_graph_value(g, name))
        return wf_fail(err, WF_EXISTS, "give one of them another name",
                       "two values would be called \"%s\"", name);
    copy = free_name(g, &g->names->values, name);
    if (!copy)
        return wf_fail_nomem(err, strlen(name) + 1);
    WF_TRY(wf_names_add(&g->names->values, copy, v, err));
    wf_names_remove(&g->names->values, v->name);
    v->name = copy;
    return WF_OK;
}

void wf_value_set_known(wf_value *v, wf_tensor **t)
{
    wf_tensor_free(&v->known);
    v->known = *t;
    *t = NULL;
}

/* A copy of a list of values; never NULL but for want of memory. */
static wf_value **copy_list(wf_graph *g, uint32_t n, wf_value *const list[])
{
    wf_value **copy = wf_arena_array(g->arena, n, sizeof copy[0]);

    if (copy && n)
        memcpy(copy, list, n * sizeof copy[0]);
    return copy;
}

wf_status wf_graph_add_node(wf_graph *g, const wf_op *op, const char *name, uint32_t n_in,
                            wf_value *const in[], uint32_t n_out, wf_value *const out[],
                            wf_node **node, wf_err *err)
{
    if (name && wf_graph_node(g, name))
        return wf_fail(err, WF_EXISTS, "give one of them another name",
                       "two nodes are called \"%s\"", name);
    return wf_graph_add_node_like(g, op, name ? name : op->name, n_in, in, n_out, out, node, err);
}

wf_status wf_graph_add_node_like(wf_graph *g, const wf_op *op, const char *hint, uint32_t n_in,
                                 wf_value *const in[], uint32_t n_out, wf_value *const out[],
                                 wf_node **node, wf_err *err)
{
    wf_node *n = wf_arena_alloc(g->arena, sizeof *n);

    if (!n)
        return wf_fail_nomem(err, sizeof *n);
    n->name = free_name(g, &g->names->nodes, hint);
    n->op = op;
    n->n_in = n_in;
    n->in = copy_list(g, n_in, in);
    n->n_out = n_out;
    n->out = copy_list(g, n_out, out);
    n->index = (uint32_t)g->n_nodes;
    n->device = g->device ? wf_arena_strdup(g->arena, g->device) : NULL;
    if (!n->name || !n->in || !n->out || (g->device && !n->device))
        return wf_fail_nomem(err, sizeof *n);
    for (uint32_t i = 0; i < n_out; i++)
        if (out[i] && out[i]->producer)
            return wf_fail(err, WF_INVALID, NULL,
                           "value \"%s\" is made by both %s \"%s\" and %s "
                           "\"%s\"",
                           out[i]->name, out[i]->producer->op->name, out[i]->producer->name,
                           op->name, n->name);
    WF_TRY(reserve((void **)&g->nodes, g->n_nodes, &g->nodes_room, sizeof g->nodes[0], err));
    WF_TRY(wf_names_add(&g->names->nodes, n->name, n, err));
    g->nodes[g->n_nodes++] = n;
    WF_TRY(wf_uses_link(g, n, err));
    for (uint32_t i = 0; i < n_out; i++) {
        if (!out[i])
            continue;
        out[i]->producer = n;
        out[i]->output = i;
    }
    if (node)
        *node = n;
    return WF_OK;
}

wf_status wf_node_want_output(wf_graph *g, wf_node *n, uint32_t i, wf_value **out, wf_err *err)
{
    if (!wf_node_has_out(n, i)) {
        const char *hint = wf_arena_printf(g->arena, "%s:%u", n->name, i);
        wf_value *v = NULL;

        if (!hint)
            return wf_fail_nomem(err, strlen(n->name));
        if (i >= n->n_out) {
            wf_value **longer = wf_arena_array(g->arena, i + 1, sizeof longer[0]);

            if (!longer)
                return wf_fail_nomem(err, (i + 1) * sizeof longer[0]);
            memset(longer, 0, (i + 1) * sizeof longer[0]);
            memcpy(longer, n->out, n->n_out * sizeof longer[0]);
            n->out = longer;
            n->n_out = i + 1;
        }
        WF_TRY(wf_graph_add_value_like(g, hint, &v, err));
        v->producer = n;
        v->output = i;
        n->out[i] = v;
        WF_TRY(wf_infer_node(g, n, err));
    }
    *out = n->out[i];
    return WF_OK;
}

wf_status wf_graph_add_input(wf_graph *g, wf_value *v, wf_err *err)
{
    WF_TRY(reserve((void **)&g->inputs, g->n_inputs, &g->inputs_room, sizeof g->inputs[0], err));
    g->inputs[g->n_inputs++] = v;
    v->is_input = true;
    return WF_OK;
}

wf_status wf_graph_add_output(wf_graph *g, wf_value *v, wf_err *err)
{
    WF_TRY(
        reserve((void **)&g->outputs, g->n_outputs, &g->outputs_room, sizeof g->outputs[0], err));
    g->outputs[g->n_outputs++] = v;
    return WF_OK;
}

wf_value *wf_graph_value(const wf_graph *g, const char *name)
{
    return wf_names_find(&g->names->values, name);
}

wf_node *wf_graph_node(const wf_graph *g, const char *name)
{
    return wf_names_find(&g->names->nodes, name);
}

const char *wf_value_str(const wf_value *v, char *text, size_t size)
{
    size_t at;

    if (v->rank < 0) {
        snprintf(text, size, "%s[of unknown rank]", wf_dtype_name(v->dtype));
        return text;
    }
    snprintf(text, size, "%s[", wf_dtype_name(v->dtype));
    for (int32_t i = 0; i < v->rank; i++) {
        const wf_axis *axis = &v->axes[i];

        at = strlen(text);
        if (axis->size >= 0)
            snprintf(text + at, size - at, "%s%" PRId64, i ? ", " : "", axis->size);
        else
            snprintf(text + at, size - at, "%s%s", i ? ", " : "",
                     axis->symbol ? axis->symbol : "?");
    }
    at = strlen(text);
    snprintf(text + at, size - at, "]");
    return text;
}
