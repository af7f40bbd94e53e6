/* SPDX-License-Identifier: Apache-2.0 */
/* master/state.h - what the files of this room share; nobody else includes it. */
#ifndef WF_MASTER_STATE_H
#define WF_MASTER_STATE_H

#include "master/journal.h"
#include "master/ledger.h"
#include "master/master.h"

typedef enum wf_job_state {
    WF_JOB_QUEUED = 1,
    WF_JOB_COMPILING,
    WF_JOB_WAITING,
    WF_JOB_SETTING_UP,
    WF_JOB_RUNNING,
    WF_JOB_RESUMING,
    WF_JOB_RECOVERING,
    WF_JOB_STOPPING,
    WF_JOB_DONE,
    WF_JOB_FAILED,
    WF_JOB_STOPPED,
    WF_JOB_INTERRUPTED /* everything died: `weft recover` */
} wf_job_state;
const char *wf_job_state_name(wf_job_state s);
static inline bool wf_job_over(wf_job_state s)
{
    return s >= WF_JOB_DONE;
}

enum { WF_MASTER_METRICS = 64, WF_MASTER_RETIRED = 256, WF_REASON = 512, WF_LEFT_OUT = 32 };

typedef struct wf_tally {
    char name[64];
    double sum, count;
} wf_tally;

/* A configured task, and the life of it that is a member now. */
typedef struct wf_member {
    wf_task task;
    char address[128];
    bool live;       /* in the view: said what it holds once, and is not given up */
    bool registered; /* said what it holds over the link that it has now */
    bool unclaimed;  /* a member by the journal that this life of the master has not heard yet */
    uint64_t incarnation, pid;
    wf_peer *peer; /* NULL: no link now */
    int64_t since_ns, last_heard_ns;
    char reason[WF_REASON]; /* why it is not live, or how the life before ended */
    uint32_t view_acked;    /* ps */
    /* the job in hand; of another generation they mean nothing */
    uint16_t generation; /* set-up or start was sent, or is held, for this one */
    bool ready;          /* and has succeeded */
    bool tune_sent;      /* ps: the learning rate was said over this link */
    double tuned;        /* ps: the learning rate that it has said it has; 0: that of the set-up */
    bool wants;          /* worker: asked for a split */
    bool reported;       /* worker: counted in the open cut */
    uint64_t steps;      /* worker: acknowledged, in this generation */
    double samples_per_sec;
    int64_t rate_ns;
    uint64_t compute_ns, wait_ns, transfer_ns, data_ns;
} wf_member;

typedef enum wf_cut_state {
    WF_CUT_NONE = 0,
    WF_CUT_HOLDING, /* workers hold; ends with forked, done or abort */
    WF_CUT_WRITING, /* training goes on */
} wf_cut_state;

typedef struct wf_cut {
    wf_cut_state state;
    uint32_t number;
    uint64_t chief;
    bool final, granted;
    bool asked; /* by a callback, for the end of the epoch */
    int64_t began_ns;
} wf_cut;

