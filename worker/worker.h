/* SPDX-License-Identifier: Apache-2.0 */
/* worker/worker.h - the front door of worker: one worker's logic. It receives splits from the
 * master, pulls weights, asks for gradients to be computed, pushes them, and as chief drives
 * checkpoints.
 *
 *   IDLE --start--> TRAINING --cut open--> HOLDING --cut resume--> TRAINING
 *                   TRAINING --eval--> EVALUATING --done--> TRAINING
 *                   any --start of a newer generation--> TRAINING    any --halt--> IDLE
 *
 * No socket, no clock, no thread: events of a net and the time go in, messages go out through the
 * net. The shell does everything that takes time or touches files (plans, data, a step's
 * arithmetic), through wf_worker_ops: at once, inside the call, or later, as the simulator does.
 *
 * Invariants
 *   W1  a split is reported done only after every push of its records is acknowledged
 *   W2  a new step begins only outside a hold; a hold is reported once nothing is in flight
 *   W3  the weights of step t are those of invariant K1 (client.h), whatever the timing
 *   W4  training goes on with the splits in hand while the master is away, but for a worker that
 *       holds for a checkpoint: only the master ends a hold
 */
#ifndef WF_WORKER_WORKER_H
#define WF_WORKER_WORKER_H

#include "common/base/disk.h"
#include "common/base/status.h"
#include "common/metrics/measure.h"
#include "common/wire/control.pb-c.h"
#include "common/wire/net.h"
#include "common/wire/waiting.h"
#include "worker/client.h"
#include <stdbool.h>
#include <stdint.h>

typedef struct wf_worker wf_worker;

/* What the shell reports of a started job. */
typedef struct wf_worker_job {
    uint64_t batch; /* records of a step: of all batches whose gradients it accumulates */
    uint64_t train_records, eval_records;
    uint32_t pipeline;
    bool checksums;
} wf_worker_job;

/* The records of one step: positions [begin, end) of the epoch's order; `number` counts the split's
 * steps from its begin. */
typedef struct wf_batch_id {
    uint32_t epoch;
    uint64_t split, number, begin, end;
} wf_batch_id;

typedef struct wf_worker_ops {
    void *arg;
    /* Makes plans and data of a start ready; the worker owns `start` for as long as the job lasts.
     * Ends the job before. Errors are reported to the master. */
    wf_status (*start)(void *arg, const Weft__Start *start, wf_worker_job *out, wf_err *err);
    void (*halt)(void *arg);
    /* Announces records [begin, end) of a split: batches of them follow those of earlier calls. */
    wf_status (*read)(void *arg, const wf_batch_id *range, wf_err *err);
    /* Computes a step from the weights of `set`: wf_worker_gradient for each trainable variable as
     * it is final, then wf_worker_computed; during the call or later. */
    wf_status (*compute)(void *arg, uint32_t step, int set, const wf_batch_id *batch, wf_err *err);
    /* Evaluates records [begin, end) or as far as there are any, with the weights of `set`: ends in
     * wf_worker_evaluated, during the call or later. */
    wf_status (*evaluate)(void *arg, int set, uint64_t begin, uint64_t end, wf_err *err);
    /* A transport to a parameter server. */
    wf_status (*dial)(void *arg, wf_task task, const char *address, wf_transport **out,
                      wf_err *err);
} wf_worker_ops;

typedef struct wf_worker_conf {
    uint32_t index;
    uint64_t incarnation;
    wf_worker_ops ops;
    wf_disk *disk;                 /* for the manifest, when this worker is chief */
    int64_t progress_ns;           /* between two reports */
    const char *session;           /* of the supervisor that started this process; "": none did */
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
/* Begins steps, asks for splits and reports, as far as the state allows. Call after events, after a
 * computation ended, and when time has passed. */
WF_MUST_USE wf_status wf_worker_advance(wf_worker *w, int64_t now_ns, wf_err *err);

/* For the shell, inside compute: the buffer for the gradient of a variable, and the report that it
 * is final. */
float *wf_worker_gradient_buffer(wf_worker *w, uint32_t variable);
WF_MUST_USE wf_status wf_worker_gradient(wf_worker *w, uint32_t variable, wf_err *err);
const float *wf_worker_weights(const wf_worker *w, int set, uint32_t variable);
/* Drops the step in hand: none of its gradients was pushed, and none will be. wf_worker_computed
 * follows. */
WF_MUST_USE wf_status wf_worker_drop_step(wf_worker *w, wf_err *err);
/* The step in hand is computed; metrics [n] are sums over its records. */
WF_MUST_USE wf_status wf_worker_computed(wf_worker *w, uint32_t n, const wf_measure metrics[],
                                         wf_err *err);
/* The evaluation in hand is over; the data has `records` in all. It failed if why->status is not
 * WF_OK. */
WF_MUST_USE wf_status wf_worker_evaluated(wf_worker *w, uint64_t records, uint32_t n,
                                          wf_measure metrics[], const wf_err *why, wf_err *err);
/* A step or its data failed: the worker stands still, and reports this to the master. */
void wf_worker_fault(wf_worker *w, const wf_err *why);
/* Adds times of the shell, in nanoseconds, to the next report. */
void wf_worker_spent(wf_worker *w, uint64_t compute_ns, uint64_t wait_ns, uint64_t transfer_ns,
                     uint64_t data_ns);

/* The task's index. */
uint32_t wf_worker_index(const wf_worker *w);
/* The last step computed, and the generation: for the shell and tests. */
uint32_t wf_worker_step(const wf_worker *w);
uint16_t wf_worker_generation(const wf_worker *w);
/* The number of the job in hand. */
uint16_t wf_worker_job_number(const wf_worker *w);
/* The last step before a barrier: invariant K1 of client.h. */
uint32_t wf_worker_base(const wf_worker *w);
bool wf_worker_waits_for_weights(const wf_worker *w);
/* What this worker waits for, as of the last call of wf_worker_advance. */
void wf_worker_waiting(const wf_worker *w, wf_waiting *out);

#endif
