/* SPDX-License-Identifier: Apache-2.0 */
/* worker/trainer_state.h - what the files of the trainer share; nobody else includes it.
 *
 *   trainer.c       made and freed; the operations of a worker
 *   trainer_job.c   a job begins and ends, with its data
 *   trainer_rows.c  the rows of tables that steps and units take
 *   trainer_step.c  steps
 *   trainer_unit.c  units of evaluations
 */
#ifndef WF_WORKER_TRAINER_STATE_H
#define WF_WORKER_TRAINER_STATE_H

#include "worker/gradients.h"
#include "worker/loss_scale.h"
#include "worker/replicas.h"
#include "worker/side.h"
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

struct wf_trainer {
    wf_trainer_conf conf;
    eval_opening opening;
    const wf_device *devices[WF_REPLICAS_MOST]; /* [conf.n_devices], as they are listed */
    wf_exchange_place place;                    /* of variables */
    const Weft__Start *start;                   /* of the job in hand; NULL: none */
    wf_replicas replicas;                       /* that compute steps */
    wf_side_replica evaluates;
    wf_side train, eval;
    wf_learnt_list learnt; /* of the training data */
    wf_gradients *gradients;
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
        bool known;            /* it was read, or could not be, while a GPU computed */
        const wf_batch *batch; /* NULL: it could not be read, */
        wf_err why;            /* why */
        bool brought;          /* the plans of the batch before have it too */
        uint64_t took_ns;      /* to read it */
    } next; /* where GPUs compute and there are no tables: of the batch behind the last */
    wf_named_rows eval_rows; /* of the unit in hand */
    wf_err eval_why;         /* what was wrong with its records */
    uint64_t batches;        /* to a step */
    uint64_t seed;
    FILE *loss_log;
    enum { NOTHING = 0, A_STEP, A_UNIT } begun;
    wf_train_step step; /* in hand */
    wf_eval_unit unit;
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

/* trainer_rows.c: the same. */
wf_status wf_trainer_name_step(void *arg, wf_exchange *x, int set, uint32_t step, bool *known,
                               wf_err *err);
wf_status wf_trainer_name_unit(void *arg, wf_exchange *x, int set, uint64_t begin, uint64_t end,
                               wf_err *err);

/* Do what was begun, and tell the worker. Errors: those of its events. */
WF_MUST_USE wf_status wf_trainer_make_step(wf_trainer *t, wf_worker *w, wf_err *err);
WF_MUST_USE wf_status wf_trainer_make_unit(wf_trainer *t, wf_worker *w, wf_err *err);

#endif