typedef struct wf_job {
    char name[65];
    char *text, *path;
    wf_job_state state;
    uint32_t number;
    uint16_t generation;
    int64_t from_step; /* to begin from; -1: the newest. Until the first commit that follows it */
    char reason[WF_REASON], mend[256];
    wf_prepared *prepared;

    wf_ledger ledger; /* n == 0: not known yet */
    bool evaluated;   /* the open epoch, complete, has been evaluated */
    wf_callbacks_state callbacks;
    uint64_t ending_from; /* 1 + the step whose weights the job ends with; 0: the last */
    bool eval_sent;
    uint64_t eval_by; /* incarnation */
    uint64_t base_step, lost_steps, next_cut;
    /* Where the ledger of a job that is over stood: the epoch, from 1, and its trained records. */
    uint32_t last_epoch;
    uint64_t last_trained;
    uint64_t marked_cut; /* the next_cut that a dealt split carries the mark of */
    uint64_t train_records, eval_records;
    bool stop_asked, cut_wanted;
    uint32_t cut_failures;
    int64_t cut_retry_ns, retry_ns;
    wf_cut cut;
    uint64_t latest; /* step of the newest checkpoint; UINT64_MAX: none */
    uint32_t n_checkpoints, n_failed_checkpoints;
    uint64_t pause_ns, pause_most_ns;
    uint64_t dropped_steps;

    uint32_t set_aside; /* splits for having killed, since one was finished */
    /* on_nan: rollback */
    uint32_t rollbacks;       /* to the checkpoint that was the newest then */
    uint64_t rollback_latest; /* that one, as `latest` */
    uint64_t left_out_records;
    Weft__Split left_out_rows[WF_LEFT_OUT], *left_out[WF_LEFT_OUT]; /* splits not to be dealt */
    size_t n_left_out;

    wf_tally metrics[WF_MASTER_METRICS]; /* of the last reports */
    uint32_t n_metrics;
    wf_tally eval[WF_MASTER_METRICS];
    uint32_t n_eval, eval_epoch; /* 1 + the epoch; 0: none yet */
    int64_t began_ns, ended_ns;
    char *passed;
    /* lines for whoever follows, the newest last */
    char **lines;
    uint32_t n_lines;
} wf_job;

struct wf_master {
    wf_master_conf conf;
    char *session, *journal_dir, *checkpoint_dir;
    wf_net *net;
    wf_journal *journal;
    wf_member *members;
    uint32_t n_members, n_ps, n_workers;
    uint64_t retired[WF_MASTER_RETIRED]; /* a ring: M2 */
    uint32_t n_retired;
    uint32_t view;
    bool view_stale; /* membership changed since */
    wf_job **jobs;
    uint32_t n_jobs;
    wf_job *job; /* the one in hand, or NULL */
    bool replaying, other_session;
    int64_t now_ns;
};

/* Where a generation begins. */
typedef struct wf_restored {
    bool initial; /* no checkpoint: the first values, written beside the checkpoints */
    uint64_t global_step;
    Weft__Ledger *ledger; /* of a checkpoint; finished: the trained ranges */
    wf_callbacks_state callbacks;
    char *passed; /* a line for each checkpoint passed over; "" */
    wf_arena *arena;
} wf_restored;

/* restore.c: the newest checkpoint that verifies, or the one of from_step (-1: the newest), or the
 * first values where there is none. Errors: WF_MISMATCH for another model's; WF_CORRUPT where there
 * are some and none verifies. */
WF_MUST_USE wf_status wf_master_restore(wf_master *m, const wf_prepared *p, int64_t from_step,
                                        wf_restored *out, wf_err *err);
void wf_restored_free(wf_restored *r);

/* master.c */
WF_MUST_USE wf_status wf_master_send(wf_master *m, wf_peer *to, wf_msg **msg, wf_err *err);
WF_MUST_USE wf_status wf_master_say(wf_master *m, wf_member *to, uint16_t kind,
                                    const ProtobufCMessage *body, wf_err *err);
/* A line for followers, logs and the job's events: `kind` is an event's name. */
void wf_master_note(wf_master *m, wf_job *j, const char *kind, const char *fmt, ...)
    WF_PRINTF(4, 5);

/* members.c */
wf_member *wf_member_of(wf_master *m, wf_task task);
wf_member *wf_member_at(wf_master *m, const wf_peer *peer);
WF_MUST_USE wf_status wf_members_on_up(wf_master *m, wf_peer *peer, wf_err *err);
void wf_members_on_down(wf_master *m, const wf_peer *peer);
WF_MUST_USE wf_status wf_members_on_register(wf_master *m, wf_member *who, const wf_msg *msg,
                                             wf_err *err);
WF_MUST_USE wf_status wf_members_on_died(wf_master *m, const Weft__Died *died, wf_err *err);
WF_MUST_USE wf_status wf_members_watch(wf_master *m, wf_err *err);
/* Ends this life of a task that does not do its part; its process is told, and starts anew. */
WF_MUST_USE wf_status wf_members_give_up(wf_master *m, wf_member *who, const char *reason,
                                         wf_err *err);
