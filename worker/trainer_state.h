/* SPDX-License-Identifier: Apache-2.0 */
/* worker/trainer_state.h - what the files of the trainer share; nobody else includes it.
 *
 *   trainer.c           made and freed; the operations of a worker
 *   trainer_job.c       a job begins and ends, with its data
 *   trainer_prediction.c  jobs that predict
 *   trainer_predicted.c   those whose model is divided among workers
 *   trainer_rows.c      the rows of tables that steps and units take
 *   trainer_step.c      steps
 *   trainer_hands.c     steps beside this thread, several at once
 *   trainer_diagnosis.c what was wrong with a step
 *   trainer_unit.c      units of evaluations
 *   trainer_stages.c    the first stage of a model that is divided, and its rounds
 *   trainer_guests.c    the other stages
 */
#ifndef WF_WORKER_TRAINER_STATE_H
#define WF_WORKER_TRAINER_STATE_H

#include "common/session/prediction.h"
#include "worker/gradients.h"
#include "worker/loss_scale.h"
#include "worker/replicas.h"
#include "worker/side.h"
#include "worker/stages/stage.h"
#include "worker/stepper.h"
#include "worker/trainer.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

/* The eval side's data is read beside the first steps, by a thread of its own: its decompression
 * would delay them by as much as it takes, and nobody needs it before the first epoch ends. */
typedef struct eval_opening {
    pthread_t thread;
    bool begun;        /* the thread is to be joined */
    atomic_bool ended; /* its result may be read */
    wf_status rc;
    wf_err err;
} eval_opening;

/* A step in hand, and what computes it. */
typedef struct wf_hand {
    wf_trainer *of;
    wf_replicas replicas;
    wf_gradients *gradients;
    wf_train_step step;
    const wf_batch *batch;     /* in hand, of the step's */
    const wf_named_rows *rows; /* of the batch, where there are tables */
    wf_stepper *thread;        /* NULL: the trainer's own thread computes */
    wf_pool *pool;             /* of that thread; NULL: the trainer's */
    uint32_t first_replica;    /* its first one's number among those of the train side */
    bool busy;                 /* the thread has a step, whose end was not told */
    wf_status rc;              /* of making it ready for the thread; else it has none */
    int64_t began_ns;
    wf_train_result result; /* as far as it is known */
} wf_hand;

enum { WF_HANDS = 1 + WF_WORKER_AT_ONCE };

struct wf_trainer {
    wf_trainer_conf conf;
    eval_opening opening;
    const wf_device *devices[WF_REPLICAS_MOST]; /* [conf.n_devices], as they are listed */
    wf_exchange_place place;                    /* of variables */
    const Weft__Start *start;                   /* of the job in hand; NULL: none */
    wf_hand hands[WF_HANDS]; /* the first computes on this thread, with all of its pool */
    wf_hand *hand;           /* whose step this thread is busy with */
    wf_side_replica on[WF_REPLICAS_MOST + WF_WORKER_AT_ONCE]; /* [n_on]: of the train side */
    uint32_t n_on;
    bool may_share;    /* steps may be computed at once, */
    bool shares;       /* and are, by the other hands */
    uint32_t measured; /* before: steps in a row that took long */
    int fd;            /* an eventfd: a step beside this thread is done; -1: there was none */
    wf_side_replica evaluates;
    wf_side train, eval;
    wf_learnt_list learnt; /* of the training data */
    wf_loss_scale scale;
    struct late_gradient {
        uint32_t output;
        wf_device_event *done;
    } * late; /* [train.n_outputs], made by the first step: of the run in hand, those that a GPU
               * copies, in the order of that */
    uint32_t n_late;
    struct batch_ahead {
        uint32_t step;         /* 0: none */
        const wf_batch *batch; /* NULL: it could not be read, */
        wf_err why;            /* why */
        wf_named_rows rows;
    } ahead[WF_READER_HELD]; /* where there are tables: batches whose rows are named, by step */
    uint32_t next_ahead;     /* the first step that has none; 0: any */
    struct next_batch {
        bool known;                   /* it was read, or could not be, while there was time */
        const wf_batch *batch;        /* NULL: it could not be read, */
        wf_err why;                   /* why */
        bool brought;                 /* the plans of the batch before have it too */
    } next;                           /* where there are no tables: of the batch behind the last */
    wf_named_rows eval_rows;          /* of the unit in hand */
    wf_err eval_why;                  /* what was wrong with its records */
    struct wf_prediction *prediction; /* of a job that predicts, and has nothing else; or NULL */
    wf_arena *prediction_arena;
    struct wf_predicted {
        wf_graph *graph; /* of the first stage, whose inputs are the model's */
        wf_prediction_model model;
        const wf_tensor **fed; /* [graph->n_inputs] */
        wf_tensor *fields;     /* the same */
        wf_batch batch;
        uint64_t read, taken;    /* up to which record: of the split in hand */
        uint64_t round_end, end; /* of the round under way, and of the split */
    } predicted;                 /* of a divided model */
    wf_arena *files_arena;       /* of what is said of the files; NULL: nothing is */
    uint64_t batches;            /* to a step */
    uint64_t seed;
    FILE *loss_log;
    enum { NOTHING = 0, A_STEP, A_UNIT } begun;
    wf_train_step step; /* that was begun last */
    wf_eval_unit unit;
    wf_stage_links links; /* to workers, for stages */
    wf_stage *stage;      /* the first, of this worker's job; NULL: none */
    /* Other stages, of one generation of a job: of another worker's, or of this one's, which then
     * has several. And those that wait for the end of this worker's own job, of which the master
     * has still to tell. */
    struct wf_guests {
        struct wf_guest {
            Weft__Start *start;
            wf_stage *stage; /* NULL: it waits */
            wf_worker_of of;
            uint16_t job, generation;
            uint32_t chief; /* the worker that has the job, and its incarnation */
            uint64_t incarnation;
        } rows[WF_STAGES_MOST];
        uint32_t n;
    } guests, later;
    enum {
        NO_ROUND = 0,
        A_STEP_ROUND,
        A_UNIT_ROUND,
        A_PART_ROUND
    } round;                               /* of this
                                          worker's job, under way */
    wf_measure measures[WF_MEASURES_MOST]; /* of the step in hand */
};

