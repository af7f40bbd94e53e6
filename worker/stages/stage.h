/* SPDX-License-Identifier: Apache-2.0 */
/* worker/stages/stage.h - a stage of a model that is divided among workers: its part of the graph,
 * its variables, and what it does in a round.
 *
 * The worker of the first stage has the job. It starts the others, and tells them of each round: a
 * training step, which is divided into micro-batches, or a unit of an evaluation. In a round a
 * stage takes the micro-batches in the order of schedule.h, each action as soon as what it takes
 * has come in. What it makes for other stages goes there at once. At the end of a step each stage
 * updates its variables by the mean of the gradients of all micro-batches, and says so to the
 * first. With `global_clipnorm` or `on_nan: skip` it waits before that for all other stages
 * (agree.c).
 *
 * A start with a request predicts (predict.c): a round is a split or a part of one, its
 * micro-batches go forward alone, and the first stage takes their results in their order, as they
 * come. Variables are constants, read of the checkpoint that the request names.
 *
 * In the header of each, `view` is the number of the stage that sends it, and `map` of that which
 * it is for.
 *
 *   stage_start   first -> other   its part of the start, packed as WF_START is
 *   stage_ready   other -> first   it can begin; an outcome
 *   stage_round   first -> other   `step` is the round's number
 *   stage_value   any   -> any     one part: `step` is the round, `request` the edge, `cut` the
 *                                  micro-batch
 *   stage_sums    other -> first   `step` is the round; what its gradients come to
 *   stage_apply   first -> other   `step` is the round; whether to apply it, and by which norm
 *   stage_done    other -> first   `step` is the round; an outcome
 *   stage_save    first -> other   `cut`; a folder
 *   stage_saved   other -> first   the file
 *   stage_tune    first -> other   a learning rate
 *   stage_stop    first -> other   the stage ends
 *
 * So an edge's rendezvous key is the job and the generation, the round, the micro-batch, the edge's
 * number, and the sender's incarnation, all in the header. Links between two incarnations are in
 * order and complete; when one is lost, what was on it is, and with it the generation.
 *
 * Invariants
 *   T1  what a round gives depends on its records alone: gradients are added up in the order of the
 *       micro-batches, whichever message came first
 *   T2  a value comes in once for each micro-batch, of the bytes that its edge has for the records
 *   T3  no round begins before all stages have ended the one before
 *   T4  where stages agree on a step, none updates before all have their gradients, and all do the
 *       same: a step is dropped whole
 *
 * A worker may have several stages, each on a device of its own. Messages between them wait in a
 * list (links.h), and are taken as those of other workers are.
 *
 * Threading: belongs to the thread of its worker; what it computes may be on another one
 * (conf.threads), which touches nothing that messages change.
 */
#ifndef WF_WORKER_STAGES_STAGE_H
#define WF_WORKER_STAGES_STAGE_H

#include "common/data/reader.h"
#include "common/kernels/pool.h"
#include "common/wire/net.h"
#include "worker/exchange.h"
#include "worker/stages/links.h"

enum { WF_STAGE_ROUND_MOST = 4096 }; /* micro-batches of a round, at most */

typedef struct wf_stage wf_stage;

/* What a stage computes with: borrowed for its life. */
typedef struct wf_stage_conf {
    const Weft__Start *start;
    wf_stage_links *links;
    const wf_device *device;
    wf_pool *pool;
    /* Where the worker has several stages, each computes on a thread of its own, with a pool of
     * `threads`, and tells of it on fd, an eventfd. 0: on the caller's thread. */
    uint32_t threads;
    int fd;
    /* Of the first stage: its data, and who reads it. The next batch of the round, given back by
     * `release` before another one is asked for. */
    const wf_dataset *train, *eval;
    wf_status (*read)(void *arg, bool trains, const wf_batch **out, wf_err *err);
    void (*release)(void *arg, bool trains, const wf_batch **batch);
    /* Whether the results of the step under way are finite; asked where others are dropped. */
    bool (*is_finite)(void *arg);
    /* Of a prediction, in place of the data: a graph whose inputs are the fields of batches, of
     * which those that nobody feeds have no data; and who takes the outputs of each micro-batch, in
     * the order of micro-batches. */
    const wf_graph *predicted;
    wf_status (*take)(void *arg, uint32_t batch, const void *const outputs[], wf_err *err);
    void *arg;
} wf_stage_conf;

/* A round, for the first stage to begin. */
typedef struct wf_stage_round {
    bool trains;
    uint32_t step;
    const uint32_t *records; /* [n]: of each micro-batch; copied */
    uint32_t n;
    uint64_t epoch, split, number; /* of the first micro-batch: what random numbers go by */
} wf_stage_round;

/* The elements of what an edge brings, of so many records. Errors: WF_PROTO. */
WF_MUST_USE wf_status wf_stage_edge_elems(const Weft__StageEdge *e, uint64_t records, int64_t *out,
                                          wf_err *err);

/* Makes the plans of the graphs; the caller owns *out. Errors: those of graphs and plans; WF_PROTO;
 * WF_NOMEM, which says how much. */
WF_MUST_USE wf_status wf_stage_new(const wf_stage_conf *conf, wf_stage **out, wf_err *err);
/* The first stage tells the others to stop. NULL is fine. */
void wf_stage_free(wf_stage **s);
/* What the first stage's exchange does by its stage. Valid as long as the stage. */
const wf_exchange_stages *wf_stage_exchange(wf_stage *s);
/* Another stage begins: opens its variables, and dials later stages. Errors: those of values; of
 * dialling. */
WF_MUST_USE wf_status wf_stage_begin(wf_stage *s, const wf_exchange_conf *conf, wf_err *err);

/* Whether a message or a link is of this stage's job and generation. */
bool wf_stage_is_for(const wf_stage *s, const wf_msg *m);
/* A message of another stage's worker, or of another stage of this one (from: NULL). Errors:
 * WF_PROTO for one that is dropped; of the first stage also what another one reports, and WF_AGAIN
 * when the generation cannot go on. */
WF_MUST_USE wf_status wf_stage_on_message(wf_stage *s, const wf_peer *from, const wf_msg *m,
                                          wf_err *err);
/* A link came up or is lost. Errors: WF_AGAIN of the first stage. */
WF_MUST_USE wf_status wf_stage_on_link(wf_stage *s, const wf_peer *peer, bool up, wf_err *err);

/* The first stage begins a round. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_stage_begin_round(wf_stage *s, const wf_stage_round *round, wf_err *err);
/* Whether something can be done now. */
bool wf_stage_can_work(const wf_stage *s);
/* Does one thing that can be: an action of the round, or its end. What goes wrong at another stage
 * than the first is told there. Errors: of the first stage, what went wrong in the round. */
WF_MUST_USE wf_status wf_stage_work(wf_stage *s, wf_err *err);
/* Whether a round is under way; of the first stage, until all stages have ended it. */
bool wf_stage_is_busy(const wf_stage *s);
/* After a step of the first stage: whether all stages have dropped it. */
bool wf_stage_is_dropped(const wf_stage *s);
/* After a round of the first stage, or in conf.is_finite: output number `output` of micro-batch
 * `batch`, its elements, and the type of them. NULL: the graph does not give it. */
const void *wf_stage_result(const wf_stage *s, uint32_t output, uint32_t batch, wf_dtype *dtype,
                            size_t *elems);

#endif
