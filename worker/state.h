/* SPDX-License-Identifier: Apache-2.0 */
/* worker/state.h - what the files of this room share; nobody else includes it. */
#ifndef WF_WORKER_STATE_H
#define WF_WORKER_STATE_H

#include "common/base/bytes.h"
#include "common/wire/session.h"
#include "common/wire/wires.h"
#include "worker/chief.h"
#include "worker/exchange.h"
#include "worker/life.h"
#include "worker/worker.h"

enum {
    WF_WORKER_SPLITS = 2, /* one in work, one in reserve, so that no step waits for the master */
    WF_WORKER_FINISHED = 512, /* reported done and not confirmed yet */
    WF_WORKER_STEPS = 8       /* steps whose place in the data is remembered until acknowledged */
};

typedef struct wf_open_split {
    bool used;
    uint64_t id, begin, end, cut_at;
    uint32_t epoch;
    uint64_t next;  /* first position not computed */
    uint64_t acked; /* first position not acknowledged */
} wf_open_split;

typedef struct wf_done_split {
    uint64_t id, begin, end;
    uint32_t epoch;
} wf_done_split;

typedef struct wf_step_place {
    uint32_t step;
    uint64_t split, end;
} wf_step_place;

/* Another worker, to exchange gradients with. */
typedef struct wf_fellow {
    wf_peer *peer;                  /* dialled or accepted; NULL: neither */
    char address[WF_ADDRESSES_MAX]; /* that was dialled */
} wf_fellow;

struct wf_worker {
    wf_worker_conf conf;
    wf_net *net;
    wf_session session; /* with the master; it has the fault of a worker that stands still */
    wf_peer **ps;       /* dialled, by index; kept from job to job */
    char (*ps_address)[WF_ADDRESSES_MAX];
    uint32_t n_ps;
    wf_fellow *fellows; /* [n_fellows], by index; kept from job to job: fellows.c */
    uint32_t n_fellows;

    wf_err broken;      /* why this process is to end: a device of it is; status WF_OK: it is not */
    Weft__Start *start; /* the job in hand, or NULL */
    wf_worker_job job;
    uint32_t round;          /* of data that grows: whose files are open; 0: none */
    Weft__Round *next_round; /* to be opened when nothing else is in hand; NULL: none */
    wf_exchange *exchange;   /* NULL: no job */
    uint16_t job_number, generation;
    uint32_t map, view;
    uint32_t step;         /* the last one computed */
    uint32_t begun;        /* the last one begun: those behind `step` are in hand */
    uint32_t epoch;        /* of the last one computed */
    bool any_step;         /* one was computed since the last barrier */
    wf_worker_state state; /* written by wf_worker_move alone */
    wf_batch_id batches[WF_WORKER_AT_ONCE]; /* of steps in hand, by step: wf_loop_batch */

    wf_open_split splits[WF_WORKER_SPLITS]; /* in the order of work */
    bool want_sent;
    wf_done_split finished[WF_WORKER_FINISHED];
    uint32_t n_finished;
    wf_step_place places[WF_WORKER_STEPS];

    wf_hold_state hold; /* written by wf_hold_move alone */
    bool due_sent;      /* the place of a cut was announced */
    uint32_t cut;
    uint64_t cut_chief;
    bool eval_wanted;
    uint32_t eval_epoch;
    uint32_t
        eval_set_of; /* 1 + the epoch whose weights were pulled for it; 0: none, or since changed */
    uint64_t eval_id, eval_begin, eval_end;
    uint64_t eval_rows_of; /* 1 + the unit whose rows of tables were pulled; 0: none */

    wf_measure metrics[WF_MEASURES_MOST]; /* since the last report */
    uint32_t n_metrics;
    uint64_t dropped; /* steps, since the last report */
    uint64_t samples, compute_ns, wait_ns, transfer_ns, data_ns;
    int64_t reported_ns;

    wf_chief chief;

    /* waits.c: the current wait; its text is made on demand */
    struct wf_worker_wait {
        enum wf_wait_kind {
            WF_WAIT_NONE = 0,
            WF_WAIT_JOB,     /* for the master to start one */
            WF_WAIT_SPLIT,   /* for records */
            WF_WAIT_WEIGHTS, /* of a step, or for an evaluation */
            WF_WAIT_FROZEN,  /* for so many slices of frozen variables */
            WF_WAIT_ACKS,    /* of pushes, up to a step */
            WF_WAIT_COPIES,  /* as chief: for the copies of a cut */
            WF_WAIT_RESUME   /* for the end of a hold */
        } kind;
        uint32_t of; /* a step, a cut or a number of slices */
        int64_t since_ns;
    } wait;
    int64_t looked_ns;
};

/* worker.c */
void wf_worker_move(wf_worker *w, wf_worker_event event);

