/* SPDX-License-Identifier: Apache-2.0 */
/* master/job/job.h - the list of jobs, and what each is and has come to. One is in hand at a time.
 *
 * The life cycle of jobs:
 *   new, done, failed, stopped, interrupted --submitted--> queued
 *   queued --taken in hand--> compiling --compiled--> waiting
 *   waiting, recovering --set up--> starting --ready--> running --finished--> done
 *   resuming --ready--> running
 *   resuming --ready to stop--> stopping
 *   starting, running, resuming, stopping --generation lost--> recovering
 *   recovering --generation lost--> same
 *   starting, running, resuming, stopping --goes back--> recovering
 *   done, failed, stopped, interrupted --to be recovered--> recovering
 *   running --stop asked--> stopping
 *   queued, compiling, waiting, starting, resuming, recovering, stopping --stop asked--> same
 *   queued, compiling, waiting, starting, running, resuming, recovering,
 *   stopping --stopped on request--> stopped
 *   queued, compiling, waiting, starting, running, resuming, recovering,
 *   stopping --has failed--> failed
 *   waiting, starting, running, resuming, recovering,
 *   stopping --cluster ended--> interrupted
 *   running, stopping --master restarted--> resuming
 *   starting --master restarted--> recovering
 *   done, failed, stopped, interrupted --removed--> removed
 *
 * resuming: the master has started again, and the ps have not said yet what they hold. goes back:
 * to its newest checkpoint after NaN, or to its best one. cluster ended: every process had ended;
 * `weft recover` goes on. removed: nothing of it is left but its number.
 */
#ifndef WF_MASTER_JOB_JOB_H
#define WF_MASTER_JOB_JOB_H

#include "common/base/bytes.h"
#include "common/conf/run.h"
#include "common/log/states.h"
#include "master/core/core.h"
#include "master/job/lines.h"
#include "master/job/rounds.h"
#include "master/member/member.h"
#include <jansson.h>

typedef enum wf_job_state { /* as the journal has them */
                            WF_JOB_NEW = 0,
                            WF_JOB_QUEUED,
                            WF_JOB_COMPILING,
                            WF_JOB_WAITING,
                            WF_JOB_STARTING,
                            WF_JOB_RUNNING,
                            WF_JOB_RESUMING,
                            WF_JOB_RECOVERING,
                            WF_JOB_STOPPING,
                            WF_JOB_DONE,
                            WF_JOB_FAILED,
                            WF_JOB_STOPPED,
                            WF_JOB_INTERRUPTED,
                            WF_JOB_REMOVED
} wf_job_state;

typedef enum wf_job_event {
    WF_JOB_SUBMITTED = 0,
    WF_JOB_IN_HAND,
    WF_JOB_COMPILED,
    WF_JOB_SET_UP,
    WF_JOB_READY,
    WF_JOB_READY_TO_STOP,
    WF_JOB_FINISHED,
    WF_JOB_LOST,
    WF_JOB_GOES_BACK,
    WF_JOB_RECOVER,
    WF_JOB_STOP_ASKED,
    WF_JOB_STOP,
    WF_JOB_FAIL,
    WF_JOB_CLUSTER_ENDED,
    WF_JOB_RESTARTED,
    WF_JOB_REMOVE
} wf_job_event;

extern const wf_states wf_job_states;

static inline bool wf_job_over(wf_job_state s)
{
    return s >= WF_JOB_DONE;
}

enum { WF_LEFT_OUT = 32 };

typedef struct wf_job {
    char name[WF_RUN_NAME]; /* of its run: "digits#2" */
    char *text, *path;
    char *text_was;     /* before a change of which nothing was compiled yet; NULL: there is none */
    uint32_t texts;     /* counts them: what was compiled from an older one is not this job */
    wf_job_state state; /* written by wf_job_move and wf_job_replay_state alone */
    uint64_t entries;   /* counts moves: what was begun in an older state is void */
    uint32_t number;    /* from 1, in the order of the list */
    uint64_t id; /* random at its submission: one of that name in a wiped state_dir is another */
    uint16_t generation;
    int64_t from_step; /* to begin from; -1: the newest. Until the first commit that follows it */
    char reason[WF_REASON], hint[256];
    wf_prepared *prepared;
    wf_bytes start; /* of `prepared`: what the starts of all workers have in common, packed */

    /* its cut and its epoch; of types that their rooms complete, and not NULL */
    struct wf_cut *cut;
    struct wf_epoch *epoch;
    wf_rounds rounds; /* of data that grows; else all zero */
    bool stop_asked;
    bool cut_wanted;
    uint64_t next_cut;    /* the planned step of the next checkpoint */
    uint64_t ending_from; /* 1 + the step whose weights the job ends with; 0: the last */
    uint32_t told_view;   /* of clusters without ps: the last that its workers were told */
    uint64_t base_step, lost_steps;
    /* What losses have cost, as far as this master has seen: workers that were lost, and steps that
     * returns to a checkpoint have undone. */
    uint32_t lost_workers;
    uint64_t undone_steps;
    int64_t retry_ns;                 /* not set up again before */
    uint64_t latest;                  /* step of the newest checkpoint; UINT64_MAX: none */
    uint32_t latest_epoch, cut_epoch; /* open in that one (0: perhaps not known), and in the cut */
    char *passed;                     /* a line for each checkpoint that was passed over */

    uint32_t rollbacks;       /* to the checkpoint that was the newest then */
    uint64_t rollback_latest; /* that one, as `latest` */
    uint64_t left_out_records;
    Weft__Split left_out_rows[WF_LEFT_OUT], *left_out[WF_LEFT_OUT]; /* splits not to be dealt */
    size_t n_left_out;

    int64_t began_ns, ended_ns;
    uint64_t elapsed_ms; /* since it began, as the journal has it */
    wf_job_lines lines;  /* for whoever follows */
} wf_job;

