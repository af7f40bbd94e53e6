/* SPDX-License-Identifier: Apache-2.0 */
/* worker/sessions/plans.h - the plans that clients' sessions have sent to this worker. */
#ifndef WF_WORKER_SESSIONS_PLANS_H
#define WF_WORKER_SESSIONS_PLANS_H

#include "common/base/status.h"
#include "common/exec/exec.h"
#include "common/wire/control.pb-c.h"
#include <stdbool.h>
#include <stdint.h>

enum {
    WF_SESSION_PLANS = 64,     /* that are kept while nobody runs them */
    WF_SESSION_ROWS = 320,     /* with those of all runs that there may be */
    WF_SESSION_FRAGMENTS = 64, /* of one plan */
    WF_SESSION_VALUES = 4096   /* that go between fragments, ps and client */
};

/* A fragment, with the places of its inputs and outputs among the plan's values. */
typedef struct wf_session_fragment {
    const Weft__SessionFragment *body;
    uint32_t *inputs, *outputs; /* [body->n_inputs], [body->n_outputs] */
    uint32_t *receives, *sends; /* [body->n_receives], [body->n_sends] */
    uint32_t *gives, n_gives;   /* of what it makes and receives, what is needed outside of it */
    bool is_here;               /* it is this worker's, as is what follows */
    wf_graph *graph;            /* NULL: it computes nothing */
    wf_plan *plan;              /* the same */
    uint32_t *input_ports;      /* [n_ports] in the plan */
    uint32_t *input_values;     /* the same: values that they take */
    uint32_t n_ports;
    uint32_t *output_ports; /* [body->n_outputs] in the plan */
    bool is_sent;           /* to that worker, as far as is known */
    uint32_t handle;        /* there */
} wf_session_fragment;

/* A plan with what it reads, writes and gives; all numbers in it are in range. */
typedef struct wf_session_plan {
    Weft__SessionPlan *body;
    const char **values; /* [n_values]: names */
    uint32_t n_values;
    wf_session_fragment *fragments; /* [body->n_fragments] */
    uint32_t *reads;                /* [body->n_reads]: values, as are the two below */
    uint32_t *writes;               /* [body->n_writes] */
    uint32_t *after;                /* [n_early]: values that the variables are after them */
    uint32_t n_early;               /* the first so many writes are made while the run computes */
    uint32_t *results;              /* [body->n_results], where no write is named */
    const void *from;               /* the link that it came over */
    uint32_t users;                 /* runs that hold it: it stays as long */
    uint64_t used;                  /* when last, to make room */
} wf_session_plan;

/* {0} is empty. */
typedef struct wf_session_plans {
    wf_session_plan *rows[WF_SESSION_ROWS];
    uint64_t uses;
    uint32_t handles; /* given to fragments of other workers */
} wf_session_plans;

/* Whose plans they are. */
typedef struct wf_session_place {
    uint32_t worker, n_workers;
    wf_pool *pool;
    const void *from; /* the link that a plan comes over */
} wf_session_place;

/* Makes the plans of *body, which is taken, and holds it in place of one with the same session and
 * handle, or, beyond WF_SESSION_PLANS, of the one without a user that was used longest ago. Errors:
 * WF_PROTO for a body that contradicts itself; WF_AGAIN when all plans are in use; those of
 * wf_onnx_decode and wf_plan_new. */
WF_MUST_USE wf_status wf_session_plans_put(wf_session_plans *h, Weft__SessionPlan **body,
                                           const wf_session_place *place, wf_err *err);
/* The plan of a session's handle, with one user more; NULL when there is none. */
wf_session_plan *wf_session_plans_take(wf_session_plans *h, uint64_t session, uint32_t handle);
/* The value of that name; UINT32_MAX when there is none. */
uint32_t wf_session_plan_value(const wf_session_plan *p, const char *name);
/* Whether it sends or receives. */
bool wf_session_plan_is_far(const wf_session_plan *p);
/* One user less; *p is NULL then. NULL is fine. */
void wf_session_plan_leave(wf_session_plan **p);
/* Frees those that came over a link which is gone, but for those in use. Whoever comes back over
 * another link sends them again. */
void wf_session_plans_drop(wf_session_plans *h, const void *from);
/* Frees all; there are no users. */
void wf_session_plans_close(wf_session_plans *h);

#endif
