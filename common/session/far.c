/* SPDX-License-Identifier: Apache-2.0 */
/* common/session/far.c - what leaves a run by Send, and what arrives while it computes: by Recv, or
 * as the result of an AssignAdd. */
#include "common/graph/op.h"
#include "common/session/remote_unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_BYTES = 1000 };

static const char TASK[] = "/job:worker/task:";

wf_status wf_remote_worker(const wf_remote_unit *u, const wf_node *n, const char *text,
                           uint32_t *out, wf_err *err)
{
    const char *number = strncmp(text, TASK, strlen(TASK)) == 0 ? text + strlen(TASK) : "";
    char *end;
    unsigned long worker = strtoul(number, &end, 10);

    if (end == number || (*end && *end != '/') || worker >= u->run->n_workers)
        return wf_fail(err, WF_NOTFOUND, "place it on a worker of cluster.yaml",
                       "%s \"%s\" is placed on \"%.80s\", and there are %u workers", n->op->name,
                       n->name, text, u->run->n_workers);
    *out = (uint32_t)worker;
    return WF_OK;
}

/* ---- settling ---- */

static wf_status check_room(const wf_remote_unit *u, wf_err *err)
{
    if (u->n_arrivals + u->n_leaving < WF_REMOTE_FAR)
        return WF_OK;
    return wf_fail(err, WF_FULL, "run it in parts",
                   "the run has more than %d Sends, Recvs and sums that nodes compute with",
                   WF_REMOTE_FAR);
}

/* Of a Send or Recv: its key, and the task at the other end. */
static wf_status check_attrs(const wf_node *n, const char *other, wf_err *err)
{
    size_t bytes = strlen(wf_node_string(n, "key", ""));
    char hint[96];

    snprintf(hint, sizeof hint, "give it attribute %s: \"/job:worker/task:1\"", other);
    if (bytes == 0 || bytes > KEY_BYTES)
        return wf_fail(err, WF_INVALID, "give it another key",
                       "%s \"%s\" has a key of %zu bytes; it has 1 to %d", n->op->name, n->name,
                       bytes, KEY_BYTES);
    if (!wf_node_attr(n, other))
        return wf_fail(err, WF_INVALID, hint, "%s \"%s\" does not say the worker %s", n->op->name,
                       n->name, strcmp(other, "to") == 0 ? "that may receive it" : "that sends it");
    return WF_OK;
}

wf_status wf_remote_settle_send(wf_remote_unit *u, wf_node *n, wf_err *err)
{
    WF_TRY(check_room(u, err));
    WF_TRY(check_attrs(n, "to", err));
    u->leaving[u->n_leaving++] = (wf_remote_leaving){.node = n, .value = n->in[0]};
    wf_graph_replace_uses(u->g, n->out[0], n->in[0]);
    return WF_OK;
}

/* A value of the same name and type in place of what n makes. */
static wf_status arrive(wf_remote_unit *u, wf_node *n, const wf_value *like, wf_value *added,
                        wf_err *err)
{
    wf_value *old = n->out[0], *v = NULL;
    char *name = wf_arena_strdup(u->g->arena, old->name);
    char *aside = wf_arena_printf(u->g->arena, "%s/settled", old->name);
    int64_t dims[WF_MAX_RANK];

    WF_TRY(check_room(u, err));
    if (!name || !aside)
        return wf_fail_nomem(err, strlen(old->name));
    if (like->rank < 0 || !wf_value_dims(like, dims))
        return wf_fail(err, WF_UNSUPPORTED, "say its shape", "the shape of \"%.200s\" is not known",
                       name);
    WF_TRY(wf_graph_rename_value(u->g, old, aside, err));
    WF_TRY(wf_graph_add_value(u->g, name, &v, err));
    wf_value_set_type(v, like->dtype, (uint32_t)like->rank, dims);
    wf_graph_replace_uses(u->g, old, v);
    u->arrivals[u->n_arrivals++] = (wf_remote_arrival){.node = n, .value = v, .added = added};
    return WF_OK;
}

wf_status wf_remote_settle_recv(wf_remote_unit *u, wf_node *n, wf_err *err)
{
    if (wf_node_has_in(n, 0))
        return wf_fail(err, WF_UNSUPPORTED, "leave the input out, and give dtype and shape",
                       "Recv \"%s\" takes \"%.200s\", as those between stages do", n->name,
                       n->in[0]->name);
    WF_TRY(check_attrs(n, "from", err));
    return arrive(u, n, n->out[0], NULL, err);
}

wf_status wf_remote_settle_sum(wf_remote_unit *u, wf_node *n, wf_err *err)
{
    return arrive(u, n, n->in[0], n->in[1], err);
}

wf_status wf_remote_add_arrivals(wf_remote_unit *u, wf_err *err)
{
    for (size_t i = 0; i < u->n_arrivals; i++) {
        wf_value *v = u->arrivals[i].value;
        int64_t dims[WF_MAX_RANK], elems;

        if (!wf_value_dims(v, dims) || !wf_dims_elems((uint32_t)v->rank, dims, &elems))
            return wf_fail(err, WF_FULL, "send it in parts", "\"%.200s\" is too large", v->name);
        WF_TRY(
            wf_tensor_new_blank(v->dtype, (uint32_t)v->rank, dims, &u->blanks[u->n_blanks], err));
        u->n_blanks++;
        WF_TRY(wf_graph_add_input(u->g, v, err));
    }
    return WF_OK;
}

/* ---- finding ---- */

wf_remote_arrival *wf_remote_arrival_of(wf_remote_unit *u, const wf_node *n)
{
    for (size_t i = 0; i < u->n_arrivals; i++)
        if (u->arrivals[i].node == n)
            return &u->arrivals[i];
    return NULL;
}

bool wf_remote_arrives(const wf_remote_unit *u, const wf_value *v, size_t *at)
{
    *at = 0;
    while (*at < u->n_arrivals && u->arrivals[*at].value != v)
        (*at)++;
    return *at < u->n_arrivals;
}

/* ---- the result ---- */

/* Sends have the numbers behind those of arrivals. */
wf_status wf_remote_fill_send(wf_remote_unit *u, size_t at, wf_remote_send *out, wf_err *err)
{
    const wf_remote_leaving *l = &u->leaving[at];

    out->number = (uint32_t)(u->n_arrivals + at);
    WF_TRY(wf_remote_worker(u, l->node, wf_node_string(l->node, "to", ""), &out->to, err));
    WF_TRY(wf_remote_name(u, wf_node_string(l->node, "key", ""), &out->key, err));
    return wf_remote_name(u, l->value->name, &out->value, err);
}

wf_status wf_remote_fill_receive(wf_remote_unit *u, size_t at, wf_remote_receive *out, wf_err *err)
{
    const wf_remote_arrival *a = &u->arrivals[at];
    const wf_tensor *blank = u->blanks[u->n_variables + at];

    out->number = (uint32_t)at;
    out->dtype = blank->dtype;
    out->rank = blank->rank;
    memcpy(out->dims, blank->dims, blank->rank * sizeof out->dims[0]);
    WF_TRY(wf_remote_worker(u, a->node, wf_node_string(a->node, "from", ""), &out->from, err));
    WF_TRY(wf_remote_name(u, wf_node_string(a->node, "key", ""), &out->key, err));
    return wf_remote_name(u, a->value->name, &out->value, err);
}
