/* SPDX-License-Identifier: Apache-2.0 */
/* worker/sessions/plans.h - the plans that clients' sessions have sent to this worker. */
#ifndef WF_WORKER_SESSIONS_PLANS_H
#define WF_WORKER_SESSIONS_PLANS_H

#include "common/base/status.h"
#include "common/exec/exec.h"
#include "common/wire/control.pb-c.h"
#include <stdint.h>

enum { WF_SESSION_PLANS = 64 };

/* A plan with what it reads, writes and gives; all numbers in it are in range. */
typedef struct wf_session_plan {
    Weft__SessionPlan *body;
    wf_graph *graph;
    wf_plan *plan;
    uint32_t *reads;   /* [body->n_reads]: inputs of the plan */
    uint32_t *writes;  /* [body->n_writes]: outputs of the plan */
    uint32_t *results; /* [body->n_results]: outputs of the plan, where no write is named */
    uint32_t users;    /* runs that hold it: it stays as long */
    uint64_t used;     /* when last, to make room */
} wf_session_plan;

/* {0} is empty. */
typedef struct wf_session_plans {
    wf_session_plan *rows[WF_SESSION_PLANS];
    uint64_t uses;
} wf_session_plans;

/* Makes the plan of *body, which is taken, and holds it in place of one with the same session and
 * handle, or of the one that was used longest ago. Errors: WF_PROTO for a body that contradicts
 * itself; WF_AGAIN when all plans are in use; those of wf_onnx_decode and wf_plan_new. */
WF_MUST_USE wf_status wf_session_plans_put(wf_session_plans *h, Weft__SessionPlan **body,
                                           wf_pool *pool, wf_err *err);
/* The plan of a session's handle, with one user more; NULL when there is none. */
wf_session_plan *wf_session_plans_take(wf_session_plans *h, uint64_t session, uint32_t handle);
/* One user less; *p is NULL then. NULL is fine. */
void wf_session_plan_leave(wf_session_plan **p);
/* Frees all; there are no users. */
void wf_session_plans_close(wf_session_plans *h);

#endif