/* Announces a new view if membership has changed. */
WF_MUST_USE wf_status wf_members_view(wf_master *m, wf_err *err);
/* A view of the journal: its members count as live until they have been silent for too long. */
void wf_members_replay(wf_master *m, const Weft__View *view);
/* Every ps that the job needs is live (and, if asked, has the newest view). */
bool wf_members_ps_live(const wf_master *m, bool with_view);
/* "ps/1, worker/0" of those that are not live, into text. */
const char *wf_members_missing(const wf_master *m, char *text, size_t size);
wf_member *wf_members_chief(wf_master *m);
/* Fills a view of all live members; free with wf_view_free. */
WF_MUST_USE wf_status wf_view_make(const wf_master *m, Weft__View *out, wf_err *err);
void wf_view_free(Weft__View *v);

/* Whether a worker has the job in hand, and a link over which it has said so. */
static inline bool wf_member_trains(const wf_member *who, const wf_job *j)
{
    return who->task.role == WF_ROLE_WORKER && who->live && who->registered && who->peer &&
           who->ready && who->generation == j->generation;
}
/* Notes, while the journal is replayed, that a worker was at `steps` in the generation in hand. */
void wf_members_replay_steps(wf_master *m, uint64_t incarnation, uint64_t steps);
/* Whether a worker's link is away, or it has not said yet what it holds: it may be training. */
bool wf_members_worker_away(const wf_master *m);

/* jobs.c */
/* The job in hand if `msg` is of it and of its generation, and the sender has it; else NULL. */
wf_job *wf_job_of(const wf_master *m, const wf_member *who, const wf_msg *msg);
wf_job *wf_job_find(const wf_master *m, const char *name);
WF_MUST_USE wf_status wf_job_add(wf_master *m, const char *name, const char *text, const char *path,
                                 wf_job **out, wf_err *err);
void wf_job_delete(wf_job **j);
/* The job that was added last is none after all. */
void wf_job_take_back(wf_master *m);
/* Another text, in another place perhaps; it is compiled anew. */
WF_MUST_USE wf_status wf_job_rewrite(wf_job *j, const char *text, const char *path, wf_err *err);
/* Journals and takes a new state; `why` goes with FAILED and STOPPED. */
WF_MUST_USE wf_status wf_job_enter(wf_master *m, wf_job *j, wf_job_state state, const wf_err *why,
                                   wf_err *err);
/* It ends as its owner asked. */
WF_MUST_USE wf_status wf_job_stop(wf_master *m, wf_job *j, wf_err *err);
WF_MUST_USE wf_status wf_job_advance(wf_master *m, wf_err *err);
WF_MUST_USE wf_status wf_job_on_ready(wf_master *m, wf_member *who, const wf_msg *msg, wf_err *err);
WF_MUST_USE wf_status wf_job_on_fault(wf_master *m, wf_member *who, const wf_msg *msg, wf_err *err);
/* A member was given up: its splits go back, its cut and evaluation end. `death`: how its process
 * ended, if it is known to have. */
WF_MUST_USE wf_status wf_job_lost(wf_master *m, wf_member *who, const char *death, wf_err *err);
/* The job, as it is now, into the journal. */
WF_MUST_USE wf_status wf_job_journal(wf_master *m, const wf_job *j, wf_err *err);
/* How many records a worker found. */
WF_MUST_USE wf_status wf_job_take_records(wf_master *m, wf_job *j, uint64_t train, uint64_t eval,
                                          wf_err *err);
/* A job's record for the journal, from its present state. */
void wf_job_record(const wf_job *j, Weft__JobRecord *r);

/* rollback.c: splits that are left out */
/* A step of `split` (NULL: not known) made NaN, as `why` says. True when the job is to go back: the
 * split is noted, and people are told. False when it is to fail, and *why says if it had gone back
 * in vain. */
bool wf_rollback_begin(wf_master *m, wf_job *j, const Weft__Split *split, wf_err *why);
/* Splits that have killed too many are left out. False when the job is to fail: it is not the
 * splits, as *why says. */
