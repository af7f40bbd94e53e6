/* SPDX-License-Identifier: Apache-2.0 */
/* worker/sessions/state.h - what the files of this room share. */
#ifndef WF_WORKER_SESSIONS_STATE_H
#define WF_WORKER_SESSIONS_STATE_H

#include "common/kernels/pool.h"
#include "common/wire/requests.h"
#include "worker/sessions/plans.h"
#include "worker/sessions/rendezvous.h"
#include "worker/sessions/sessions.h"

enum { WF_SESSION_RUNS = 256 }; /* at one time */

typedef enum wf_fragment_state {
    WF_FRAGMENT_WAITS = 0,
    WF_FRAGMENT_RECEIVES, /* what it takes is there, and what it receives is asked for */
    WF_FRAGMENT_IS_AWAY,
    WF_FRAGMENT_DONE
} wf_fragment_state;

typedef struct wf_session_run {
    wf_peer *client;
    uint32_t request; /* of the client */
    wf_session_plan *plan;
    Weft__RunAsk *ask;
    int64_t begun_ns, end_ns;
    wf_tensor **values;        /* [of the plan]: what is fed, read and computed; NULL: not yet */
    uint32_t *asked;           /* [of the plan]: requests for values; 0: none is awaited */
    uint64_t *asked_of;        /* the same: of a worker's process, its incarnation; 0: not known */
    uint32_t waiting;          /* reads that have not come */
    wf_fragment_state *states; /* [of the plan's fragments] */
    uint32_t *sent;            /* the same: requests to other workers; 0: none is awaited */
    wf_tensor **after;         /* [writes]: variables that the answer brings */
    uint32_t n_written;
    uint32_t writing; /* number of the request; 0: none is awaited */
    struct wf_session_run *next;
} wf_session_run;

struct wf_sessions {
    wf_sessions_conf conf;
    wf_pool *pool;           /* NULL: no plan has come yet */
    wf_peer **ps, **workers; /* [conf.tasks->n_ps], [n_workers]; NULL: not dialled */
    uint64_t id;             /* of the session with other workers */
    wf_requests requests;
    wf_session_plans plans;
    wf_rendezvous *rendezvous;
    wf_session_run *runs;
    uint32_t n_runs;
    int64_t now_ns; /* of the event in hand */
};

/* run.c: begins a run of a plan that is held; takes *ask. Errors of the run are answered. Errors:
 * WF_NOMEM. */
WF_MUST_USE wf_status wf_run_begin(wf_sessions *s, wf_peer *client, const wf_msg *m,
                                   Weft__RunAsk **ask, wf_session_plan **plan, int64_t now_ns,
                                   wf_err *err);
/* A ps or a worker has answered a request of the run. */
WF_MUST_USE wf_status wf_run_on_answer(wf_sessions *s, wf_session_run *r, const wf_msg *m,
                                       wf_err *err);
/* Something that it waited for has come. */
WF_MUST_USE wf_status wf_run_go_on(wf_sessions *s, wf_session_run *r, wf_err *err);
/* The run ends with this error, which the client is told. */
WF_MUST_USE wf_status wf_run_fail(wf_sessions *s, wf_session_run *r, const wf_err *why,
                                  wf_err *err);
/* The run ends, and nobody is told. */
void wf_run_drop(wf_sessions *s, wf_session_run *r);
/* The ps or worker that a run waits for, or NULL. */
const wf_peer *wf_run_awaits(const wf_sessions *s, const wf_session_run *r);

/* fragments.c: computes what is ready here, and sends what is ready for other workers. `left`: of
 * the fragments some are not done; `waits`: for an answer. Errors are the client's. */
WF_MUST_USE wf_status wf_run_fragments(wf_sessions *s, wf_session_run *r, bool *left, bool *waits,
                                       wf_err *err);
/* The error of a run whose fragments wait for what nobody gives. */
WF_MUST_USE wf_status wf_run_is_stuck(const wf_session_run *r, wf_err *err);
/* Another worker has answered about fragment `at`. Errors are the client's. */
WF_MUST_USE wf_status wf_run_on_fragment(wf_sessions *s, wf_session_run *r, uint32_t at,
                                         const wf_msg *m, wf_err *err);

/* far.c: what a fragment sends, when it has computed. Errors are the client's. */
WF_MUST_USE wf_status wf_far_send(wf_sessions *s, const wf_session_run *r,
                                  const wf_session_fragment *f, wf_err *err);
/* Asks for what a fragment receives; whether all of it is there. Errors are the client's. */
WF_MUST_USE wf_status wf_far_receive(wf_sessions *s, wf_session_run *r,
                                     const wf_session_fragment *f, wf_err *err);
/* The run ends: what it still waits for is the next one's. Of one that has failed so is what it has
 * received, unless something that it sent or wrote has come of that. */
void wf_far_give_up(wf_sessions *s, const wf_session_run *r, bool failed);
bool wf_far_has_all(const wf_session_run *r, const wf_session_fragment *f);
/* Another worker has answered about that value. Errors are the client's. */
WF_MUST_USE wf_status wf_far_on_taken(wf_session_run *r, uint32_t value, const wf_msg *m,
                                      wf_err *err);
/* Whether a run whose time is over waits for a Recv: *why names it. */
bool wf_far_is_late(const wf_sessions *s, const wf_session_run *r, wf_err *why);
/* A dialled peer is up: runs that wait for what its earlier process held end. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_far_on_up(wf_sessions *s, const wf_peer *peer, wf_err *err);
/* Another worker asks. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_far_on_take(wf_sessions *s, wf_peer *from, const wf_msg *m, wf_err *err);
/* Tells whoever waited for what was sent meanwhile: behind each event. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_far_deliver(wf_sessions *s, wf_err *err);

/* sessions.c: a ps or worker, dialled if it is not. */
WF_MUST_USE wf_status wf_sessions_peer(wf_sessions *s, wf_task task, wf_peer **out, wf_err *err);
/* Answers with an error; `unknown`: the plan is not held. */
WF_MUST_USE wf_status wf_sessions_refuse(wf_sessions *s, wf_peer *to, uint32_t request,
                                         bool unknown, const wf_err *why, wf_err *err);

#endif
