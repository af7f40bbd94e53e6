/* SPDX-License-Identifier: Apache-2.0 */
/* master/state.h - what the files of this room share; nobody else includes it. */
#ifndef WF_MASTER_STATE_H
#define WF_MASTER_STATE_H

#include "common/base/bytes.h"
#include "common/metrics/measure.h"
#include "common/wire/waiting.h"
#include "master/cut/cut.h"
#include "master/journal.h"
#include "master/ledger.h"
#include "master/master.h"
#include "master/outbox.h"
#include "master/todo.h"

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

enum { WF_MEMBER_LINKS = 32 };

/* What a task tells of itself with its signs of life, and what the master waits for from it:
 * progress.c. */
typedef struct wf_progress {
    uint64_t count;              /* grows while its main thread turns or computes */
    int64_t changed_ns, beat_ns; /* when it grew; when the last beat came; 0: none yet */
    wf_waiting waits;            /* what the task waits for */
    wf_waiting owes;             /* what the master waits for; whom is the task */
    wf_waiting_log owes_log;
    int64_t asked_ns; /* when the master asked for it again */
    uint32_t n_links;
    struct wf_progress_link {
        wf_task peer;
        uint64_t resent_bytes, queued_bytes;
    } links[WF_MEMBER_LINKS];
} wf_progress;

/* Failures of a worker in a generation: unfit.c. */
typedef struct wf_unfit {
    uint16_t generation;
    uint32_t failures;
    int64_t retry_ns; /* when its start is asked for again; 0: not planned */
} wf_unfit;

/* A configured task, and the life of it that is a member now. */
typedef struct wf_member {
    wf_task task;
    char address[128];
    bool live;       /* in the view: said what it holds once, and is not given up */
    bool registered; /* said what it holds over the link that it has now */
    bool unclaimed;  /* a member by the journal that this life of the master has not heard yet */
    bool down;       /* its supervisor does not start it again; `reason` says why */
    uint64_t incarnation, pid;
    uint64_t viewed; /* its incarnation in the newest view; 0: not in it */
    wf_peer *peer;   /* NULL: no link now */
    int64_t since_ns, last_heard_ns;
    int64_t challenged_ns;       /* when another process asked for its place; 0: none has */
    int64_t received_present_ns; /* what m->watch.present_ns was then */
    wf_progress progress;
    wf_unfit unfit;
    uint32_t eval_failed;   /* 1 + the epoch whose evaluation it could not take part in; 0: none */
    char reason[WF_REASON]; /* why it is not live, or how the incarnation before ended; "": neither
                             */
    int64_t reason_ns;      /* since when */
    char session[24];       /* of the supervisor that started it, as its register says */
    uint32_t view_acked;    /* ps */
    /* the job in hand; of another generation they mean nothing */
    uint16_t generation; /* set-up or start was sent, or is held, for this one */
    bool ready;          /* and has succeeded */
    bool tune_sent;      /* ps: the learning rate was said over this link */
    double tuned;        /* ps: the learning rate that it has said it has; 0: that of the set-up */
    bool wants;          /* worker: asked for a split */
    bool stays;          /* used while a view is replayed */
    bool reported;       /* worker: counted in the open cut */
    uint64_t steps;      /* worker: acknowledged, in this generation */
    double samples_per_sec;
    int64_t rate_ns;
    uint64_t compute_ns, wait_ns, transfer_ns, data_ns;
} wf_member;

/* The evaluation of the open epoch: evaluation.c. */
typedef struct wf_evaluation {
    wf_ledger units;          /* n == 0: none is under way */
    Weft__EvalResult **early; /* [units.n]: results whose turn has not come */
    uint64_t merged;          /* so many units are in the measures */
    wf_measure measures[WF_MASTER_METRICS];
    uint32_t n_measures;
} wf_evaluation;

