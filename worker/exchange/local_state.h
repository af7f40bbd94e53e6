/* SPDX-License-Identifier: Apache-2.0 */
/* worker/exchange/local_state.h - what the files of exchange/local share; nobody else includes it.
 *
 *   local.c         weights, gradients and updates
 *   local_device.c  those of variables that live on a device
 *   local_file.c    values from files, and the file of a checkpoint
 *   mirrored.c      a copy of them on each of several devices
 *   divided.c       a part of them in each stage of a model: on which device those are
 *   ring.c          a copy of them in each of several workers (ring_state.h)
 *   hybrid.c        the same of all but the tables, which are on ps
 */
#ifndef WF_WORKER_EXCHANGE_LOCAL_STATE_H
#define WF_WORKER_EXCHANGE_LOCAL_STATE_H

#include "common/ckpt/manifest.h"
#include "common/optim/rule.h"
#include "common/tensor/buf.h"
#include "worker/exchange.h"

typedef struct wf_local_variable {
    const Weft__Variable *row;
    bool elsewhere;          /* on ps, or of another stage: nothing of it is here */
    const wf_device *device; /* whose memory all of it is */
    uint64_t count, updates;
    wf_buf *weights, *slots[WF_MAX_SLOTS]; /* [count] */
    wf_buf *gradient;                      /* [count]; of the host: NULL until it is asked for;
                                            * where gradients leave: lent by who brings the means */
    bool pushed;                           /* since the last step ended */
    uint32_t share;                        /* of a checkpoint's files (wf_local_share) */
    bool has_slots;                        /* this worker updates it */
    uint64_t first_chunk;                  /* of an update on the host */
} wf_local_variable;

/* What is there for variables on a device; all NULL: there are none. */
typedef struct wf_local_device {
    const wf_device *device;
    const wf_device_updates *updates; /* of it */
    wf_stream *stream;                /* of updates, and of copies from and to files */
    wf_device_event *written;         /* behind the last update */
    float *stage;                     /* [WF_LOCAL_STAGE] of the host, for copies */
    wf_update_segment *segments;      /* [n_variables] */
    wf_average_segment *averages;     /* [n_variables] */
    wf_clip_segment *clips;           /* [n_variables]; NULL: nothing is clipped */
    wf_buf *scratch;                  /* of all norms, of the device; NULL: none is taken */
    double norm; /* of a step's gradients, of which these are some; 0: these are all */
} wf_local_device;

enum {
    WF_LOCAL_STAGE = 1 << 20, /* elements: 4 MiB */
    WF_LOCAL_PIECE = 1 << 12  /* elements that stay in the first cache */
};

typedef struct wf_local {
    wf_exchange base; /* first */
    wf_exchange_conf conf;
    wf_opt opt;
    wf_local_variable *variables; /* [n_variables] */
    uint32_t n_variables;
    uint32_t shard;              /* the number of its first file of a checkpoint */
    wf_local_variable **updated; /* [n_updated]: those on the host of the step that ends */
    uint32_t n_updated;
    /* Makes elements [at, at + n) of the gradient of a variable on the host where an update wants
     * them, n <= WF_LOCAL_PIECE; called on any thread. NULL: they lie in v->gradient. */
    void (*make_gradient)(const struct wf_local *l, const wf_local_variable *v, uint64_t at,
                          uint64_t n, float out[]);
    wf_local_device on;
} wf_local;

static inline bool wf_local_is_trainable(const wf_local_variable *v)
{
    return v->row->kind == WF_KIND_TRAINABLE;
}

/* Whether it never changes here, so that files of checkpoints lack it. */
static inline bool wf_local_is_frozen(const wf_local_variable *v)
{
    return v->elsewhere || (v->row->kind != WF_KIND_TRAINABLE && v->row->kind != WF_KIND_STATISTIC);
}

/* Of the rule, for a variable; and those that are here. */
static inline uint32_t wf_local_all_slots(const wf_local *l, const wf_local_variable *v)
{
    return wf_local_is_trainable(v) ? wf_opt_n_slots(&l->opt) : 0;
}
static inline uint32_t wf_local_n_slots(const wf_local *l, const wf_local_variable *v)
{
    return v->has_slots ? wf_local_all_slots(l, v) : 0;
}

