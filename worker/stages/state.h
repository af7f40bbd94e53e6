/* SPDX-License-Identifier: Apache-2.0 */
/* worker/stages/state.h - what the files of a stage share; nobody else includes it.
 *
 *   stage.c   a stage is made and begins; rounds
 *   compute.c actions of a round, on this thread or another
 *   device.c  values, gradients and runs on a device
 *   predict.c a prediction: constants in place of variables; results
 *   update.c  the variables: gradients, updates, the file of a checkpoint
 *   agree.c   what all stages have to know before any of them updates
 *   wire.c    messages that go out
 *   receive.c those that come in
 */
#ifndef WF_WORKER_STAGES_STATE_H
#define WF_WORKER_STAGES_STATE_H

#include "worker/apart.h"
#include "worker/gradients.h"
#include "worker/stages/part.h"
#include "worker/stages/schedule.h"
#include "worker/stages/stage.h"
#include "worker/stepper.h"

/* A value of a micro-batch. */
typedef struct wf_stage_held {
    wf_buf *buf; /* of the host; NULL: it is not there */
    wf_buf *on;  /* of the device; the same */
    wf_dtype dtype;
    int64_t elems;
} wf_stage_held;

/* What a stage has on its device. */
typedef struct wf_stage_device {
    const wf_device *device;          /* NULL: the host computes, and has all */
    const wf_device_updates *updates; /* of it; NULL: variables are the host's */
    wf_stream *stream;                /* of copies of values */
    wf_device_event *brought;         /* behind the last of those to the device */
    wf_apart *apart;                  /* gradients; NULL: they are the host's */
} wf_stage_device;

/* A value that comes in; one of a round that has not begun here is kept. */
typedef struct wf_stage_early {
    uint32_t round, batch, edge, from;
    wf_buf *buf;
    size_t bytes;
    struct wf_stage_early *next;
} wf_stage_early;

typedef struct wf_stage_now {
    uint32_t number; /* of rounds; 0: none was yet */
    bool busy, updated, trains;
    /* Where stages agree (agree.c): a gradient of this one is not finite, and the step may be
     * dropped; what its gradients come to is with the first; the first has said what is done: the
     * step is dropped, or clipped by the norm of all. */
    bool is_bad, summed, decided, drops;
    double norm;
    wf_stage_schedule schedule;
    uint32_t *records;   /* [schedule.batches] */
    uint64_t all;        /* of them */
    wf_stage_held *held; /* [schedule.batches][n_values] of the book */
    bool *came;          /* [schedule.batches][n_edges]: what has come in by an edge */
    uint64_t epoch, split, first;
    uint32_t taken; /* micro-batches of a prediction whose results are with the first stage */
} wf_stage_now;

/* What all stages have to know before any of them updates. */
typedef struct wf_stage_sums {
    bool skips;      /* a step with a gradient or result that is not finite is dropped */
    double *squares; /* [n_variables]: of the gradients of this stage; NULL: no norm is taken */
    double *all;     /* [n_variables]: of the first stage, those of all */
    bool *waits;     /* [n_variables]: which have a gradient */
} wf_stage_sums;

typedef enum wf_stage_doing { WF_DOES_PART = 0, WF_DOES_SUMS, WF_DOES_UPDATE } wf_stage_doing;

/* What is being computed: a part of a micro-batch, the sums of squares of gradients, or the update
 * of the variables. */
typedef struct wf_stage_computing {
    bool under_way; /* on the stage's thread */
    wf_stage_doing doing;
    wf_stage_action action;
    uint32_t batch;
    const wf_stage_part *part;
    wf_plan *plan; /* NULL: there is nothing to do */
    wf_step_key key;
    wf_status rc;
    wf_err err;
} wf_stage_computing;

/* Another stage, for the first; of itself, that which all stages agree by. */
typedef struct wf_stage_other {
    bool ready, done;
    bool summed, finite; /* of this round: its sums are there; its gradients are finite */
} wf_stage_other;

