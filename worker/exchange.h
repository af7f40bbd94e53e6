/* SPDX-License-Identifier: Apache-2.0 */
/* worker/exchange.h - how a worker exchanges variables: it asks for the weights of a step and gives
 * the gradients of a step, and an exchange brings both to the place where the variables live. One
 * row and one file for each place: parameter servers (exchange/ps.c), this process
 * (exchange/local.c), each device of this process (exchange/mirrored.c), each worker
 * (exchange/ring.c), tables on parameter servers and all others in each worker (exchange/hybrid.c),
 * a part of them in each worker (exchange/divided.c), nowhere, for a job that has none
 * (exchange/none.c).
 *
 * A set of weights holds one contiguous buffer for each variable. A frozen variable, which never
 * changes, is the same in all sets. Gradient buffers belong to the exchange: a kernel writes
 * straight into one, and none is written again while anybody still reads it.
 *
 * Weights are memory of the host, or of the worker's device where the variables live on it:
 * wf_exchange_home says which, also before an exchange is open, for plans are made then. So are the
 * buffers of gradients, but for those that leave the worker: they are the host's
 * (wf_exchange_sends).
 *
 * Steps are numbered from 1 and end in their order. A step is acknowledged once the variables hold
 * all its pushes: a checkpoint that is taken then has them.
 *
 * Invariants
 *   K1  the weights of step t hold this worker's own pushes up to max(base, t - 1 - pipeline),
 *       where base is the last step before a barrier (start, cut, epoch): exactly up to there.
 *       Weights that are asked for again, because an answer was lost with a link or after
 *       wf_exchange_leave, hold them up to t - 1, and so do those of an exchange without links
 *
 * Threading: belongs to the thread of its worker; the trainer uses it inside its own calls.
 */
#ifndef WF_WORKER_EXCHANGE_H
#define WF_WORKER_EXCHANGE_H

#include "common/base/disk.h"
#include "common/base/status.h"
#include "common/kernels/group.h"
#include "common/kernels/pool.h"
#include "common/kernels/update.h"
#include "common/tensor/device.h"
#include "common/wire/control.pb-c.h"
#include "common/wire/net.h"
#include "common/wire/waiting.h"
#include <stdbool.h>
#include <stdint.h>

enum {
    WF_MAX_PIPELINE = 2,
    WF_STEP_SETS = 1 + WF_MAX_PIPELINE, /* of training: a step has number step % WF_STEP_SETS */
    WF_EVAL_SET = WF_STEP_SETS,
    WF_WEIGHT_SETS
};

enum { WF_FILE_BYTES = 256 << 10 };

/* wf_var_kind of common/graph, as the wire carries it. */
enum { WF_KIND_TRAINABLE = 1, WF_KIND_STATISTIC = 2, WF_KIND_FROZEN = 3 };

typedef struct wf_exchange wf_exchange;
typedef struct wf_exchange_conf wf_exchange_conf;

/* Of a model that is divided among workers: what the worker of the first stage does for all of them
 * (worker/stages/stage.h). */
typedef struct wf_exchange_stages {
    void *arg;
    /* Opens this stage's variables and has the other workers begin; x is the exchange that is told
     * of checkpoints. `conf` lasts as the exchange does. Errors: as wf_exchange_open. */
    wf_status (*open)(void *arg, const wf_exchange_conf *conf, wf_exchange *x, wf_err *err);
    /* Whether all have begun. Errors: what one of them says. */
    wf_status (*ready)(const void *arg, bool *ready, wf_err *err);
    wf_status (*save)(void *arg, wf_err *err);
    wf_status (*tune)(void *arg, double learning_rate, wf_err *err);
    void (*name_late)(const void *arg, wf_waiting *out);
} wf_exchange_stages;

/* What a worker has for variables beside the memory of the host; all NULL: nothing. */
typedef struct wf_exchange_place {
    const wf_device *device; /* its first, if that updates variables */
    const wf_device_updates *updates;
    const wf_device *const *others; /* [n_others], borrowed: those of replicas behind the first */
    uint32_t n_others;
    const wf_device_groups *groups;   /* of these devices; NULL: they add up nothing */
    const wf_exchange_stages *stages; /* of a model that is divided; else NULL */
} wf_exchange_place;