bool wf_rollback_set_aside(wf_master *m, wf_job *j, const char *death, wf_err *why);
/* The splits to be left out of an epoch that begins or is restored count as done. */
void wf_rollback_apply(wf_job *j);
void wf_rollback_replay(wf_job *j, const Weft__JobRecord *r);

/* training.c: splits, epochs, evaluation of the running job */
WF_MUST_USE wf_status wf_training_begin_epoch(wf_master *m, wf_job *j, uint32_t epoch, wf_err *err);
WF_MUST_USE wf_status wf_training_restore(wf_master *m, wf_job *j, const Weft__Ledger *l,
                                          wf_err *err);
WF_MUST_USE wf_status wf_training_advance(wf_master *m, wf_job *j, wf_err *err);
/* Whether the lists of a report fit into what is said because of it: a worker has few splits.
 * Errors: WF_PROTO. */
WF_MUST_USE wf_status wf_training_check_held(const wf_member *who, size_t n_open, size_t n_finished,
                                             wf_err *err);
WF_MUST_USE wf_status wf_training_on_message(wf_master *m, wf_member *who, const wf_msg *msg,
                                             wf_err *err);
WF_MUST_USE wf_status wf_training_claim(wf_master *m, wf_member *who, const Weft__Register *r,
                                        wf_err *err);
uint64_t wf_training_global_step(const wf_master *m, const wf_job *j);
/* Whether the open epoch is the job's last. */
bool wf_training_was_last(const wf_job *j);
/* Global steps that the plan has in all. */
uint64_t wf_training_planned_steps(const wf_job *j);
WF_MUST_USE wf_status wf_training_replay(wf_master *m, const Weft__EpochRecord *r, wf_err *err);

/* The state of the job's callbacks as options of a message; rows and list have room for
 * WF_CALLBACKS_NUMBERS. */
size_t wf_training_callbacks(const wf_job *j, Weft__Option rows[], Weft__Option *list[]);
WF_MUST_USE wf_status wf_training_on_tuned(const wf_master *m, wf_member *who, const wf_msg *msg,
                                           wf_err *err);

/* cuts.c */
WF_MUST_USE wf_status wf_cuts_advance(wf_master *m, wf_job *j, wf_err *err);
/* The open cut, if any, comes to nothing; workers go on. */
WF_MUST_USE wf_status wf_cuts_abort(wf_master *m, wf_job *j, wf_err *err);
/* A worker that the open cut waits for is gone. */
WF_MUST_USE wf_status wf_cuts_lost(wf_master *m, wf_job *j, wf_member *who, wf_err *err);
/* For cut_end.c: a message of the open cut; the workers that hold go on; what the cut is, on disk;
 * the chief drops it; the job ends, done or stopped; whether workers hold. */
WF_MUST_USE wf_status wf_cut_say(wf_master *m, wf_job *j, wf_member *to, uint16_t kind,
                                 const ProtobufCMessage *body, wf_err *err);
WF_MUST_USE wf_status wf_cut_resume(wf_master *m, wf_job *j, wf_err *err);
WF_MUST_USE wf_status wf_cut_journal(wf_master *m, const wf_job *j, bool committed, uint64_t step,
                                     wf_err *err);
WF_MUST_USE wf_status wf_cut_tell_abort(wf_master *m, wf_job *j, wf_err *err);
WF_MUST_USE wf_status wf_cut_end_job(wf_master *m, wf_job *j, wf_err *err);
WF_MUST_USE wf_status wf_cut_on_report(wf_master *m, wf_job *j, wf_member *who, const wf_msg *msg,
                                       wf_err *err);
bool wf_cut_is_holding(const wf_job *j);

/* cut_end.c */
WF_MUST_USE wf_status wf_cuts_on_message(wf_master *m, wf_member *who, const wf_msg *msg,
                                         wf_err *err);
/* The open cut has taken longer than it may. */
WF_MUST_USE wf_status wf_cut_overdue(wf_master *m, wf_job *j, wf_err *err);

/* asks.c */
WF_MUST_USE wf_status wf_asks_on_message(wf_master *m, wf_peer *from, const wf_msg *msg,
                                         wf_err *err);

#endif
