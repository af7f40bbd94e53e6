/* SPDX-License-Identifier: Apache-2.0 */
/* worker/worker.h - the front door of worker: one worker's logic. It receives splits from the
 * master, has steps computed from the weights of an exchange, and as chief drives checkpoints.
 *
 * Its life cycles are drawn in worker/life.h.
 *
 * No socket, no clock, no thread: events of a net and the time go in, messages go out through the
 * net. The shell does everything that takes time or reads data (plans, records, a step's
 * arithmetic): wf_worker_ops begins it, and an event, wf_worker_on_computed or
 * wf_worker_on_evaluated, says that it has ended.
 *
 * Invariants
 *   W1  a split is reported done only after every push of its records is acknowledged
 *   W2  a new step begins only outside a hold; a hold is reported once nothing is in flight
 *   W3  the weights of step t are those of invariant K1 (exchange.h), whatever the timing
 *   W4  training goes on with the splits in hand while the master is away, but for a worker that
 *       holds for a checkpoint: only the master ends a hold
 */
#ifndef WF_WORKER_WORKER_H
#define WF_WORKER_WORKER_H

#include "common/base/disk.h"
#include "common/base/status.h"
#include "common/data/learnt.h"
#include "common/metrics/measure.h"
#include "common/wire/control.pb-c.h"
#include "common/wire/net.h"
#include "common/wire/waiting.h"
#include "worker/exchange.h"
#include <stdbool.h>
#include <stdint.h>

typedef struct wf_worker wf_worker;

enum { WF_WORKER_AT_ONCE = 2 };

/* What the shell reports of a started job. */
typedef struct wf_worker_job {
    uint64_t batch; /* records of a step: of all batches whose gradients it accumulates */
    uint64_t train_records, eval_records; /* of data that grows: of the open round; 0: none is */
    uint64_t train_digest;                /* of all records to train */
    Weft__FileRecords *
        *files; /* [n_files], where the start asks for them; borrowed as `learnt` is */
    size_t n_files;
    const wf_learnt *learnt; /* [n_learnt]: for checkpoints; borrowed until the job's end */
    size_t n_learnt;
    uint32_t pipeline;
    uint32_t at_once; /* steps that the shell computes at a time: WF_WORKER_AT_ONCE at most, and 1
                       * unless there is a pipeline; 0: as 1 */
    bool checksums;
    bool tables; /* the rows that a step or a unit takes are to be named */
    wf_exchange_place place;
} wf_worker_job;

/* The records of one step: positions [begin, end) of the epoch's order; `number` counts the split's
 * steps from its begin. Of a split also the records that the order is of, as Split of
 * common/wire/control.proto has them. */
typedef struct wf_batch_id {
    uint32_t epoch;
    uint64_t split, number, begin, end;
    uint64_t order_begin, order_end;
} wf_batch_id;

/* A step to compute, and what came of it. */
typedef struct wf_train_step {
    wf_exchange *exchange; /* gives the weights of `set` and takes the gradients */
    uint32_t step;
    int set;
    uint16_t generation;
    bool lonely; /* no other can begin before it ends: none is in hand, and it ends its split */
    wf_batch_id batch;
} wf_train_step;

typedef struct wf_train_result {
    wf_err why;   /* status WF_OK: all gradients of the step are given to the exchange */
    bool dropped; /* none of its gradients was given, and none will be */
    uint32_t n_metrics;
    const wf_measure *metrics; /* [n_metrics], sums over the step's records; borrowed */
    uint64_t compute_ns, data_ns;
} wf_train_result;

/* A unit of an evaluation: records [begin, end) or as far as there are any. */
typedef struct wf_eval_unit {
    const wf_exchange *exchange;
    int set;
    uint64_t begin, end;
} wf_eval_unit;

typedef struct wf_eval_result {
    wf_err why;       /* status WF_OK: it was made */
    uint64_t records; /* of all the data */
    uint32_t n_metrics;
    wf_measure *metrics; /* [n_metrics], borrowed; keys may be put in order */
} wf_eval_result;

/* What a stage without a job of its own has of its worker. */
typedef struct wf_worker_of {
    wf_net *net;
    wf_disk *disk;
} wf_worker_of;

