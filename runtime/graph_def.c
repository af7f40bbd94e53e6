/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/graph_def.c - messages are built in an arena. */
#include "runtime/graph_def.h"
#include "common/base/size.h"
#include "common/graph/op.h"
#include "runtime/event.pb-c.h"

#include <inttypes.h>
#include <jansson.h>
#include <string.h>

enum { MOST_NODES = 20000, PRODUCER = 22 /* the form of GraphDef that has op names alone */ };

typedef struct writer {
    const wf_graph *g;
    wf_arena *arena;
    json_t *names;   /* those that are taken */
    char **of_value; /* [n_values]: of those that no node makes */
    char **of_node;  /* [n_nodes] */
    bool failed;     /* no memory */
} writer;

static void *take(writer *w, size_t n, size_t size)
{
    void *p = wf_arena_array(w->arena, n, size);

    w->failed = w->failed || !p;
    return p;
}

/* ---- names ---- */

static char *new_name(writer *w, const char *name)
{
    const char *from = name[0] == '/' && name[1] ? name + 1 : name;
    char *safe = wf_arena_strdup(w->arena, from), *out = safe;

    for (char *c = safe; c && *c; c++)
        if (*c <= ' ' || *c > '~' || *c == ':')
            *c = '_';
    for (uint32_t i = 1; out && json_object_get(w->names, out); i++)
        out = wf_arena_printf(w->arena, "%s_%" PRIu32, safe, i);
    if (!out || json_object_set_new_nocheck(w->names, out, json_true()) != 0)
        w->failed = true;
    return out;
}

/* ---- messages ---- */

static Tensorboard__Shape *shape_of(writer *w, const wf_value *v)
{
    Tensorboard__Shape *s = take(w, 1, sizeof *s);
    Tensorboard__Shape__Dim *rows;

    if (!s)
        return NULL;
    tensorboard__shape__init(s);
    s->has_unknown_rank = s->unknown_rank = !v || v->rank < 0;
    if (s->unknown_rank)
        return s;
    s->dim = take(w, (size_t)v->rank + 1, sizeof(*s->dim));
    rows = take(w, (size_t)v->rank + 1, sizeof *rows);
    for (int32_t i = 0; s->dim && rows && i < v->rank; i++) {
        tensorboard__shape__dim__init(&rows[i]);
        rows[i].has_size = true;
        rows[i].size = v->axes[i].size;
        s->dim[s->n_dim++] = &rows[i];
    }
    return s;
}

static Tensorboard__AttrEntry *shapes_of(writer *w, uint32_t n, wf_value *const values[])
{
    Tensorboard__AttrEntry *e = take(w, 1, sizeof *e);
    Tensorboard__AttrValue *a = take(w, 1, sizeof *a);
    Tensorboard__ListValue *l = take(w, 1, sizeof *l);

    if (!e || !a || !l)
        return NULL;
    tensorboard__attr_entry__init(e);
    tensorboard__attr_value__init(a);
    tensorboard__list_value__init(l);
    l->shape = take(w, n + (size_t)1, sizeof(*l->shape));
    for (uint32_t i = 0; l->shape && i < n; i++)
        l->shape[l->n_shape++] = shape_of(w, values[i]);
    a->list = l;
    e->key = "_output_shapes";
    e->value = a;
    return e;
}

/* A node with room for so many inputs; NULL: no memory. */
static Tensorboard__NodeDef *new_node(writer *w, char *name, const char *op, uint32_t n_in,
                                      uint32_t n_out, wf_value *const out[])
{
    Tensorboard__NodeDef *n = take(w, 1, sizeof *n);

    if (!n)
        return NULL;
    tensorboard__node_def__init(n);
    n->name = name;
    n->op = (char *)op;
    n->input = take(w, n_in + (size_t)1, sizeof(*n->input));
    n->attr = take(w, 1, sizeof(*n->attr));
    if (w->failed)
        return NULL;
    n->attr[n->n_attr++] = shapes_of(w, n_out, out);
    return n;
}

/* What a node reads, by its maker's name: "fc1/Gemm", or "split:1" for a second output. */
static char *edge(writer *w, const wf_value *v)
{
    char *maker;

    if (!v->producer)
        return w->of_value[v->index];
    maker = w->of_node[v->producer->index];
    if (v->output == 0)
        return maker;
    maker = wf_arena_printf(w->arena, "%s:%" PRIu32, maker, v->output);
    w->failed = w->failed || !maker;
    return maker;
}

static void add_values(writer *w, Tensorboard__GraphDef *def)
{
    for (size_t i = 0; i < w->g->n_values && !w->failed; i++) {
        wf_value *v = w->g->values[i];
        const char *op = v->is_input ? "Placeholder" : v->variable ? "Variable" : "Const";

        if (v->producer || (!v->is_input && v->n_uses == 0))
            continue;
        w->of_value[i] = new_name(w, v->name);
        def->node[def->n_node++] = new_node(w, w->of_value[i], op, 0, 1, &v);
    }
}

static void add_nodes(writer *w, Tensorboard__GraphDef *def)
{
    for (size_t i = 0; i < w->g->n_nodes && !w->failed; i++) {
        const wf_node *n = w->g->nodes[i];
        Tensorboard__NodeDef *to;

        w->of_node[i] = new_name(w, n->name);
        to = new_node(w, w->of_node[i], n->op->name, n->n_in, n->n_out, n->out);
        for (uint32_t k = 0; to && k < n->n_in; k++)
            if (n->in[k])
                to->input[to->n_input++] = edge(w, n->in[k]);
        def->node[def->n_node++] = to;
    }
}

static wf_status pack(writer *w, wf_bytes *out, wf_err *err)
{
    Tensorboard__GraphDef def = TENSORBOARD__GRAPH_DEF__INIT;
    Tensorboard__VersionDef version = TENSORBOARD__VERSION_DEF__INIT;
    uint8_t *to;

    version.has_producer = true;
    version.producer = PRODUCER;
    def.versions = &version;
    def.node = take(w, w->g->n_nodes + w->g->n_values + 1, sizeof(*def.node));
    w->of_value = take(w, w->g->n_values + 1, sizeof(*w->of_value));
    w->of_node = take(w, w->g->n_nodes + 1, sizeof(*w->of_node));
    if (!w->failed)
        add_values(w, &def);
    if (!w->failed)
        add_nodes(w, &def);
    if (w->failed)
        return wf_fail_nomem(err, wf_arena_used(w->arena));
    to = wf_bytes_extend(out, tensorboard__graph_def__get_packed_size(&def));
    if (to)
        tensorboard__graph_def__pack(&def, to);
    return wf_bytes_check(out, err);
}

wf_status wf_graph_def_write(const wf_graph *g, wf_bytes *out, wf_err *err)
{
    writer w = {.g = g};
    wf_status rc;

    if (g->n_nodes > MOST_NODES)
        return wf_fail(err, WF_UNSUPPORTED, NULL, "%zu nodes are more than the %d that are drawn",
                       g->n_nodes, MOST_NODES);
    w.arena = wf_arena_new(0);
    w.names = json_object();
    rc = w.arena && w.names ? pack(&w, out, err) : wf_fail_nomem(err, g->n_nodes);
    json_decref(w.names);
    wf_arena_free(&w.arena);
    return rc;
}