typedef struct wf_job {
    char name[65];
    char *text, *path;
    uint32_t texts;   /* counts them: what was compiled from an older one is not this job */
    uint64_t entries; /* counts states entered: what was begun in an older one is void */
    wf_job_state state;
    uint32_t number;
    uint64_t id; /* drawn when it was submitted: one of that name in a wiped state_dir is another */
    uint16_t generation;
    int64_t from_step; /* to begin from; -1: the newest. Until the first commit that follows it */
    char reason[WF_REASON], mend[256];
    wf_prepared *prepared;

    wf_ledger ledger; /* n == 0: not known yet */
    bool evaluated;   /* the open epoch, complete, has been evaluated */
    wf_callbacks_state callbacks;
    uint64_t ending_from; /* 1 + the step whose weights the job ends with; 0: the last */
    wf_evaluation evaluation;
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
    wf_bytes
        start; /* the part of a start that is the same for all workers, packed; of `prepared` */
    /* lines for whoever follows, the newest last */
    char **lines;
    uint32_t n_lines;
} wf_job;

/* Facts about the members, see facts.c. */
typedef struct wf_facts {
    bool known;
    bool ps_live;      /* every ps is registered, over a link */
    bool ps_have_view; /* and has the newest view */
    bool ps_ready;     /* every ps holds the generation in hand */
    bool ps_empty;     /* one that is here does not hold it */
    bool any_worker;   /* is registered */
    bool worker_away;  /* a live one, whose link is away or which has not said yet what it holds: it
                          may be training */
    bool claims_out;   /* a worker may hold splits of before the master's restart */
    bool to_start;     /* a worker waits for its start */
    /* The live worker of the lowest number that has started: the same one as long as it lives, so
     * the lease is its membership (M3). NULL: none. */
    wf_member *chief;
} wf_facts;

/* When the master could receive from its members, see watch.c. */
typedef struct wf_watch {
    int64_t iteration_ns;       /* the last iteration of the loop */
    int64_t receiving_since_ns; /* the end of its last absence */
    int64_t present_ns;         /* time that it was there, in all */
    int64_t looked_ns;          /* members were looked at */
    uint32_t events;            /* messages since the last iteration */
} wf_watch;