struct wf_stage {
    wf_stage_conf conf;
    wf_exchange_conf exchange; /* of the job, once it has begun */
    wf_exchange_stages ops;
    wf_stage_book books[2]; /* evaluation, training: by wf_stage_now.trains */
    wf_exchange *own;       /* the variables of this stage; NULL: not yet */
    wf_exchange *told;      /* of the first stage: who hears of checkpoints */
    wf_gradients *gradients;
    wf_stage_sums sums;
    wf_stage_device on;
    wf_pool *pool;      /* of its own; NULL: conf.pool is the worker's */
    wf_stepper *thread; /* NULL: the worker's computes */
    wf_stage_computing computing;
    wf_stage_now now;
    wf_stage_other others[64]; /* by stage */
    bool is_open;              /* variables are there: messages count */
    bool sent_ready, is_over;  /* is_over: a round has failed, or a link is lost */
    wf_err why; /* of the first stage: what another one says; status WF_OK: nothing */
    wf_stage_early *early;
    uint32_t n_early;
    wf_buf **spare; /* [n_spare]: buffers of values, for use again */
    uint32_t n_spare, spare_room;
};

static inline bool wf_stage_predicts(const wf_stage *s)
{
    return s->conf.start->prediction[0] != 0;
}
static inline bool wf_stage_is_first(const wf_stage *s)
{
    return s->conf.start->stage == 0;
}
static inline uint32_t wf_stage_worker(const wf_stage *s, uint32_t stage)
{
    return s->conf.start->stages[stage]->worker;
}
static inline wf_stage_book *wf_stage_book_now(wf_stage *s)
{
    return &s->books[s->now.trains];
}
static inline wf_stage_held *wf_stage_hold(wf_stage *s, uint32_t batch, uint32_t value)
{
    return &s->now.held[(size_t)batch * s->books[s->now.trains].n_values + value];
}

static inline bool wf_stage_has(const wf_stage_held *h)
{
    return h->buf || h->on;
}

/* device.c: makes what a stage needs on its device, if that is not the host. Errors: WF_NOMEM; what
 * the device says. */
WF_MUST_USE wf_status wf_stage_device_open(wf_stage *s, wf_err *err);
void wf_stage_device_close(wf_stage *s);
/* Whether a variable, and its gradient, is memory of the device. */
bool wf_stage_is_apart(const wf_stage *s, uint32_t variable);
/* Takes the memory of the device that values of a plan need in any round like it: nothing for the
 * host. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_stage_reserve(wf_stage *s, const wf_stage_part *part, const wf_plan *p,
                                       wf_err *err);
/* Memory of the device for a value of a micro-batch, whose content is lost. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_stage_room(wf_stage *s, uint32_t batch, uint32_t value, size_t bytes,
                                    wf_err *err);
/* Queues the copy of a value to the device, unless it is there: the next run waits for it. Errors:
 * WF_NOMEM; what the device says. */
WF_MUST_USE wf_status wf_stage_bring(wf_stage *s, uint32_t batch, uint32_t value, wf_err *err);
/* Runs a part, whose ports are bound, and returns when all it makes is there: also on the host what
 * has memory there. Errors: as wf_plan_run; WF_NUMERIC for a gradient on a device. */
WF_MUST_USE wf_status wf_stage_run(wf_stage *s, const wf_stage_part *part, wf_plan *p,
                                   uint32_t batch, const wf_step_key *key, wf_err *err);

/* compute.c: begins what comes next of a round, and ends it: at once, or with
 * wf_stage_end_computing once the thread is done. Errors: those of the parts; of updates. */
WF_MUST_USE wf_status wf_stage_compute(wf_stage *s, wf_stage_action a, uint32_t batch, wf_err *err);
WF_MUST_USE wf_status wf_stage_compute_sums(wf_stage *s, wf_err *err);
WF_MUST_USE wf_status wf_stage_compute_update(wf_stage *s, wf_err *err);
WF_MUST_USE wf_status wf_stage_end_computing(wf_stage *s, wf_err *err);
/* Waits until nothing is under way. */
void wf_stage_wait(wf_stage *s);
/* Lends the plan of a part for so many records. Errors: those of plans. */
WF_MUST_USE wf_status wf_stage_plan(wf_stage *s, int which, uint64_t records, wf_plan **out,
                                    wf_err *err);

/* stage.c: memory of the host for a value, of any content. NULL: there is none. */
wf_buf *wf_stage_buf(wf_stage *s, size_t bytes);
/* A round begins here. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_stage_enter(wf_stage *s, uint32_t number, const wf_stage_round *round,
                                     wf_err *err);
/* "stage 1 of 4, on worker/1: " in front of an error; returns rc. */
wf_status wf_stage_name(const wf_stage *s, wf_status rc, wf_err *err);