/* Whether its training data grows. Of one that is not compiled yet, only once a round was taken. */
static inline bool wf_job_grows(const wf_job *j)
{
    return j->rounds.round > 0 || (j->prepared && j->prepared->grows);
}

/* ---- one job: job.c ---- */

/* Moves a job along its life cycle, without a word. */
void wf_job_move(wf_job *j, wf_job_event event);
/* The same, journaled and reported; `why` goes with FAIL and STOP. Errors: WF_IO, WF_NOMEM, WF_FULL
 * of the journal; the state is then what it was. */
WF_MUST_USE wf_status wf_job_enter(wf_master *m, wf_job *j, wf_job_event event, const wf_err *why,
                                   wf_err *err);
/* It ends as its owner asked. */
WF_MUST_USE wf_status wf_job_stop(wf_master *m, wf_job *j, wf_err *err);
/* The state that the journal says. Errors: WF_CORRUPT for one that there is not. */
WF_MUST_USE wf_status wf_job_replay_state(wf_job *j, uint32_t state, wf_err *err);
const char *wf_job_state_name(wf_job_state s);
/* Whether a generation of it is set up, or may be: its tasks may send messages about it. */
bool wf_job_has_generation(const wf_job *j);
/* A line for followers, logs and the job's events: `kind` is an event's name. */
void wf_job_note(wf_master *m, wf_job *j, const char *kind, const char *fmt, ...) WF_PRINTF(4, 5);
/* The same with numbers for programs, an object whose keys join the event's; takes *numbers. */
void wf_job_note_with(wf_master *m, wf_job *j, const char *kind, json_t **numbers, const char *fmt,
                      ...) WF_PRINTF(5, 6);
/* The global step: the steps that its weights contain. */
uint64_t wf_job_step(const wf_master *m, const wf_job *j);
/* The job, as it is now, into the journal. */
WF_MUST_USE wf_status wf_job_journal(wf_master *m, const wf_job *j, wf_err *err);
/* The same as a record, without its text. */
void wf_job_record(const wf_job *j, Weft__JobRecord *r);

/* ---- the list: list.c ---- */

/* The run of that name, or the newest run of the job of that name; NULL when there is none. */
wf_job *wf_job_find(const wf_master *m, const char *name);
/* A run of that job that is not over, or NULL. */
wf_job *wf_job_find_live(const wf_master *m, const char *job);
/* Adds a job that is new; without cut and epoch. */
WF_MUST_USE wf_status wf_job_add(wf_master *m, const char *name, const char *text, const char *path,
                                 wf_job **out, wf_err *err);
/* Frees a job but for its cut and epoch. */
void wf_job_delete(wf_job **j);
/* Another text, in another place perhaps; it is compiled anew. */
WF_MUST_USE wf_status wf_job_rewrite(wf_job *j, const char *text, const char *path, wf_err *err);
/* Drops what was compiled. */
void wf_job_drop_prepared(wf_job *j);
/* Takes a job in hand; NULL: none. */
void wf_job_take(wf_master *m, wf_job *j);
/* Notes who holds the variables of the job in hand: known once it is compiled, or there are no ps.
 */
void wf_job_learn_holders(wf_master *m);
/* The job in hand begins its next generation, which no member has any part of yet. */
void wf_job_next_generation(wf_master *m, wf_job *j);
/* The job in hand if `msg` is of it and of its generation, and the sender has it; else NULL. */
wf_job *wf_job_of(const wf_master *m, const wf_member *who, const wf_msg *msg);

#endif