/* trainer_job.c: waits for the eval side, which then is there or has failed. */
WF_MUST_USE wf_status wf_trainer_join_opening(wf_trainer *t, wf_err *err);
/* Operations of wf_worker_ops, whose arg is the trainer. */
wf_status wf_trainer_start(void *arg, const Weft__Start *start, wf_worker_job *out, wf_err *err);
void wf_trainer_halt(void *arg);
wf_status wf_trainer_open_round(void *arg, const Weft__Round *round, wf_worker_job *out,
                                wf_err *err);
wf_status wf_trainer_read(void *arg, const wf_batch_id *range, wf_err *err);

/* trainer_job.c: makes h->gradients, of h->replicas. Errors: those of options; WF_NOMEM. */
WF_MUST_USE wf_status wf_trainer_new_gradients(wf_trainer *t, wf_hand *h, wf_err *err);

/* trainer_prediction.c: a job that predicts begins, has its step made, and ends. Errors: those of
 * wf_prediction_open; of events of the worker. */
WF_MUST_USE wf_status wf_trainer_begin_prediction(wf_trainer *t, const Weft__Start *start,
                                                  wf_worker_job *out, wf_err *err);
WF_MUST_USE wf_status wf_trainer_make_prediction(wf_trainer *t, wf_worker *w, wf_err *err);
void wf_trainer_end_prediction(wf_trainer *t);

/* trainer_predicted.c: the same of a model that is divided; the prediction is opened between both
 * parts of its beginning. */
WF_MUST_USE wf_status wf_predicted_open(wf_trainer *t, const Weft__Start *start, wf_err *err);
WF_MUST_USE wf_status wf_predicted_begin(wf_trainer *t, wf_worker_job *out, wf_err *err);
WF_MUST_USE wf_status wf_predicted_split(wf_trainer *t, uint64_t split, wf_worker *w, wf_err *err);
WF_MUST_USE wf_status wf_predicted_end_round(wf_trainer *t, const wf_err *why, wf_worker *w,
                                             wf_err *err);
void wf_predicted_close(wf_trainer *t);

/* trainer_rows.c: the same. */
wf_status wf_trainer_name_step(void *arg, wf_exchange *x, int set, uint32_t step, bool *known,
                               wf_err *err);
wf_status wf_trainer_name_unit(void *arg, wf_exchange *x, int set, uint64_t begin, uint64_t end,
                               wf_err *err);

