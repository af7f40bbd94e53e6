/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/cse.c - equal nodes are computed once, equal small constants are kept once.
 *
 * One sweep in topological order: when a node is looked at, what it reads has been merged already.
 * Stateful and random operations are never merged.
 */
#include "common/compile/pass.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { SMALL_CONSTANT = 64 };

/* Open addressing over nodes or values by a hash; `room` is a power of two above twice the count.
 */
typedef struct table {
    void **slots;
    size_t room;
} table;

static wf_status table_new(table *t, size_t count, wf_err *err)
{
    t->room = 16;
    while (t->room < 2 * count + 2)
        t->room *= 2;
    t->slots = calloc(t->room, sizeof(*t->slots));
    return t->slots ? WF_OK : wf_fail_nomem(err, t->room * sizeof(*t->slots));
}

/* The entry that equals `item`, or NULL when item is now the first of its kind. */
static void *find_or_add(table *t, uint64_t hash, void *item,
                         bool (*equal)(const void *a, const void *b))
{
    for (size_t i = hash & (t->room - 1);; i = (i + 1) & (t->room - 1)) {
        if (!t->slots[i]) {
            t->slots[i] = item;
            return NULL;
        }
        if (equal(t->slots[i], item))
            return t->slots[i];
    }
}

static bool same_tensor(const wf_tensor *a, const wf_tensor *b)
{
    return a->dtype == b->dtype && a->rank == b->rank &&
           !memcmp(a->dims, b->dims, a->rank * sizeof(*a->dims)) &&
           !memcmp(a->data, b->data, wf_tensor_bytes(a));
}

/* 0 and -0 are two, and a NaN is the same as itself. */
static uint32_t bits_of(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static bool same_attr(const wf_attr *a, const wf_attr *b)
{
    if (strcmp(a->name, b->name) != 0 || a->kind != b->kind)
        return false;
    switch (a->kind) {
    case WF_ATTR_INT:
        return a->i == b->i;
    case WF_ATTR_FLOAT:
        return bits_of(a->f) == bits_of(b->f);
    case WF_ATTR_STRING:
        return !strcmp(a->s, b->s);
    case WF_ATTR_TENSOR:
        return same_tensor(a->t, b->t);
    case WF_ATTR_INTS:
        return a->n == b->n && (!a->n || !memcmp(a->ints, b->ints, a->n * sizeof(*a->ints)));
    case WF_ATTR_FLOATS:
        return a->n == b->n && (!a->n || !memcmp(a->floats, b->floats, a->n * sizeof(*a->floats)));
    case WF_ATTR_STRINGS:
    case WF_ATTR_GRAPH:
        break;
    }
    return false;
}

static bool same_node(const void *x, const void *y)
{
    const wf_node *a = x, *b = y;

    if (a->op != b->op || a->n_in != b->n_in || a->n_out != b->n_out || a->n_attrs != b->n_attrs)
        return false;
    for (uint32_t i = 0; i < a->n_in; i++)
        if (a->in[i] != b->in[i])
            return false;
    for (uint32_t i = 0; i < a->n_attrs; i++) {
        const wf_attr *other = wf_node_attr(b, a->attrs[i].name);

        if (!other || !same_attr(&a->attrs[i], other))
            return false;
    }
    return true;
}

static uint64_t node_hash(const wf_node *n)
{
    uint64_t h = (uint64_t)(uintptr_t)n->op;

    for (uint32_t i = 0; i < n->n_in; i++)
        h = XXH3_64bits_withSeed(&n->in[i], sizeof(n->in[i]), h);
    return XXH3_64bits_withSeed(&h, sizeof(h), n->n_attrs);
}

static bool same_constant(const void *x, const void *y)
{
    return same_tensor(((const wf_value *)x)->known, ((const wf_value *)y)->known);
}

static wf_status merge_constants(wf_unit *u, wf_err *err)
{
    wf_graph *g = u->graph;
    wf_status rc;
    table t;

    WF_TRY(table_new(&t, g->n_values, err));
    rc = WF_OK;
    for (size_t i = 0; rc == WF_OK && i < g->n_values; i++) {
        wf_value *v = g->values[i], *first;

        if (v->producer || !wf_value_is_constant(v) || wf_elems(v->known) > SMALL_CONSTANT ||
            wf_is_output(g, v))
            continue;
        first = find_or_add(
            &t, XXH3_64bits_withSeed(v->known->data, wf_tensor_bytes(v->known), v->known->dtype), v,
            same_constant);
        if (first)
            rc = wf_hand_over(u, v, first, err);
    }
    free(t.slots);
    return rc;
}

/* Merges b into a; outputs that b has and a lacks stay b's, and b with them. */
static wf_status merge(wf_unit *u, const wf_node *a, const wf_node *b, wf_err *err)
{
    for (uint32_t i = 0; i < b->n_out; i++)
        if (b->out[i] && (!a->out[i] || !wf_may_hand_over(u->graph, b->out[i], a->out[i])))
            return WF_OK;
    for (uint32_t i = 0; i < b->n_out; i++)
        if (b->out[i])
            WF_TRY(wf_hand_over(u, b->out[i], a->out[i], err));
    return WF_OK;
}

wf_status wf_pass_cse(wf_unit *u, wf_err *err)
{
    wf_graph *g = u->graph;
    wf_status rc;
    table t;

    WF_TRY(merge_constants(u, err));
    WF_TRY(table_new(&t, g->n_nodes, err));
    rc = WF_OK;
    for (size_t i = 0, n = g->n_nodes; rc == WF_OK && i < n; i++) {
        wf_node *b = g->nodes[i], *a;

        if ((b->op->flags & (WF_OP_STATEFUL | WF_OP_RANDOM)) || !b->n_out || !b->n_in)
            continue;
        a = find_or_add(&t, node_hash(b), b, same_node);
        if (a)
            rc = merge(u, a, b, err);
    }
    free(t.slots);
    return rc == WF_OK ? wf_pass_prune(u, err) : rc;
}
