/* SPDX-License-Identifier: Apache-2.0 */
/* master/master.h - the front door of master: jobs, members and views, splits, checkpoints.
 *
 * Its rooms, from the top; each sees those below it, and tests/unit/layers.c looks after that:
 *
 *   advance.c, the files beside it: what is due, and what follows in one room from another
 *   cut, epoch, generation, placement: none of the four knows another. A checkpoint on its way;
 *       splits and their evaluation; a job compiled, set up and started; which slice is on which ps
 *   job: the list of jobs, their records and events
 *   member: who lives, and the view; it knows no job
 *   core: the time, and the way out past the journal
 *   store, callbacks: journal and outbox; what follows from an evaluation
 *
 * What is decided follows from the state and not from the order of events: handlers note what they
 * learn, and wf_master_advance does whatever is due. No socket, no clock, no thread.
 *
 * What takes long (compiling, verifying checkpoints, syncing the journal) is work that the master
 * asks for: ops.begin gets it, wf_work_run does it on any thread, and wf_master_on_work brings the
 * result back. The master goes on meanwhile. Messages wait in an outbox until the journal's records
 * that were appended before them are on disk (M1).
 *
 * Invariants
 *   M1  a message or event leaves the process only once all that was journaled before it is on
 *       disk: so views, generations, finished splits and commits are, before they are announced
 *   M2  an incarnation that was given up, and had been told of a view, is never a member again: it
 *       says of which view it was a member, and the master knows its members. One that was never
 *       told has applied nothing and trained nothing; those of late are known by name
 *   M3  one chief at a time; only the chief's cut of this generation may be committed
 *   M4  a worker is started only once every ps has the view that holds it
 */
#ifndef WF_MASTER_MASTER_H
#define WF_MASTER_MASTER_H

#include "common/base/arena.h"
#include "common/base/disk.h"
#include "common/base/status.h"
#include "common/data/listing.h"
#include "common/tensor/named.h"
#include "common/tensor/tensor.h"
#include "common/wire/control.pb-c.h"
#include "common/wire/net.h"
#include "master/callbacks/callbacks.h"
#include <stdbool.h>
#include <stdint.h>

typedef struct wf_master wf_master;
typedef struct wf_strategy wf_strategy; /* common/compile/strategy.h */

/* A job as compiled: what every set-up and start of it begins with. */
typedef struct wf_prepared {
    wf_arena *arena;   /* of all that the two templates point to */
    Weft__Setup setup; /* without restore and view */
    Weft__Start start; /* without base_step and view */
    uint64_t batch;    /* records of a step */
    uint64_t epochs, steps, every_steps, split_records;
    uint32_t keep, every_seconds;
    int shard;                  /* a wf_shard_policy (common/conf) */
    uint64_t eval_unit;         /* records of an evaluation that a worker is given at a time */
    bool evaluates, rolls_back; /* rolls_back: when a step makes NaN */
    bool drains;                /* the pushes of a worker's pipeline, at the end of each split */
    bool in_step;               /* all workers make each step together */
    /* Data that grows: the patterns of its files, how often they are listed, how long a file must
     * have been as it is, and without how long the job is done (0: it waits for ever). */
    bool grows;
    const char *const *patterns;
    size_t n_patterns;
    int64_t poll_ns, settle_ns, idle_ns;
    bool predicts; /* splits become files of outputs: there are no variables, no checkpoints */
    /* Which hosts have files near: of paths that match, as fnmatch(3). */
    const struct wf_prepared_hosts {
        const char *match;
        const char *const *hosts; /* [n] */
        size_t n;
    } * hosts; /* [n_hosts] */
    size_t n_hosts;
    Weft__FileRecords **near; /* [n_near]: of a prediction, whose request says which records are
                               * near which of `hosts`: runs of records, as if they were files */
    size_t n_near;
    bool balances;       /* slices are moved from ps with more traffic than others */
    double balance_over; /* how much, against the mean, is too much; and for how long */
    int64_t balance_after_ns;
    wf_callbacks callbacks;
    const wf_strategy *strategy;
    const wf_tensor *const *initial; /* first values of start.variables, f32; data NULL: a ps
                                        computes them */
    const wf_named_list *optimizer;  /* whose state the first values have beside them (list_initial
                                        of generation/restore.c); borrowed; NULL: it begins anew */
    uint32_t shares;                 /* of work that reads it, beside the job */
} wf_prepared;
/* Gives one share back; the last one frees. On the master's thread. */
void wf_prepared_free(wf_prepared **p);

/* Something that takes long, begun by the master and done elsewhere. */
typedef struct wf_work wf_work;
/* Does it; on any thread. */
void wf_work_run(wf_work *w);
/* Whether it is a sync of the journal, which messages wait for; what is not may take minutes. At
 * most one of each is out at a time. */
bool wf_work_is_sync(const wf_work *w);
/* Frees work whose master is gone, done or not; NULL is fine. */
void wf_work_free(wf_work **w);

typedef struct wf_master_ops {
    void *arg;
    /* Takes work, which is given back to wf_master_on_work once wf_work_run has returned. NULL: the
     * master does it itself, at once. */
    void (*begin)(void *arg, wf_work *w);
    /* Compiles a job; called by wf_work_run. Errors end the job. */
    wf_status (*prepare)(void *arg, const char *job, const char *text, const char *path,
                         wf_prepared **out, wf_err *err);
    /* The files that patterns name, in the arena, as wf_data_list (common/data/listing.h); called
     * by wf_work_run. Errors: the job waits, and they are shown. */
    wf_status (*list)(void *arg, const char *const patterns[], size_t n, wf_arena *a,
                      wf_listed **out, size_t *n_out, wf_err *err);
    /* An event for the job's log: `json` is one object without time. */
    void (*note)(void *arg, const char *job, const char *json);
    /* A job is removed: its folders are to go, when the events before have been written. NULL: it
     * has none. */
    void (*forget)(void *arg, const char *job);
} wf_master_ops;

