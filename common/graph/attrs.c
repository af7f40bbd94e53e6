/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/attrs.c - the attributes of a node: a short list, searched in order. Tensors in them
 * are owned by the node. */
#include "common/graph/graph.h"

#include <string.h>

static wf_attr *find(const wf_node *n, const char *name)
{
    for (uint32_t i = 0; i < n->n_attrs; i++)
        if (strcmp(n->attrs[i].name, name) == 0)
            return &n->attrs[i];
    return NULL;
}

const wf_attr *wf_node_attr(const wf_node *n, const char *name)
{
    return find(n, name);
}

int64_t wf_node_int(const wf_node *n, const char *name, int64_t otherwise)
{
    const wf_attr *a = find(n, name);

    return a && a->kind == WF_ATTR_INT ? a->i : otherwise;
}

float wf_node_float(const wf_node *n, const char *name, float otherwise)
{
    const wf_attr *a = find(n, name);

    return a && a->kind == WF_ATTR_FLOAT ? a->f : otherwise;
}

const char *wf_node_string(const wf_node *n, const char *name, const char *otherwise)
{
    const wf_attr *a = find(n, name);

    return a && a->kind == WF_ATTR_STRING ? a->s : otherwise;
}

const int64_t *wf_node_ints(const wf_node *n, const char *name, size_t *count)
{
    const wf_attr *a = find(n, name);

    *count = a && a->kind == WF_ATTR_INTS ? a->n : 0;
    return *count ? a->ints : NULL;
}

static wf_status copy_strings(wf_graph *g, wf_attr *to, const wf_attr *from, wf_err *err)
{
    char **list = wf_arena_array(g->arena, from->n, sizeof list[0]);

    if (!list)
        return wf_fail_nomem(err, from->n * sizeof list[0]);
    for (size_t i = 0; i < from->n; i++) {
        list[i] = wf_arena_strdup(g->arena, from->strings[i]);
        if (!list[i])
            return wf_fail_nomem(err, strlen(from->strings[i]) + 1);
    }
    to->strings = (const char *const *)list;
    return WF_OK;
}

/* Puts the content of *from into *to, in g's arena. */
static wf_status copy_content(wf_graph *g, wf_attr *to, const wf_attr *from, wf_err *err)
{
    wf_tensor *t = NULL;

    switch (from->kind) {
    case WF_ATTR_TENSOR:
        WF_TRY(wf_tensor_share(from->t, &t, err));
        to->t = t;
        return WF_OK;
    case WF_ATTR_STRING:
        to->s = wf_arena_strdup(g->arena, from->s);
        return to->s ? WF_OK : wf_fail_nomem(err, strlen(from->s) + 1);
    case WF_ATTR_INTS:
        to->ints = wf_arena_memdup(g->arena, from->ints, from->n * sizeof to->ints[0]);
        return to->ints ? WF_OK : wf_fail_nomem(err, from->n * sizeof to->ints[0]);
    case WF_ATTR_FLOATS:
        to->floats = wf_arena_memdup(g->arena, from->floats, from->n * sizeof to->floats[0]);
        return to->floats ? WF_OK : wf_fail_nomem(err, from->n * sizeof to->floats[0]);
    case WF_ATTR_STRINGS:
        return copy_strings(g, to, from, err);
    case WF_ATTR_INT:
    case WF_ATTR_FLOAT:
    case WF_ATTR_GRAPH:
        break;
    }
    return WF_OK;
}

wf_status wf_node_set_attr(wf_graph *g, wf_node *n, const wf_attr *attr, wf_err *err)
{
    wf_attr copy = *attr, *at, *list;

    copy.name = wf_arena_strdup(g->arena, attr->name);
    list = wf_arena_array(g->arena, n->n_attrs + 1, sizeof list[0]);
    if (!copy.name || !list)
        return wf_fail_nomem(err, (n->n_attrs + 1) * sizeof list[0]);
    WF_TRY(copy_content(g, &copy, attr, err));
    wf_node_drop_attr(n, attr->name);
    /* A new list each time: attributes are few and set once. */
    if (n->n_attrs)
        memcpy(list, n->attrs, n->n_attrs * sizeof list[0]);
    at = &list[n->n_attrs++];
    *at = copy;
    n->attrs = list;
    return WF_OK;
}

void wf_node_drop_attr(wf_node *n, const char *name)
{
    wf_attr *a = find(n, name);

    if (!a)
        return;
    if (a->kind == WF_ATTR_TENSOR) {
        wf_tensor *owned = (wf_tensor *)a->t;

        wf_tensor_free(&owned);
    }
    memmove(a, a + 1, (size_t)(n->attrs + n->n_attrs - (a + 1)) * sizeof *a);
    n->n_attrs--;
}

wf_status wf_node_set_int(wf_graph *g, wf_node *n, const char *name, int64_t value, wf_err *err)
{
    wf_attr a = {.name = name, .kind = WF_ATTR_INT, .i = value};

    return wf_node_set_attr(g, n, &a, err);
}

wf_status wf_node_set_string(wf_graph *g, wf_node *n, const char *name, const char *value,
                             wf_err *err)
{
    wf_attr a = {.name = name, .kind = WF_ATTR_STRING, .s = value};

    return wf_node_set_attr(g, n, &a, err);
}