/* local.c: what an exchange of variables of this process does. */
extern const wf_exchange_ops wf_local_ops;
/* Opens one (wf_exchange_kind.open). */
WF_MUST_USE wf_status wf_local_open(const wf_exchange_conf *conf, wf_exchange **out, wf_err *err);
/* The same in memory of the caller's that is all zero, with operations of its own. Close it after
 * an error as well. */
WF_MUST_USE wf_status wf_local_init(wf_local *l, const wf_exchange_ops *ops,
                                    const wf_exchange_conf *conf, wf_err *err);
void wf_local_close(wf_local *l);
/* Updates the variables that are marked as pushed, by their gradients. Errors: what a device says.
 */
WF_MUST_USE wf_status wf_local_update(wf_local *l, wf_err *err);

/* local_device.c: whose memory a variable is (wf_exchange_home). */
const wf_device *wf_local_home(const Weft__Start *start, const wf_device *device,
                               uint32_t variable);
/* What variables take of a device (wf_exchange_device_bytes). */
size_t wf_local_device_bytes(const Weft__Start *start, const wf_device *device);
/* Makes what variables on a device need, if there are any. Errors: WF_NOMEM; what the device says.
 */
WF_MUST_USE wf_status wf_local_device_open(wf_local *l, wf_err *err);
/* Waits for updates under way. */
void wf_local_device_close(wf_local *l);
/* An array of v in its memory, named by `what` in an error. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_local_array(const wf_local_variable *v, const char *what, size_t bytes,
                                     wf_buf **out, wf_err *err);
/* Copies elements [at, at + n) of an array from the stage, or to it, and returns when they are
 * there; n <= WF_LOCAL_STAGE. Errors: what the device says. */
WF_MUST_USE wf_status wf_local_put(const wf_local *l, wf_buf *array, uint64_t at, uint64_t n,
                                   wf_err *err);
WF_MUST_USE wf_status wf_local_get(const wf_local *l, const wf_buf *array, uint64_t at, uint64_t n,
                                   wf_err *err);
/* Copies elements [at, at + n) of an array of v to memory of the host, or from it, and returns when
 * they are there; n <= WF_LOCAL_STAGE. Errors: what the device says. */
WF_MUST_USE wf_status wf_local_read(const wf_local *l, const wf_local_variable *v,
                                    const wf_buf *array, uint64_t at, uint64_t n, float to[],
                                    wf_err *err);
WF_MUST_USE wf_status wf_local_write(const wf_local *l, const wf_local_variable *v, wf_buf *array,
                                     uint64_t at, uint64_t n, const void *from, wf_err *err);
/* Queues the updates of what was pushed of variables on the device. Errors: what the device says.
 */
WF_MUST_USE wf_status wf_local_device_update(wf_local *l, wf_err *err);
/* wf_exchange_squares. */
WF_MUST_USE wf_status wf_local_device_squares(wf_local *l, const bool of[], double out[],
                                              wf_err *err);

/* The slots of a share of the variables, as the generation begins, and of no others: where the
 * optimizer's state is divided (Start.shard_optimizer). Errors: those of wf_values; WF_NOMEM. */
WF_MUST_USE wf_status wf_local_own(wf_local *l, uint32_t share, wf_err *err);

/* local_file.c: reads the slots of the variables that have them. Errors: those of wf_values. */
WF_MUST_USE wf_status wf_local_load_slots(const wf_local *l, wf_err *err);
/* Reads the values that a generation begins with. Errors: those of wf_values. */
WF_MUST_USE wf_status wf_local_load(wf_local *l, wf_err *err);
/* The operation `save` of an exchange: one file has all variables. */
WF_MUST_USE wf_status wf_local_save(wf_exchange *x, wf_err *err);
/* Divides the variables among `shares` files of about equal bytes: in the same way wherever the
 * variables are the same. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_local_share(wf_local *l, uint32_t shares, wf_err *err);
/* A file of a checkpoint with the variables of a share, of a cut; the caller owns *result, which
 * says what went wrong, if something did. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_local_write_share(const wf_local *l, wf_cut_id cut, const char *folder,
                                           const char *file, uint32_t share, Weft__Saved **result,
                                           wf_err *err);

#endif