/* report.c */
/* The progress since the last report: now, and when one is due. */
WF_MUST_USE wf_status wf_report_progress(wf_worker *w, wf_err *err);
WF_MUST_USE wf_status wf_report_when_due(wf_worker *w, int64_t now_ns, wf_err *err);
/* Adds sums over a step's records to the next report. */
WF_MUST_USE wf_status wf_report_add(wf_worker *w, uint32_t n, const wf_measure metrics[],
                                    wf_err *err);
/* A message's list of measures, and the bytes that it borrows until wf_measure_list_close. */
typedef struct wf_measure_list {
    Weft__Metric rows[WF_MEASURES_MOST], *list[WF_MEASURES_MOST];
    size_t n;
    wf_bytes sums;
} wf_measure_list;
WF_MUST_USE wf_status wf_measure_list_make(wf_measure_list *to, wf_measure metrics[], uint32_t n,
                                           wf_err *err);
void wf_measure_list_close(wf_measure_list *l);

/* loop.c: from here on weights hold all pushes so far, and what was asked for ahead is void. */
void wf_loop_barrier(wf_worker *w);
/* The records of a step in hand. */
wf_batch_id *wf_loop_batch(wf_worker *w, uint32_t step);

/* hold.c */
void wf_hold_move(wf_worker *w, wf_hold_event event);
WF_MUST_USE wf_status wf_hold_on_cut_open(wf_worker *w, const wf_msg *m, int64_t now_ns,
                                          wf_err *err);
void wf_hold_on_resume(wf_worker *w, const wf_msg *m);
/* Whether the place of a cut is reached with all records before `next`: it is announced once they
 * are computed, and no step begins. */
bool wf_hold_is_at(const wf_open_split *s, uint64_t next);
WF_MUST_USE wf_status wf_hold_announce(wf_worker *w, wf_open_split *s, wf_err *err);
/* Reports a hold as soon as nothing is in flight. */
WF_MUST_USE wf_status wf_hold_report(wf_worker *w, wf_err *err);

/* evaluation.c */
WF_MUST_USE wf_status wf_evaluation_on_eval(wf_worker *w, const wf_msg *m, wf_err *err);
/* Begins the unit that was asked for, if nothing is in flight and the weights are in. */
WF_MUST_USE wf_status wf_evaluation_begin(wf_worker *w, wf_err *err);

/* waits.c: updates what this worker waits for, and since when. */
void wf_waits_look(wf_worker *w, int64_t now_ns);

/* rounds.c: files of another round, of data that grows. */
WF_MUST_USE wf_status wf_round_take(wf_worker *w, const wf_msg *m, wf_err *err);
/* Opens the round that has come, if no step or evaluation is in hand, and says so. */
WF_MUST_USE wf_status wf_round_open(wf_worker *w, wf_err *err);

/* member.c */
WF_MUST_USE wf_status wf_member_register(wf_worker *w, wf_err *err);
WF_MUST_USE wf_status wf_member_start(wf_worker *w, const wf_msg *m, wf_err *err);
WF_MUST_USE wf_status wf_member_on_view(wf_worker *w, const wf_msg *m, wf_err *err);
void wf_member_halt(wf_worker *w);

/* fellows.c */
/* Dials the workers of a view that have smaller numbers, but for those that are dialled already at
 * the same address. */
WF_MUST_USE wf_status wf_fellows_dial(wf_worker *w, const Weft__View *view, wf_err *err);
/* Links to workers come and go. */
WF_MUST_USE wf_status wf_fellows_on_up(wf_worker *w, wf_peer *peer, wf_err *err);
void wf_fellows_on_down(wf_worker *w, const wf_peer *peer);
/* Tells a new exchange of the links that there are. */
WF_MUST_USE wf_status wf_fellows_tell(wf_worker *w, wf_err *err);

/* splits.c */
WF_MUST_USE wf_status wf_splits_on_grant(wf_worker *w, const wf_msg *m, wf_err *err);
WF_MUST_USE wf_status wf_splits_on_confirmed(wf_worker *w, const wf_msg *m, wf_err *err);
/* The split whose records come next, or NULL. */
wf_open_split *wf_splits_current(wf_worker *w);
/* Handles newly acknowledged steps: moves `acked`, reports splits that are done (W1). */
WF_MUST_USE wf_status wf_splits_settle(wf_worker *w, wf_err *err);
WF_MUST_USE wf_status wf_splits_want(wf_worker *w, wf_err *err);
/* Open and finished splits as messages carry them: arrays of room WF_WORKER_SPLITS and
 * WF_WORKER_FINISHED that the caller lends. */
size_t wf_splits_open(const wf_worker *w, Weft__Split rows[], Weft__Split *list[]);
size_t wf_splits_finished(const wf_worker *w, Weft__Split rows[], Weft__Split *list[]);

#endif
