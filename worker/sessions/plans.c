/* SPDX-License-Identifier: Apache-2.0 */
/* worker/sessions/plans.c */
#include "worker/sessions/plans.h"
#include "common/onnx/onnx.h"
#include "common/wire/control.h"
#include "common/wire/variables.h"

#include <stdlib.h>
#include <string.h>

static void free_plan(wf_session_plan **at)
{
    wf_session_plan *p = *at;

    *at = NULL;
    if (!p)
        return;
    wf_plan_free(&p->plan);
    wf_graph_free(&p->graph);
    wf_control_free(&p->body);
    free(p->reads);
    free(p->writes);
    free(p->results);
    free(p);
}

void wf_session_plan_leave(wf_session_plan **p)
{
    if (*p)
        (*p)->users--;
    *p = NULL;
}

void wf_session_plans_close(wf_session_plans *h)
{
    for (uint32_t i = 0; i < WF_SESSION_PLANS; i++)
        free_plan(&h->rows[i]);
    *h = (wf_session_plans){0};
}

/* ---- finding ---- */

static bool is_of(const wf_session_plan *p, uint64_t session, uint32_t handle)
{
    return p && p->body->session == session && p->body->handle == handle;
}

wf_session_plan *wf_session_plans_take(wf_session_plans *h, uint64_t session, uint32_t handle)
{
    for (uint32_t i = 0; i < WF_SESSION_PLANS; i++) {
        wf_session_plan *p = h->rows[i];

        if (!is_of(p, session, handle))
            continue;
        p->users++;
        p->used = ++h->uses;
        return p;
    }
    return NULL;
}

/* Where a plan of that name is, or is to be; NULL when no place can be had. */
static wf_session_plan **place_for(wf_session_plans *h, const Weft__SessionPlan *body)
{
    wf_session_plan **oldest = NULL;

    for (uint32_t i = 0; i < WF_SESSION_PLANS; i++)
        if (is_of(h->rows[i], body->session, body->handle))
            return h->rows[i]->users ? NULL : &h->rows[i];
    for (uint32_t i = 0; i < WF_SESSION_PLANS; i++) {
        if (!h->rows[i])
            return &h->rows[i];
        if (!h->rows[i]->users && (!oldest || h->rows[i]->used < (*oldest)->used))
            oldest = &h->rows[i];
    }
    return oldest;
}

/* ---- making ---- */

static wf_status find_ports(wf_session_plan *p, wf_err *err)
{
    const Weft__SessionPlan *b = p->body;
    int64_t at = 0;

    for (size_t i = 0; i < b->n_reads; i++) {
        at = wf_plan_find_input(p->plan, b->reads[i]);
        if (at < 0)
            return wf_fail(err, WF_PROTO, NULL, "a plan reads \"%.200s\", which is no input of it",
                           b->reads[i]);
        p->reads[i] = (uint32_t)at;
    }
    for (size_t i = 0; i < b->n_writes; i++) {
        at = wf_plan_find_output(p->plan, b->writes[i]->output);
        if (at < 0 ||
            (b->writes[i]->action != WF_VARIABLE_ASSIGN && b->writes[i]->action != WF_VARIABLE_ADD))
            return wf_fail(err, WF_PROTO, NULL,
                           "a plan writes \"%.200s\" by action %u of \"%.200s\"",
                           b->writes[i]->variable, b->writes[i]->action, b->writes[i]->output);
        p->writes[i] = (uint32_t)at;
    }
    for (size_t i = 0; i < b->n_results; i++) {
        const Weft__SessionResult *r = b->results[i];

        at = r->write ? 0 : wf_plan_find_output(p->plan, r->output);
        if (at < 0 || r->write > b->n_writes)
            return wf_fail(err, WF_PROTO, NULL, "a plan gives \"%.200s\", which it does not make",
                           r->output);
        p->results[i] = (uint32_t)at;
    }
    return WF_OK;
}

static wf_status make(wf_session_plan *p, wf_pool *pool, wf_err *err)
{
    const Weft__SessionPlan *b = p->body;
    wf_plan_options options = {.pool = pool, .limit_bytes = wf_plan_fair_limit(b->graph.len)};

    p->reads = calloc(b->n_reads + 1, sizeof *p->reads);
    p->writes = calloc(b->n_writes + 1, sizeof *p->writes);
    p->results = calloc(b->n_results + 1, sizeof *p->results);
    if (!p->reads || !p->writes || !p->results)
        return wf_fail_nomem(err, b->n_reads * sizeof *p->reads);
    WF_TRY(wf_onnx_decode(b->graph.data, b->graph.len, NULL, &p->graph, err));
    WF_TRY(wf_plan_new(p->graph, &options, &p->plan, err));
    return find_ports(p, err);
}

wf_status wf_session_plans_put(wf_session_plans *h, Weft__SessionPlan **body, wf_pool *pool,
                               wf_err *err)
{
    wf_session_plan **at = place_for(h, *body), *p;
    wf_status rc;

    if (!at)
        return wf_fail(err, WF_AGAIN, "try again later", "%d plans are being run",
                       WF_SESSION_PLANS);
    p = calloc(1, sizeof *p);
    if (!p)
        return wf_fail_nomem(err, sizeof *p);
    p->body = *body;
    *body = NULL;
    rc = make(p, pool, err);
    if (rc != WF_OK) {
        free_plan(&p);
        return rc;
    }
    free_plan(at);
    p->used = ++h->uses;
    *at = p;
    return WF_OK;
}