/* trainer_step.c: the parts of a step of one batch, of the hand t->hand. Takes its batch and binds
 * it; computes it, on any thread; looks at what came of it, and has its gradients leave. */
WF_MUST_USE wf_status wf_step_prepare(wf_trainer *t, const wf_batch_id *id, wf_err *err);
void wf_step_compute(wf_trainer *t, wf_hand *hand);
WF_MUST_USE wf_status wf_step_take(wf_trainer *t, wf_err *err);
/* Tells the worker of the hand's step, which went as `rc` says. */
WF_MUST_USE wf_status wf_step_tell(wf_trainer *t, wf_worker *w, wf_status rc, wf_err *err);

/* trainer_hands.c: whether the step that was begun goes to a hand of its own, and having it go
 * there. */
bool wf_hands_take(const wf_trainer *t);
void wf_hands_give(wf_trainer *t);
/* A step on this thread took so long: where such steps go on, others are computed at once. */
void wf_hands_note(wf_trainer *t, int64_t took_ns);
/* Tells the worker of steps that are done, in their order. */
WF_MUST_USE wf_status wf_hands_collect(wf_trainer *t, wf_worker *w, wf_err *err);
/* Waits for what is under way, and forgets it. */
void wf_hands_forget(wf_trainer *t);
/* The same at the end of a job; the hands behind the first are closed. */
void wf_hands_close(wf_trainer *t);

/* trainer_diagnosis.c: whether output i of the last run has no NaN and no infinity. */
bool wf_output_is_finite(const wf_plan *p, uint32_t i);
/* Says where what is bad in the batch of the hand t->hand came from: of its first replica that has
 * something bad. Errors: WF_NUMERIC, which says that; what running the plan again says. */
WF_MUST_USE wf_status wf_step_diagnose(wf_trainer *t, const wf_batch_id *id, wf_err *err);

/* trainer_guests.c: what a stage of start `s` on this worker computes with. Errors: WF_INVALID for
 * a device that the worker has not; WF_IO. */
WF_MUST_USE wf_status wf_trainer_stage_conf(wf_trainer *t, const Weft__Start *s, wf_stage_conf *out,
                                            wf_err *err);
/* Begins those that have waited, if this worker has no job. Errors: WF_NOMEM; what a device says
 * that has failed. */
WF_MUST_USE wf_status wf_trainer_take_later(wf_trainer *t, wf_err *err);
/* Ends them, and those that wait. */
void wf_trainer_end_guests(wf_trainer *t);
void wf_trainer_forget_later(wf_trainer *t);
/* An operation of wf_worker_ops. */
wf_status wf_trainer_on_stage(void *arg, const wf_worker_of *of, const wf_event *ev, wf_err *err);

/* trainer_hands.c: makes the eventfd t->fd, unless it is there. Errors: WF_IO. */
WF_MUST_USE wf_status wf_trainer_open_fd(wf_trainer *t, wf_err *err);
/* Nothing is due by it. */
void wf_trainer_drain_fd(const wf_trainer *t);

/* trainer_stages.c: begins a round of records [begin, end) in micro-batches. Errors:
 * WF_UNSUPPORTED; WF_NOMEM. */
WF_MUST_USE wf_status wf_trainer_begin_records(wf_trainer *t, wf_stage_round round, uint64_t begin,
                                               uint64_t end, uint64_t batch, wf_err *err);
/* A job whose model is divided begins, once its data is open. */
WF_MUST_USE wf_status wf_trainer_begin_stages(wf_trainer *t, wf_worker_job *out, wf_err *err);
/* All stages end, this worker's or another's. */
void wf_trainer_end_stages(wf_trainer *t);
/* Begins the step, or the unit, that was asked for. */
WF_MUST_USE wf_status wf_trainer_begin_round(wf_trainer *t, bool trains, wf_worker *w, wf_err *err);
/* Whether any of them can do something. */
bool wf_trainer_stages_can_work(const wf_trainer *t);
/* Does what can be done for stages, and tells the worker of a round that has ended. */
WF_MUST_USE wf_status wf_trainer_work_stages(wf_trainer *t, wf_worker *w, wf_err *err);

/* Do what was begun, and tell the worker. Errors: those of its events. */
WF_MUST_USE wf_status wf_trainer_make_step(wf_trainer *t, wf_worker *w, wf_err *err);
WF_MUST_USE wf_status wf_trainer_make_unit(wf_trainer *t, wf_worker *w, wf_err *err);

#endif