struct wf_exchange_conf {
    const Weft__Start *start; /* variables, slices, optimizer, and where first values are */
    wf_net *net;
    wf_peer *const *ps; /* [n_ps], copied: those that are dialled */
    uint32_t n_ps;
    uint16_t job, generation;
    uint32_t map, view, pipeline;
    bool checksums;       /* of payloads sent: off on one host */
    uint64_t incarnation; /* this worker's */
    wf_disk *disk;
    wf_pool *pool; /* for updates; NULL: the caller's thread alone */
    wf_exchange_place place;
    uint64_t file_bytes; /* where several workers can write a checkpoint's files: so many in each at
                          * least; 0: WF_FILE_BYTES */
    bool is_part;        /* of one whose variables are in two: it has those of its kind alone
                          * (Weft__Variable.on_workers) */
};

/* Something that a worker waits for an exchange to bring. */
typedef enum wf_exchange_wait {
    WF_EXCHANGE_WEIGHTS, /* of a set */
    WF_EXCHANGE_FROZEN,
    WF_EXCHANGE_ACKS /* of a step */
} wf_exchange_wait;

/* A checkpoint's files that an exchange writes. */
typedef struct wf_exchange_save {
    uint32_t cut; /* its number; 0: none is being written */
    char *folder;
    uint32_t n; /* files */
    struct wf_exchange_shard {
        wf_task writer;
        bool copied;         /* later pushes do not change what the file will hold */
        Weft__Saved *result; /* NULL: not known yet; it says what went wrong, if something did */
    } * shards;              /* [n] */
} wf_exchange_save;

/* What an exchange can do. A NULL function has nothing to do for it. */
typedef struct wf_exchange_ops {
    void (*free)(wf_exchange *x);
    wf_status (*on_view)(wf_exchange *x, const Weft__View *view, uint32_t number, wf_err *err);
    wf_status (*on_up)(wf_exchange *x, const wf_peer *peer, wf_err *err);
    void (*on_down)(wf_exchange *x, const wf_peer *peer);
    wf_status (*on_message)(wf_exchange *x, const wf_peer *from, const wf_msg *m, int64_t now_ns,
                            wf_err *err);
    wf_status (*retry)(wf_exchange *x, int64_t now_ns, wf_err *err);
    wf_status (*name_rows)(wf_exchange *x, int set, uint32_t variable, const uint64_t ids[],
                           uint64_t n, wf_err *err);
    wf_status (*want)(wf_exchange *x, int set, uint32_t step, wf_err *err);
    bool (*ready)(const wf_exchange *x, int set);
    wf_exchange *(*of_replica)(wf_exchange *x, uint32_t replica); /* NULL: x for all */
    const float *(*weights)(const wf_exchange *x, int set, uint32_t variable);
    void (*begin_step)(wf_exchange *x, uint32_t step, uint32_t records);
    float *(*gradient)(wf_exchange *x, uint32_t step, uint32_t variable);
    wf_status (*push)(wf_exchange *x, uint32_t step, uint32_t variable, wf_err *err);
    wf_status (*squares)(wf_exchange *x, const bool of[], double out[], wf_err *err);
    void (*clip_by)(wf_exchange *x, double norm);
    wf_status (*drop_step)(wf_exchange *x, uint32_t step, wf_err *err);
    wf_status (*end_step)(wf_exchange *x, uint32_t step, wf_err *err);
    wf_status (*leave)(wf_exchange *x, wf_err *err);
    wf_status (*tune)(wf_exchange *x, double learning_rate, wf_err *err);
    uint32_t (*count_shards)(const wf_exchange *x);
    wf_status (*save)(wf_exchange *x, wf_err *err); /* as x->saving says */
    uint32_t (*frozen_left)(const wf_exchange *x);
    void (*name_late)(const wf_exchange *x, wf_exchange_wait wait, uint32_t of, wf_waiting *out);
} wf_exchange_ops;

/* The head of every exchange, which each keeps up to date. */
struct wf_exchange {
    const wf_exchange_ops *ops;
    uint32_t begun;                    /* the last step that has asked for a gradient buffer */
    uint32_t acked;                    /* all steps up to it are acknowledged */
    uint32_t base;                     /* K1 */
    uint32_t set_step[WF_WEIGHT_SETS]; /* whose weights a set holds or waits for; 0: none */
    uint32_t late;  /* steps that may be unacknowledged when one begins, beside the pipeline's */
    bool is_in;     /* this worker is among those who wait for each other (ps/clocks.h) */
    uint32_t shift; /* then: the clock of a step, minus the step's number, modulo 2^32 */
    uint64_t rows_named, rows_cached; /* of tables with a cache, since the last report */
    /* What pushes have come to since the last report, and would have as float32: numbers alone. */
    uint64_t pushed_bytes, plain_bytes;
    wf_exchange_save saving;
    wf_device_event *written; /* what reads weights in memory of a device begins behind it, and what
                               * writes gradients there; NULL: none lie there */
};

