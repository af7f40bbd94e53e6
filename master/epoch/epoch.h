/* SPDX-License-Identifier: Apache-2.0 */
/* master/epoch/epoch.h - the open epoch of a job: its splits are dealt and come back, and it ends
 * with an evaluation, from which callbacks decide what follows.
 *
 * The life cycle of epochs:
 *   none --opened--> training --evaluation begun--> evaluating --evaluated--> evaluated
 *   training --evaluated--> evaluated
 *   evaluated --opened--> training
 *   training, evaluating, evaluated --closed--> none --closed--> same
 */
#ifndef WF_MASTER_EPOCH_EPOCH_H
#define WF_MASTER_EPOCH_EPOCH_H

#include "common/log/states.h"
#include "master/epoch/evaluation.h"
#include "master/epoch/ledger.h"
#include "master/epoch/near.h"
#include "master/epoch/shards.h"
#include "master/epoch/tally.h"
#include "master/job/job.h"

typedef enum wf_epoch_state {
    WF_EPOCH_NONE = 0, /* the ledger is not known, or the job is over */
    WF_EPOCH_TRAINING,
    WF_EPOCH_EVALUATING,
    WF_EPOCH_EVALUATED /* or there is nothing to evaluate with */
} wf_epoch_state;

typedef enum wf_epoch_event {
    WF_EPOCH_WAS_OPENED = 0,
    WF_EPOCH_EVALUATION_BEGUN,
    WF_EPOCH_WAS_EVALUATED,
    WF_EPOCH_WAS_CLOSED
} wf_epoch_event;

extern const wf_states wf_epoch_states;

typedef struct wf_epoch {
    wf_epoch_state state;     /* written by move() of epoch.c alone */
    wf_ledger ledger;         /* n == 0: in state NONE, and only there */
    wf_evaluation evaluation; /* in state EVALUATING */
    wf_callbacks_state callbacks;
    uint64_t train_records, eval_records; /* of the whole data; 0: not known yet */
    uint64_t train_digest;                /* of its content, since the master began; 0: not known */
    wf_near near;                         /* which splits are near which hosts */
    wf_shards shards;                     /* the files of the open epoch, under `shard: file` */
    size_t shard_files;                   /* of them, in the epoch that was opened last */
    bool shards_told;                     /* that some workers are left without a file */
    uint64_t marked_cut;                  /* the next_cut that a dealt split carries the mark of */
    uint64_t steps_before, records_before; /* of data that grows: of the rounds before */
    uint32_t set_aside;                    /* splits for having killed, since one was finished */
    uint64_t dropped_steps;
    uint64_t pushed_bytes, plain_bytes; /* of gradients, as workers say; and as float32 */
    uint64_t rows_named, rows_cached;   /* of tables with a cache, since the master began */
    wf_measure
        trained[WF_MASTER_METRICS]; /* over the open epoch, as far as this master heard of it */
    uint32_t n_trained;
    wf_tally before[WF_MASTER_METRICS]; /* over the epoch before it */
    uint32_t n_before;
    wf_tally eval[WF_MASTER_METRICS];
    uint32_t n_eval, eval_epoch; /* 1 + the epoch; 0: none yet */
    /* Of a job that is over: the epoch, from 1, and how many of its records were trained. */
    uint32_t last_epoch;
    uint64_t last_trained;
} wf_epoch;

static inline bool wf_epoch_is_evaluated(const wf_job *j)
{
    return j->epoch->state == WF_EPOCH_EVALUATED;
}
static inline uint64_t wf_epoch_batches(uint64_t records, uint64_t batch)
{
    return records / batch + (records % batch != 0);
}

/* The planned steps of the epochs before the open one. */
static inline uint64_t wf_epoch_steps_before(const wf_job *j)
{
    const wf_epoch *e = j->epoch;

    return wf_job_grows(j) ? e->steps_before
                           : e->ledger.epoch * wf_shards_batches(&e->shards, e->train_records,
                                                                 j->prepared->batch);
}

/* Goes on with what a checkpoint's ledger says. A ledger that does not fit the job fails the job.
 */
WF_MUST_USE wf_status wf_epoch_restore(wf_master *m, wf_job *j, const Weft__Ledger *l, wf_err *err);
/* Deals splits, evaluates, and opens the next epoch, as is due. `holding`: workers hold for a cut.
 * `cut_open`: one is being made. */
WF_MUST_USE wf_status wf_epoch_advance(wf_master *m, wf_job *j, bool holding, bool cut_open,
                                       wf_err *err);
/* Splits that are wanted and come back, progress, results of an evaluation. */
WF_MUST_USE wf_status wf_epoch_on_message(wf_master *m, wf_job *j, wf_member *who,
                                          const wf_msg *msg, wf_err *err);
/* A ps has the learning rate that it was sent. */
WF_MUST_USE wf_status wf_epoch_on_tuned(wf_member *who, const wf_msg *msg, wf_err *err);
/* Whether all of the job is trained and evaluated, and its weights are the last ones. */
bool wf_epoch_is_at_end(const wf_job *j);
/* A worker has lost its lease: its splits go back. `died`: its process has ended. */
void wf_epoch_lost(wf_job *j, const wf_member *who, bool died);
/* Of a job that is over only numbers are kept. */
void wf_epoch_close(wf_job *j);
/* A generation begins, where nothing is known yet of what there is to train. */
void wf_epoch_begin_generation(wf_job *j);

/* The open epoch, or that there is none, into the journal; and back. Errors: WF_CORRUPT, WF_NOMEM.
 */
WF_MUST_USE wf_status wf_epoch_journal(wf_master *m, const wf_job *j, wf_err *err);
WF_MUST_USE wf_status wf_epoch_replay(const wf_master *m, wf_job *j, const Weft__EpochRecord *r,
                                      wf_err *err);
/* The state of the job's callbacks as options of a message; rows and list have room for
 * WF_CALLBACKS_NUMBERS. */
size_t wf_epoch_callbacks(const wf_job *j, Weft__Option rows[], Weft__Option *list[]);

#endif
