/* SPDX-License-Identifier: Apache-2.0 */
/* master/master.h - the front door of master: jobs, members and views, splits, checkpoints.
 *
 * A job:   QUEUED --> COMPILING --> WAITING --ps and a worker live--> SETTING_UP --> RUNNING
 *          RUNNING --a ps dies--> RECOVERING --all ps live--> SETTING_UP (generation + 1)
 *          RUNNING --asked to stop--> STOPPING --last checkpoint--> STOPPED
 *          RUNNING --all epochs, last checkpoint--> DONE        any --> FAILED
 * After a restart of the master a running job is RESUMING until its ps have said what they hold.
 *
 * What is decided follows from the state and not from the order of events: handlers note what they
 * learn, and wf_master_advance does whatever is due. No socket, no clock, no thread; the journal is
 * written through a wf_disk.
 *
 * Invariants
 *   M1  views, generations, finished splits and commits are on disk before they are announced
 *   M2  an incarnation that was given up is never a member again
 *   M3  one chief at a time; only the chief's cut of this generation may be committed
 *   M4  a worker is started only once every ps has the view that holds it
 */
#ifndef WF_MASTER_MASTER_H
#define WF_MASTER_MASTER_H

#include "common/base/arena.h"
#include "common/base/disk.h"
#include "common/base/status.h"
#include "common/tensor/tensor.h"
#include "common/wire/control.pb-c.h"
#include "common/wire/net.h"
#include "master/callbacks.h"
#include <stdbool.h>
#include <stdint.h>

typedef struct wf_master wf_master;

/* A job as compiled: what every set-up and start of it begins with. */
typedef struct wf_prepared {
    wf_arena *arena;   /* of all that the two templates point to */
    Weft__Setup setup; /* without restore and view */
    Weft__Start start; /* without base_step and view */
    uint64_t batch;    /* records of a step */
    uint64_t epochs, steps, every_steps, split_records;
    uint32_t keep;
    bool evaluates, rolls_back; /* rolls_back: when a step makes NaN */
    wf_callbacks callbacks;
    const wf_tensor *const *initial; /* first values of start.variables, f32 */
} wf_prepared;
void wf_prepared_free(wf_prepared **p);

typedef struct wf_master_ops {
    void *arg;
    /* Compiles a job for n_ps. Errors end the job. */
    wf_status (*prepare)(void *arg, const char *job, const char *text, const char *path,
                         wf_prepared **out, wf_err *err);
    /* An event for the job's log: `json` is one object without time. */
    void (*note)(void *arg, const char *job, const char *json);
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
    int64_t dead_ns; /* silence after which a task is given up, and its leases end */
    int64_t cut_ns;  /* a checkpoint that takes longer has failed */
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

/* Handles one event of the net; takes its message. Errors end the process: the journal failed. */
WF_MUST_USE wf_status wf_master_on_event(wf_master *m, wf_event *ev, int64_t now_ns, wf_err *err);
/* Does what is due. Call after events, and at least every 100 ms. */
WF_MUST_USE wf_status wf_master_advance(wf_master *m, int64_t now_ns, wf_err *err);

/* A job's text as a submit asks for it; for tests and the simulator. */
WF_MUST_USE wf_status wf_master_submit(wf_master *m, const char *job, const char *text,
                                       const char *path, bool resume, wf_err *err);
/* Changes numbers of a job that is over: `set` [n] as "KEY=VALUE"; a recovery then goes on with
 * them. Errors: WF_NOTFOUND, WF_EXISTS while it runs, WF_USAGE for what may not change. */
WF_MUST_USE wf_status wf_master_change(wf_master *m, const char *job, size_t n, char *const set[],
                                       wf_err *err);
WF_MUST_USE wf_status wf_master_recover(wf_master *m, const char *job, int64_t from_step,
                                        wf_err *err);

/* What the whole cluster looks like, as JSON; the caller frees it. NULL when there is no memory. */
char *wf_master_status(const wf_master *m, int64_t now_ns);

/* For tests. */
const char *wf_master_job_state(const wf_master *m, const char *job);
uint32_t wf_master_view(const wf_master *m);

#endif