/* One way to exchange variables, by the name that a job's `strategy` gives it. */
typedef struct wf_exchange_kind {
    const char *name;
    bool mirrors; /* each device of a worker has a replica of the model */
    bool ahead;   /* with a pipeline, weights of a step come before the step before it has ended */
    bool sends;   /* gradients leave the worker */
    wf_status (*open)(const wf_exchange_conf *conf, wf_exchange **out, wf_err *err);
    /* As wf_exchange_home, of a device that is not NULL; NULL: all variables are the host's. */
    const wf_device *(*home)(const Weft__Start *start, const wf_device *device, uint32_t variable);
    size_t (*device_bytes)(const Weft__Start *start, const wf_device *device);
} wf_exchange_kind;

extern const wf_exchange_kind wf_exchange_divided, wf_exchange_hybrid, wf_exchange_local,
    wf_exchange_mirrored, wf_exchange_none, wf_exchange_ps, wf_exchange_ring;

/* Opens the exchange that conf->start names; the caller owns *out. What conf points to is borrowed
 * for its life, but for `ps`. Errors: WF_PROTO for a name that this weft does not know, and for
 * slices that lie outside their variables; WF_NOMEM; of values that are read here, those of
 * checkpoints. */
WF_MUST_USE wf_status wf_exchange_open(const wf_exchange_conf *conf, wf_exchange **out,
                                       wf_err *err);
void wf_exchange_free(wf_exchange **x);
/* Whose memory a variable is, in a worker with that place: the device's, or the host's (wf_cpu). */
const wf_device *wf_exchange_home(const Weft__Start *start, const wf_device *device,
                                  uint32_t variable);
/* Whether gradients leave the worker: their buffers are memory of the host, wherever the variables
 * live, and each worker's are clipped before they leave. */
bool wf_exchange_sends(const Weft__Start *start);
/* Whether each device of a worker computes with a replica of the model. */
bool wf_exchange_mirrors(const Weft__Start *start);
/* Whether the weights of a step may come before the step before it has ended (K1), and workers do
 * not wait for each other. */
bool wf_exchange_comes_ahead(const Weft__Start *start);
/* The bytes of the device that variables will take when an exchange is opened. */
size_t wf_exchange_device_bytes(const Weft__Start *start, const wf_device *device);

/* The master has told who exchanges gradients with this worker, in a view of that number, which
 * grows. A link to each is told as one that is fresh afterwards. Errors: WF_AGAIN if nobody has the
 * variables any more, here and in whatever else may tell; WF_UNSUPPORTED for too many; WF_PROTO;
 * WF_NOMEM. */
WF_MUST_USE wf_status wf_exchange_on_view(wf_exchange *x, const Weft__View *view, uint32_t number,
                                          wf_err *err);
/* A link to `peer` is fresh: what it may have missed is sent again. Errors: WF_BROKEN if that
 * cannot be; WF_NOMEM. */
WF_MUST_USE wf_status wf_exchange_on_up(wf_exchange *x, const wf_peer *peer, wf_err *err);
/* The link to `peer` is lost; a peer that was accepted is gone after the call. */
void wf_exchange_on_down(wf_exchange *x, const wf_peer *peer);
/* A message of a peer that the exchange talks to. Errors: WF_PROTO. */
WF_MUST_USE wf_status wf_exchange_on_message(wf_exchange *x, const wf_peer *from, const wf_msg *m,
                                             int64_t now_ns, wf_err *err);
/* Asks again where an answer is due; to be called as time passes. */
WF_MUST_USE wf_status wf_exchange_retry(wf_exchange *x, int64_t now_ns, wf_err *err);

/* Names the rows of a table that `set` is to hold: ids [n], of an unbounded table keys, distinct
 * and rising, copied. To be called for each table before wf_exchange_want of the set. Its weights
 * are then [n][row], in the order of the ids, and gradients of the set's step as well. Errors:
 * WF_NOMEM, WF_USAGE for ids that are not so, or beyond the table. */
WF_MUST_USE wf_status wf_exchange_name_rows(wf_exchange *x, int set, uint32_t variable,
                                            const uint64_t ids[], uint64_t n, wf_err *err);