typedef struct wf_worker_ops {
    void *arg;
    /* Makes plans and data of a start ready; the worker owns `start` for as long as the job lasts.
     * Ends the job before. Errors are reported to the master. */
    wf_status (*start)(void *arg, const Weft__Start *start, wf_worker_job *out, wf_err *err);
    /* What is being computed or evaluated is forgotten with the job. */
    void (*halt)(void *arg);
    /* Of data that grows: has the job train the files of another round, once nothing of the last
     * one is under way; *out says what they hold. NULL: no job has such data. Errors: those of the
     * data. */
    wf_status (*open_round)(void *arg, const Weft__Round *round, wf_worker_job *out, wf_err *err);
    /* Announces records [begin, end) of a split: batches of them follow those of earlier calls. */
    wf_status (*read)(void *arg, const wf_batch_id *range, wf_err *err);
    /* Begins a step, which ends in wf_worker_on_computed; what is pointed to is copied. Where the
     * shell computes several steps at a time, the next one may begin before, and they end in their
     * order. */
    wf_status (*compute)(void *arg, const wf_train_step *step, wf_err *err);
    /* Has the rows of tables that a step takes named to the exchange, for a set. *known: its
     * records are known by now. NULL: jobs have no tables. Errors: those of the data. */
    wf_status (*name_step)(void *arg, wf_exchange *x, int set, uint32_t step, bool *known,
                           wf_err *err);
    /* The same of a unit of an evaluation; what is wrong with its data is told by the unit. */
    wf_status (*name_unit)(void *arg, wf_exchange *x, int set, uint64_t begin, uint64_t end,
                           wf_err *err);
    /* Begins a unit of an evaluation, which ends in wf_worker_on_evaluated. */
    wf_status (*evaluate)(void *arg, const wf_eval_unit *unit, wf_err *err);
    /* A link to another worker came up or is lost, or brought a message of the stages of a divided
     * model (common/wire/grammar.h): of this worker's job, or of one that another worker has. NULL:
     * there are no such models. Errors: WF_PROTO; what the job fails of. */
    wf_status (*on_stage)(void *arg, const wf_worker_of *of, const wf_event *ev, wf_err *err);
    /* A transport to a parameter server. */
    wf_status (*dial)(void *arg, wf_task task, const char *address, wf_transport **out,
                      wf_err *err);
} wf_worker_ops;

typedef struct wf_worker_conf {
    uint32_t index;
    uint64_t incarnation;
    wf_worker_ops ops;
    wf_disk *disk;       /* for the manifest, when this worker is chief */
    wf_pool *pool;       /* for updates in this process; NULL: one thread */
    int64_t progress_ns; /* between two reports */
    const char *session; /* of the supervisor that started this process; "": none did */
    uint64_t file_bytes; /* wf_exchange_conf.file_bytes */
    const char *fellows; /* where other workers dial this one; NULL or "": at its address */
    int64_t (*wall_ms)(void *arg); /* since 1970, for the manifest */
} wf_worker_conf;

/* A worker that the caller owns; the net is borrowed, `master` is the dialled peer in it. */
WF_MUST_USE wf_status wf_worker_new(const wf_worker_conf *conf, wf_net *net, wf_peer *master,
                                    wf_worker **out, wf_err *err);
void wf_worker_free(wf_worker **w);

/* Handles one event of the net; takes its message. Errors end the process: WF_SUPERSEDED when a
 * newer incarnation has this place, WF_TIMEOUT when the master has given this one up, and the
 * master's refusal of a hello. */
WF_MUST_USE wf_status wf_worker_on_event(wf_worker *w, wf_event *ev, int64_t now_ns, wf_err *err);
/* A message from one stage of a divided model to another, both on this worker: an event without a
 * peer, whose message stays the caller's. Errors: WF_NOMEM; WF_BROKEN, which ends the process. */
WF_MUST_USE wf_status wf_worker_on_stage(wf_worker *w, const wf_event *ev, int64_t now_ns,
                                         wf_err *err);
/* Begins steps, asks for splits and reports, as far as the state allows. Call after events, after a
 * computation ended, and when time has passed. Errors end the process: WF_BROKEN, WF_NOMEM. */
WF_MUST_USE wf_status wf_worker_advance(wf_worker *w, int64_t now_ns, wf_err *err);

/* The first of the steps that were begun is computed, or has failed: then the worker stands still
 * and reports that to the master, and the others are forgotten. */
WF_MUST_USE wf_status wf_worker_on_computed(wf_worker *w, const wf_train_result *r, wf_err *err);
/* The evaluation in hand is over. */
WF_MUST_USE wf_status wf_worker_on_evaluated(wf_worker *w, const wf_eval_result *r, wf_err *err);
/* A step or its data failed: the worker stands still, and reports this to the master. Or a device
 * of this process did (WF_BROKEN), without which others can go on: wf_worker_advance ends it then.
 */
void wf_worker_fault(wf_worker *w, const wf_err *why);
/* What a worker's time goes to, beside computing; in nanoseconds. */
typedef struct wf_worker_times {
    int64_t wait_ns, transfer_ns, data_ns;
} wf_worker_times;

/* Adds times of the shell to the next report. */
void wf_worker_spent(wf_worker *w, const wf_worker_times *spent);

/* The last step computed, the last one begun, and the generation: for the shell and tests. */
uint32_t wf_worker_step(const wf_worker *w);
uint32_t wf_worker_begun(const wf_worker *w);
uint16_t wf_worker_generation(const wf_worker *w);
/* The number of the job in hand. */
uint16_t wf_worker_job_number(const wf_worker *w);
/* The last step before a barrier: invariant K1 of exchange.h. */
uint32_t wf_worker_base(const wf_worker *w);
/* The clock of the step in hand, where workers wait for each other; 0: it is not among them now. */
uint32_t wf_worker_clock(const wf_worker *w);
/* The exchange of its job, borrowed until the worker is told anything; NULL: it has no job. */
const wf_exchange *wf_worker_exchange(const wf_worker *w);
bool wf_worker_waits_for_weights(const wf_worker *w);
/* What this worker waits for, as of the last call of wf_worker_advance. */
void wf_worker_waiting(const wf_worker *w, wf_waiting *out);

#endif