struct wf_master {
    wf_master_conf conf;
    char *session, *journal_dir, *checkpoint_dir;
    wf_net *net;
    wf_journal *journal;
    bool syncing, busy; /* work is out: a sync of the journal; a restore or a compilation */
    wf_outbox outbox;
    wf_watch watch;
    bool any_unfit; /* a worker waits to be started again */
    wf_member *members;
    wf_index by_task; /* members */
    wf_facts facts;   /* of the members; void when one of them, the view or the job changes */
    wf_todo wanting;  /* members that have asked for a split, and some that do not want any more */
    uint32_t n_members, n_ps, n_workers;
    uint64_t retired[WF_MASTER_RETIRED]; /* a ring of late: they are told at the hello (M2) */
    uint32_t n_retired;
    uint32_t view;
    bool view_stale; /* membership changed since */
    wf_job **jobs;
    uint32_t n_jobs;
    wf_job *job; /* the one in hand, or NULL */
    bool replaying, other_session;
    uint64_t refused_deaths; /* reports of deaths that no supervisor sent */
    int64_t refused_log_ns;  /* when the last one was logged */
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

/* Where checkpoints are. */
typedef struct wf_restore_from {
    wf_disk *disk;
    const char *checkpoint_dir;
    int64_t step; /* -1: the newest */
} wf_restore_from;

/* restore.c: the newest checkpoint that verifies, or the one of a step, or the first values where
 * there is none. On any thread. Errors: WF_MISMATCH for another model's; WF_CORRUPT where there are
 * some and none verifies. */
WF_MUST_USE wf_status wf_master_restore(const wf_restore_from *from, const wf_prepared *p,
                                        wf_restored *out, wf_err *err);
void wf_restored_free(wf_restored *r);

/* work.c: what the master begins. Only while m->busy is false: */
WF_MUST_USE wf_status wf_work_prepare(wf_master *m, const wf_job *j, wf_err *err);
WF_MUST_USE wf_status wf_work_restore(wf_master *m, const wf_job *j, int64_t from_step,
                                      wf_err *err);
/* What was journaled since the last sync goes to disk, if none is out. */
WF_MUST_USE wf_status wf_work_sync(wf_master *m, wf_err *err);

/* snapshot.c: the whole state as records, for the next batch; a log without one goes on. And what
 * only snapshots have, replayed. */
void wf_master_snapshot(wf_master *m);
void wf_snapshot_replay_retired(wf_master *m, const Weft__Retired *r);
void wf_snapshot_replay_job(wf_job *j, const Weft__JobState *r);

/* master.c */
WF_MUST_USE wf_status wf_master_send(wf_master *m, wf_peer *to, wf_msg **msg, wf_err *err);
/* What waits in the outbox, and may leave by now, leaves. */
WF_MUST_USE wf_status wf_master_release(wf_master *m, wf_err *err);
WF_MUST_USE wf_status wf_master_say(wf_master *m, wf_member *to, uint16_t kind,
                                    const ProtobufCMessage *body, wf_err *err);
/* A line for followers, logs and the job's events: `kind` is an event's name. */
void wf_master_note(wf_master *m, wf_job *j, const char *kind, const char *fmt, ...)
    WF_PRINTF(4, 5);

/* members.c */
void wf_members_retire(wf_master *m, uint64_t incarnation);
/* Whether an incarnation is among the last that were given up. */
bool wf_members_is_retired(const wf_master *m, uint64_t incarnation);
WF_MUST_USE wf_status wf_members_index(wf_master *m, wf_err *err);
wf_member *wf_member_of(wf_master *m, wf_task task);
wf_member *wf_member_at(wf_master *m, const wf_peer *peer);
WF_MUST_USE wf_status wf_members_on_up(wf_master *m, wf_peer *peer, wf_err *err);
void wf_members_on_down(wf_master *m, const wf_peer *peer);
WF_MUST_USE wf_status wf_members_on_register(wf_master *m, wf_member *who, const wf_msg *msg,
                                             wf_err *err);
/* `from` is who reports it. A report without the session of the task's supervisor changes nothing,
 * and is counted. */
WF_MUST_USE wf_status wf_members_on_died(wf_master *m, const wf_peer *from, const Weft__Died *died,
                                         wf_err *err);
/* Ends this life of a task that does not do its part; its process is told, and starts anew. */
WF_MUST_USE wf_status wf_members_give_up(wf_master *m, wf_member *who, const char *reason,
                                         wf_err *err);
/* progress.c */
void wf_progress_begin(wf_progress *p, int64_t now_ns);
WF_MUST_USE wf_status wf_progress_on_beat(wf_master *m, wf_member *who, const wf_msg *msg,
                                          wf_err *err);
/* Whether a task is to be given up for making no progress since `since_ns` at the earliest, or for
 * waiting too long; `reason` then says so. */
bool wf_progress_is_stuck(const wf_master *m, const wf_member *who, int64_t since_ns, char *reason,
                          size_t size);
/* Looks what the master waits for from a task; logs it when it is long, and asks again. */
void wf_progress_look(wf_master *m, wf_member *who);

/* unfit.c: a worker's start, or a step of it, has failed as `why` says: it costs the job that
 * worker, or the job fails. */
WF_MUST_USE wf_status wf_unfit_on_start(wf_master *m, wf_job *j, wf_member *who, const wf_err *why,
                                        wf_err *err);
WF_MUST_USE wf_status wf_unfit_on_fault(wf_master *m, wf_job *j, wf_member *who, const wf_err *why,
                                        wf_err *err);
/* Whether a worker has failed in this generation and does not train; whether it is not started in
 * it any more. */
bool wf_unfit_is(const wf_member *who, const wf_job *j);
bool wf_unfit_is_barred(const wf_member *who, const wf_job *j);
/* Has those started again whose time has come. */
void wf_unfit_advance(wf_master *m, wf_job *j);
/* The job ends with this fault; all tasks let go of it. */
WF_MUST_USE wf_status wf_job_fail(wf_master *m, wf_job *j, const wf_err *why, wf_err *err);

/* watch.c: gives up who has been silent for too long; once in each iteration. */
WF_MUST_USE wf_status wf_members_watch(wf_master *m, wf_err *err);
void wf_watch_begin(wf_watch *w, int64_t now_ns);
/* A message of a member came at that time. */
void wf_watch_received(const wf_master *m, wf_member *who, int64_t at_ns);
/* Announces a new view if membership has changed. */
WF_MUST_USE wf_status wf_members_view(wf_master *m, wf_err *err);
/* A view of the journal: its members count as live until they have been silent for too long. */
void wf_members_replay(wf_master *m, const Weft__View *view);
/* "ps/1, worker/0" of those that are not live, into text. */
const char *wf_members_missing(const wf_master *m, char *text, size_t size);
/* Fills a view of all live members; free with wf_view_free. */
WF_MUST_USE wf_status wf_view_make(const wf_master *m, Weft__View *out, wf_err *err);
/* The same of the live ps alone. */
WF_MUST_USE wf_status wf_view_of_ps(const wf_master *m, Weft__View *out, wf_err *err);
void wf_view_free(Weft__View *v);

/* Whether a worker has the job in hand, and a link over which it has said so. */
static inline bool wf_member_trains(const wf_member *who, const wf_job *j)
{
    return who->task.role == WF_ROLE_WORKER && who->live && who->registered && who->peer &&
           who->ready && who->generation == j->generation;
}
/* Notes, while the journal is replayed, that a worker was at `steps` in the generation in hand. */
void wf_members_replay_steps(wf_master *m, uint64_t incarnation, uint64_t steps);

/* facts.c */
const wf_facts *wf_master_facts(wf_master *m);

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
/* What was compiled is of no use any more. */
void wf_job_drop_prepared(wf_job *j);
/* Of a job that is over only numbers are kept: the epoch, and how much of it was trained. */
void wf_job_close_ledger(wf_job *j);
/* It ends as its owner asked. */
WF_MUST_USE wf_status wf_job_stop(wf_master *m, wf_job *j, wf_err *err);
WF_MUST_USE wf_status wf_job_advance(wf_master *m, wf_err *err);
WF_MUST_USE wf_status wf_job_on_fault(wf_master *m, wf_member *who, const wf_msg *msg, wf_err *err);
/* A member was given up: its splits go back, its cut and evaluation end. `death`: how its process
 * ended, if it is known to have. */
WF_MUST_USE wf_status wf_job_lost(wf_master *m, wf_member *who, const char *death, wf_err *err);
/* The job, as it is now, into the journal. */
WF_MUST_USE wf_status wf_job_journal(wf_master *m, const wf_job *j, wf_err *err);
/* A job's record for the journal, from its present state. */
void wf_job_record(const wf_job *j, Weft__JobRecord *r);

/* generation.c */
/* Has the job compiled, unless other work is under way. */
WF_MUST_USE wf_status wf_job_prepare(wf_master *m, const wf_job *j, wf_err *err);
/* A job was compiled, or could not be. On success the job takes *p, unless it is over or has
 * another text by now. */
WF_MUST_USE wf_status wf_job_on_prepared(wf_master *m, wf_job *j, uint32_t texts, wf_prepared **p,
                                         wf_status rc, const wf_err *why, wf_err *err);
/* All ps are live: has it found, and verified, what a new generation begins from. */
WF_MUST_USE wf_status wf_generation_begin(wf_master *m, wf_job *j, wf_err *err);
/* Where the next generation begins is known, or why it cannot. `entries` is the job's when the
 * search began. */
WF_MUST_USE wf_status wf_job_on_restored(wf_master *m, wf_job *j, uint64_t entries, wf_restored *r,
                                         wf_status rc, const wf_err *why, wf_err *err);
/* M4: a worker starts once every ps has set the generation up and has the view that holds it. */
WF_MUST_USE wf_status wf_generation_start(wf_master *m, wf_job *j, wf_err *err);
/* The answer to a set-up or a start. */
WF_MUST_USE wf_status wf_job_on_ready(wf_master *m, wf_member *who, const wf_msg *msg, wf_err *err);
/* How many records a worker found. */
WF_MUST_USE wf_status wf_job_take_records(wf_master *m, wf_job *j, uint64_t train, uint64_t eval,
                                          wf_err *err);

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
WF_MUST_USE wf_status wf_training_replay(wf_master *m, const Weft__EpochRecord *r, wf_err *err);
/* The open epoch, or that there is none, into the journal. */
WF_MUST_USE wf_status wf_training_journal(wf_master *m, const wf_job *j, wf_err *err);

/* The state of the job's callbacks as options of a message; rows and list have room for
 * WF_CALLBACKS_NUMBERS. */
size_t wf_training_callbacks(const wf_job *j, Weft__Option rows[], Weft__Option *list[]);
WF_MUST_USE wf_status wf_training_on_tuned(const wf_master *m, wf_member *who, const wf_msg *msg,
                                           wf_err *err);

/* The open epoch is evaluated: measures [n] of all its records, or `failed` says why it could not
 * be.
 */
WF_MUST_USE wf_status wf_training_evaluated(wf_master *m, wf_job *j, wf_measure measures[],
                                            uint32_t n, const char *failed, wf_err *err);

/* evaluation.c */
WF_MUST_USE wf_status wf_evaluation_advance(wf_master *m, wf_job *j, wf_err *err);
WF_MUST_USE wf_status wf_evaluation_on_result(wf_master *m, wf_job *j, wf_member *who,
                                              const wf_msg *msg, wf_err *err);
/* What a worker had of it is dealt again; whether it has a part of it; the end of it. */
void wf_evaluation_lost(wf_job *j, const wf_member *who);
bool wf_evaluation_asks(const wf_job *j, const wf_member *who);
void wf_evaluation_close(wf_job *j);

/* cuts.c */
WF_MUST_USE wf_status wf_cuts_advance(wf_master *m, wf_job *j, wf_err *err);
/* The open cut, if any, comes to nothing; workers go on. */
WF_MUST_USE wf_status wf_cuts_abort(wf_master *m, wf_job *j, wf_err *err);
/* A worker has a fresh link, and says that it holds for cut `holds` (0: for none): it is told what
 * became of that cut, or of the open one. */
WF_MUST_USE wf_status wf_cuts_on_register(wf_master *m, wf_job *j, wf_member *who, uint32_t holds,
                                          wf_err *err);
/* A worker that the open cut waits for is gone. */
WF_MUST_USE wf_status wf_cuts_lost(wf_master *m, wf_job *j, wf_member *who, wf_err *err);
/* For cut_end.c: a message of the open cut; the workers that hold go on; what the cut is, on disk;
 * the chief drops it; the job ends, done or stopped. */
WF_MUST_USE wf_status wf_cut_say(wf_master *m, wf_job *j, wf_member *to, uint16_t kind,
                                 const ProtobufCMessage *body, wf_err *err);
WF_MUST_USE wf_status wf_cut_resume(wf_master *m, wf_job *j, wf_err *err);
WF_MUST_USE wf_status wf_cut_journal(wf_master *m, const wf_job *j, bool committed, uint64_t step,
                                     wf_err *err);
WF_MUST_USE wf_status wf_cut_tell_abort(wf_master *m, wf_job *j, wf_err *err);
WF_MUST_USE wf_status wf_cut_end_job(wf_master *m, wf_job *j, wf_err *err);
WF_MUST_USE wf_status wf_cut_on_report(wf_master *m, wf_job *j, wf_member *who, const wf_msg *msg,
                                       wf_err *err);

/* cut_end.c */
WF_MUST_USE wf_status wf_cuts_on_message(wf_master *m, wf_member *who, const wf_msg *msg,
                                         wf_err *err);
/* The open cut has taken longer than it may. */
WF_MUST_USE wf_status wf_cut_overdue(wf_master *m, wf_job *j, wf_err *err);

/* asks.c */
WF_MUST_USE wf_status wf_asks_on_message(wf_master *m, wf_peer *from, const wf_msg *msg,
                                         wf_err *err);

#endif