/* Asks for the weights of `step` into `set`; its content is lost. */
WF_MUST_USE wf_status wf_exchange_want(wf_exchange *x, int set, uint32_t step, wf_err *err);
/* Forgets what a set was asked for. */
void wf_exchange_drop(wf_exchange *x, int set);
/* Whether a set holds all weights that it was asked for. */
bool wf_exchange_ready(const wf_exchange *x, int set);
/* What a replica of the model reads its weights from and has its gradients' buffers of, also for
 * x->written: x itself where variables are the host's, and for the first. Gradients are pushed to
 * x. */
wf_exchange *wf_exchange_of_replica(wf_exchange *x, uint32_t replica);
/* A variable's weights in a set that is ready, [count] f32 (of a table: the rows that were named),
 * in memory of its home, there behind x->written; valid until the next wf_exchange_want of the set,
 * and no longer than until the next wf_exchange_end_step. */
const float *wf_exchange_weights(const wf_exchange *x, int set, uint32_t variable);

/* Begins a step, whose gradients are means over so many records: where workers make steps together
 * they are weighted by it. */
void wf_exchange_begin_step(wf_exchange *x, uint32_t step, uint32_t records);
/* A buffer for the gradient of a variable at `step`, [count] f32 (of a table: as many rows as the
 * start says that a step names at most) in memory of its home, or of the host where gradients leave
 * (wf_exchange_sends), to be written and then pushed. NULL when there is no memory. */
float *wf_exchange_gradient(wf_exchange *x, uint32_t step, uint32_t variable);
/* The gradient of a variable at `step` is final: it may leave at once. A batch's statistic is given
 * as a gradient is. */
WF_MUST_USE wf_status wf_exchange_push(wf_exchange *x, uint32_t step, uint32_t variable,
                                       wf_err *err);
/* With global_clipnorm: the sums of squares of the step's gradients in memory of a device, of those
 * variables that `of` [n_variables] names, which are there and not pushed, into out[n_variables]; 0
 * of all others. Errors: what the device says. */
WF_MUST_USE wf_status wf_exchange_squares(wf_exchange *x, const bool of[], double out[],
                                          wf_err *err);
/* The gradients of this step are some of those whose norm together is `norm`: what is in memory of
 * a device is clipped by it when the step ends. */
void wf_exchange_clip_by(wf_exchange *x, double norm);
/* Drops a step, none of whose gradients was pushed. wf_exchange_end_step follows. */
WF_MUST_USE wf_status wf_exchange_drop_step(wf_exchange *x, uint32_t step, wf_err *err);
/* All gradients of the step are pushed; those in memory of a device are there. */
WF_MUST_USE wf_status wf_exchange_end_step(wf_exchange *x, uint32_t step, wf_err *err);
/* Steps begun and not acknowledged. */
uint32_t wf_exchange_in_flight(const wf_exchange *x);
/* From here on weights count on all pushes up to `step` (K1), and what the sets of training were
 * asked for is void. */
void wf_exchange_barrier(wf_exchange *x, uint32_t step);

/* This worker has nothing to compute for now: others, of a job in which workers wait for each
 * other, do not wait for it. What the sets of training were asked for is void then. The next
 * wf_exchange_want joins them again. */
WF_MUST_USE wf_status wf_exchange_leave(wf_exchange *x, wf_err *err);

/* Another learning rate from here on. Errors: WF_USAGE for one out of its range. */
WF_MUST_USE wf_status wf_exchange_tune(wf_exchange *x, double learning_rate, wf_err *err);

/* Begins to write the checkpoint of a cut into `folder`, which is copied: x->saving says how far it
 * is, at once or after later messages. Files are named by wf_ckpt_shard_name. What was being
 * written before is forgotten. Errors: WF_NOMEM, WF_NOTFOUND for a peer that is not there. */
WF_MUST_USE wf_status wf_exchange_save_begin(wf_exchange *x, uint32_t cut, const char *folder,
                                             wf_err *err);
/* Forgets it; what a peer still writes stays on disk. */
void wf_exchange_save_end(wf_exchange *x);
/* Whether all copies are taken, and all results in. */
bool wf_exchange_copied(const wf_exchange *x);
bool wf_exchange_saved(const wf_exchange *x);

/* Slices of frozen variables that have not come yet. */
uint32_t wf_exchange_frozen_left(const wf_exchange *x);
/* Says in *out who is late with what is waited for, and why, where that is known; `of` is a set or
 * a step. */
void wf_exchange_name_late(const wf_exchange *x, wf_exchange_wait wait, uint32_t of,
                           wf_waiting *out);

#endif