typedef struct wf_master_task {
    wf_task task;
    const char *address;
} wf_master_task;

typedef struct wf_master_conf {
    uint64_t incarnation;
    const char *session;         /* of the supervisor: another one means that all had ended */
    const wf_master_task *tasks; /* [n_tasks], ps and workers; copied */
    uint32_t n_tasks;
    wf_disk *disk;
    const char *journal_dir, *checkpoint_dir;
    size_t journal_least; /* bytes of log that are worth a snapshot; 0: the journal's own choice */
    int64_t dead_ns;      /* silence after which a task is given up, and its leases end */
    int64_t stuck_ns;     /* without progress for so long it is given up as well */
    int64_t cut_ns;       /* a checkpoint that takes longer has failed */
    wf_master_ops ops;
} wf_master_conf;

/* A master that the caller owns, with its journal replayed. `now_ns` is when the members of the
 * last view are taken to have been heard of. Errors: WF_IO, WF_CORRUPT, WF_NOMEM. The net is set
 * with wf_master_set_net before any event. */
WF_MUST_USE wf_status wf_master_new(const wf_master_conf *conf, int64_t now_ns, wf_master **out,
                                    wf_err *err);
void wf_master_set_net(wf_master *m, wf_net *net);
void wf_master_free(wf_master **m);

/* For wf_net_conf.admit. */
wf_status wf_master_admit(void *master, const wf_hello *hello, wf_err *err);

/* For wf_net_conf.on_refused: why a task is not let in is what is shown of it. */
void wf_master_on_refused(void *master, const wf_hello *hello, const wf_err *why);

/* For wf_net_conf.on_stranger: a beat of a member without a link, as after a restart of the master,
 * counts as one over a link does. */
void wf_master_on_stranger(void *master, const wf_msg *beat, int64_t now_ns);

/* Handles one event of the net; takes its message. Errors end the process: the journal failed. */
WF_MUST_USE wf_status wf_master_on_event(wf_master *m, wf_event *ev, int64_t now_ns, wf_err *err);
/* Takes back work that is done. Errors as above. */
WF_MUST_USE wf_status wf_master_on_work(wf_master *m, wf_work **w, int64_t now_ns, wf_err *err);
/* Does what is due. Call after events, and at least every 100 ms. */
WF_MUST_USE wf_status wf_master_advance(wf_master *m, int64_t now_ns, wf_err *err);

/* What changes as a job goes on, for whoever looks after it in this process. */
typedef struct wf_job_marks {
    const char *state; /* static */
    bool is_over;
    uint32_t epoch; /* from 1; 0: none yet */
    uint32_t eval_epoch;
    int64_t checkpoint; /* the newest one's step, or -1 */
} wf_job_marks;
/* False when there is no such job. */
bool wf_master_marks(const wf_master *m, const char *job, wf_job_marks *out);

/* The number of a job's newest run; 0 when it has none; -1 when there is no such job. */
int64_t wf_master_newest_run(const wf_master *m, const char *job);

/* What clients ask for. `job` is the name of a run, or of a job: then its newest run is meant.
 * Submits a job's text as a run of that name, which there is not yet unless `resume` is set.
 * Errors: WF_EXISTS, also when another run of the job is not over; WF_USAGE; WF_IO and WF_NOMEM end
 * the master. */
WF_MUST_USE wf_status wf_master_submit(wf_master *m, const char *job, const char *text,
                                       const char *path, bool resume, wf_err *err);
/* Stops a job with a checkpoint. Errors: WF_NOTFOUND; WF_INVALID when it is over. */
WF_MUST_USE wf_status wf_master_stop(wf_master *m, const char *job, wf_err *err);
/* Changes numbers of a job that is over: `set` [n] as "KEY=VALUE"; a recovery then goes on with
 * them, from step from_step or from the latest checkpoint (-1), or takes them back if the job does
 * not compile with them. Errors: WF_NOTFOUND, WF_EXISTS while it runs, WF_USAGE for what may not
 * change, WF_MISMATCH for an optimizer whose state the checkpoints lack. */
WF_MUST_USE wf_status wf_master_change(wf_master *m, const char *job, int64_t from_step, size_t n,
                                       char *const set[], wf_err *err);
WF_MUST_USE wf_status wf_master_recover(wf_master *m, const char *job, int64_t from_step,
                                        wf_err *err);

/* Removes a run that is over, and its files. Of one that the master does not know, whose journal is
 * another or gone, the files go. Errors: WF_EXISTS when it is not over, WF_USAGE. */
WF_MUST_USE wf_status wf_master_forget(wf_master *m, const char *job, wf_err *err);

/* What the whole cluster looks like, as JSON; the caller frees it. NULL when there is no memory. */
char *wf_master_status(const wf_master *m, int64_t now_ns);

/* For tests. */
const char *wf_master_job_state(const wf_master *m, const char *job);
uint32_t wf_master_view(const wf_master *m);
/* Whether it counts an incarnation among the members that live. */
bool wf_master_has(const wf_master *m, uint64_t incarnation);
/* Whether all that it has decided is on disk. */
bool wf_master_durable(const wf_master *m);

#endif
