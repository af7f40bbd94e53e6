/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/table_uses.c - whether a variable can be a table: it is trained float32, and all
 * that anyone wants of it are rows by ids which a worker knows before it has the rows.
 *
 * What reads it otherwise (a product with tied weights, a regularizer, a norm) wants all rows in
 * each step. Clipping and losses that are scaled are no such use: a worker does both to gradients,
 * and rows that no id names have a gradient of zero.
 */
#include "common/base/size.h"
#include "common/compile/pass.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* "\"emb\" cannot be a table: ..." */
static WF_PRINTF(4, 5) wf_status
    refuse(const wf_unit *u, const wf_table *t, wf_err *err, const char *fmt, ...)
{
    char why[400];
    va_list args;

    va_start(args, fmt);
    vsnprintf(why, sizeof(why), fmt, args);
    va_end(args);
    return wf_unit_in_file(u, u->spec->tables_line,
                           wf_fail(err, WF_USAGE, "take it out of \"tables\"",
                                   "\"%.200s\" cannot be a table: %s", t->name, why),
                           err);
}

static wf_status check_variable(const wf_unit *u, const wf_table *t, wf_err *err)
{
    const wf_value *v = t->value;
    char type[128];

    wf_value_str(v, type, sizeof(type));
    if (v->variable != WF_VAR_TRAINABLE)
        return refuse(u, t, err, "it is %s, and the rows of a table are trained",
                      v->variable == WF_VAR_FROZEN ? "frozen" : "a running statistic");
    if (v->dtype != WF_F32 || v->known->rank < 2)
        return refuse(u, t, err, "it is %s, and a table is float32 with rows along axis 0", type);
    if (wf_elems(v->known) == 0)
        return refuse(u, t, err, "it is %s, and has no elements", type);
    return WF_OK;
}

int64_t wf_most_elems(const wf_value *v)
{
    int64_t n = 1;

    for (int32_t i = 0; i < v->rank; i++) {
        int64_t most = v->axes[i].size < 0 ? v->axes[i].bound : v->axes[i].size;

        if (most < 0 || !wf_mul_i64(n, most, &n))
            return -1;
    }
    return v->rank < 0 ? -1 : n;
}

/* Whether an extent goes by the batch. */
static bool is_open(const wf_value *v)
{
    for (int32_t i = 0; i < v->rank; i++)
        if (v->axes[i].size < 0)
            return true;
    return false;
}

/* Ids come from what is fed, and from constants. `seen` by value index is false before. */
static wf_status check_sources(const wf_unit *u, const wf_table *t, const wf_node *gather,
                               bool seen[], wf_err *err)
{
    const wf_graph *g = u->graph;
    bool fed = false;

    wf_mark_ancestors(g, gather->in[1], seen);
    for (size_t i = 0; i < g->n_values; i++) {
        const wf_value *v = g->values[i];

        if (!seen[v->index])
            continue;
        fed = fed || v->is_input;
        if (v->producer && (v->producer->op->flags & (WF_OP_RANDOM | WF_OP_STATEFUL)))
            return refuse(u, t, err, "the ids of %s \"%.100s\" come from %s \"%.100s\"",
                          gather->op->name, gather->name, v->producer->op->name, v->producer->name);
        if (v->variable != WF_VAR_NOT)
            return refuse(u, t, err,
                          "the ids of %s \"%.100s\" are computed from the variable \"%.100s\", "
                          "and ids are to follow from what is fed",
                          gather->op->name, gather->name, v->name);
    }
    return fed ? WF_OK
               : refuse(u, t, err, "the ids of %s \"%.100s\" are the same in every batch",
                        gather->op->name, gather->name);
}

static wf_status check_ids(const wf_unit *u, const wf_table *t, const wf_node *gather, wf_err *err)
{
    const wf_value *ids = gather->in[1];
    bool *seen = calloc(u->graph->n_values + 1, sizeof(*seen));
    char type[128];
    wf_status rc;

    if (!seen)
        return wf_fail_nomem(err, u->graph->n_values);
    rc = check_sources(u, t, gather, seen, err);
    free(seen);
    if (rc != WF_OK || (is_open(ids) && wf_most_elems(ids) >= 0))
        return rc;
    return refuse(u, t, err,
                  "the ids of %s \"%.100s\" are %s, and how many of them a record has is not "
                  "known",
                  gather->op->name, gather->name, wf_value_str(ids, type, sizeof(type)));
}

/* One input of a node that reads the table. */
static wf_status check_use(const wf_unit *u, const wf_table *t, const wf_node *n, uint32_t k,
                           wf_err *err)
{
    int64_t axis = wf_node_int(n, "axis", 0); /* which EmbeddingBag has not */
    bool reads_rows =
        wf_node_is(n, WF_DOMAIN_ONNX, "Gather") || wf_node_is(n, WF_DOMAIN_WEFT, "EmbeddingBag");

    if (!reads_rows || k != 0)
        return refuse(
            u, t, err,
            "%s \"%.100s\" reads all of it, and a table is read by Gather and EmbeddingBag alone",
            n->op->name, n->name);
    if (axis != 0 && axis != -(int64_t)t->value->rank)
        return refuse(u, t, err,
                      "Gather \"%.100s\" takes it along axis %lld, and rows lie along axis 0",
                      n->name, (long long)axis);
    return check_ids(u, t, n, err);
}

wf_status wf_table_gathers(const wf_unit *u, const wf_table *t, const bool live[],
                           wf_node *gathers[], size_t *n, wf_err *err)
{
    const wf_graph *g = u->graph;

    *n = 0;
    WF_TRY(check_variable(u, t, err));
    for (size_t i = 0; i < g->n_nodes; i++)
        for (uint32_t k = 0; live[i] && k < g->nodes[i]->n_in; k++)
            if (g->nodes[i]->in[k] == t->value) {
                WF_TRY(check_use(u, t, g->nodes[i], k, err));
                gathers[(*n)++] = g->nodes[i];
            }
    return WF_OK;
}