/* predict.c: puts the content of variables into the graph, and compiles it as one process does that
 * has all of it. Errors: those of checkpoints and of wf_compile. */
WF_MUST_USE wf_status wf_stage_settle(wf_stage *s, wf_err *err);
/* Of the first stage: whether another micro-batch may go forward; whether the results of the next
 * one to be taken are there; and taking them. Errors: those of conf.take; WF_SHAPE. */
bool wf_stage_may_send(const wf_stage *s);
bool wf_stage_can_take(wf_stage *s);
WF_MUST_USE wf_status wf_stage_take_results(wf_stage *s, wf_err *err);

/* update.c: opens the variables. Errors: those of values. */
WF_MUST_USE wf_status wf_stage_open_variables(wf_stage *s, wf_err *err);
/* Where the plan of the micro-batch in hand writes a gradient. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_stage_gradient(wf_stage *s, uint32_t variable, float **out, wf_err *err);
/* It is there. Errors: WF_NUMERIC, unless such a step is dropped. */
WF_MUST_USE wf_status wf_stage_take_gradient(wf_stage *s, uint32_t variable, wf_err *err);
/* All are: makes the update, or drops the step. Errors: WF_NUMERIC. */
WF_MUST_USE wf_status wf_stage_update(wf_stage *s, wf_err *err);
/* Writes this stage's file of a checkpoint: the result is s->own's. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_stage_save(wf_stage *s, uint32_t cut, const char *folder, wf_err *err);

/* agree.c: whether the stages agree on the round under way. */
bool wf_stage_agrees(const wf_stage *s);
/* Makes what that needs, by the optimizer's options. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_stage_open_sums(wf_stage *s, const wf_opt *opt, wf_err *err);
void wf_stage_close_sums(wf_stage *s);
/* Takes the sums of squares of the gradients of this stage, on any thread; then the first is told.
 * Errors: what the device says; WF_NOMEM. */
WF_MUST_USE wf_status wf_stage_take_squares(wf_stage *s, wf_err *err);
WF_MUST_USE wf_status wf_stage_end_sums(wf_stage *s, wf_err *err);
/* Of the first stage: whether it has heard of all; and what is done then, which it tells the
 * others. Errors: WF_NOMEM. */
bool wf_stage_can_decide(const wf_stage *s);
WF_MUST_USE wf_status wf_stage_decide(wf_stage *s, wf_err *err);
/* Messages of both. Errors: WF_PROTO. */
WF_MUST_USE wf_status wf_stage_on_sums(wf_stage *s, uint32_t from, const wf_msg *m, wf_err *err);
WF_MUST_USE wf_status wf_stage_on_apply(wf_stage *s, const wf_msg *m, wf_err *err);

/* wire.c */
/* The first stage starts the others. Errors: WF_NOMEM; of dialling. */
WF_MUST_USE wf_status wf_stage_send_starts(wf_stage *s, wf_err *err);
/* Dials later stages, and says that this one is ready once there are links to all. */
WF_MUST_USE wf_status wf_stage_look_for_links(wf_stage *s, wf_err *err);
WF_MUST_USE wf_status wf_stage_send_round(wf_stage *s, wf_err *err);
/* A value goes along all its edges. */
WF_MUST_USE wf_status wf_stage_send_value(wf_stage *s, uint32_t batch, uint32_t value, wf_err *err);
/* An outcome of a kind: stage_ready or stage_done. */
WF_MUST_USE wf_status wf_stage_send_outcome(wf_stage *s, uint16_t kind, const wf_err *why,
                                            wf_err *err);
WF_MUST_USE wf_status wf_stage_send_save(wf_stage *s, wf_err *err);
WF_MUST_USE wf_status wf_stage_send_tune(wf_stage *s, double rate, wf_err *err);
void wf_stage_send_stop(wf_stage *s);
/* A message to a stage, with a body or without. */
WF_MUST_USE wf_status wf_stage_send(const wf_stage *s, uint32_t stage, uint16_t kind, uint32_t cut,
                                    const ProtobufCMessage *body, wf_err *err);

/* receive.c */
/* What came early of the round that begins. */
void wf_stage_take_early(wf_stage *s);

#endif
