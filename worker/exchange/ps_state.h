/* SPDX-License-Identifier: Apache-2.0 */
/* worker/exchange/ps_state.h - what the files of the client of the parameter servers share;
 * but for their unit test nobody else includes it. */
#ifndef WF_WORKER_EXCHANGE_PS_STATE_H
#define WF_WORKER_EXCHANGE_PS_STATE_H

#include "common/tensor/buf.h"
#include "common/wire/decisions.h"
#include "common/wire/parts.h"
#include "worker/exchange.h"
#include "worker/exchange/row_cache.h"

/* A ps that has denied a message is asked again after WF_CLIENT_RETRY_MS, then after twice as long
 * each time: its view may be the older one. */
enum { WF_CLIENT_RETRY_MS = 50, WF_CLIENT_RETRY_MOST_MS = 1000 };

enum { WF_CLIENT_STEPS = WF_MAX_PIPELINE + 3 }; /* gradients in flight, and the one being made */

typedef struct wf_client_variable {
    uint64_t count; /* elements, f32 */
    bool trainable; /* pushed each step: its gradient, or a batch's statistic; otherwise frozen */
    bool elsewhere; /* in the workers: neither of the two */
    uint64_t row;   /* of a table: elements of one of its rows */
    uint64_t rows_most;  /* that a step names; 0: no table */
    bool unbounded;      /* a table whose rows are named by keys (common/base/row_key.h) */
    wf_coding push;      /* how gradients are written */
    double kept_ratio;   /* of top-k */
    float *residual;     /* [count]: what that has lost; NULL: it is not kept */
    wf_row_cache *cache; /* of a table; NULL: it has none */
} wf_client_variable;

/* How the part of a slice was written in a step; {0}: as float32. */
typedef struct wf_client_coding {
    wf_coding coding;
    size_t at, bytes; /* in the step's buffer of the variable */
} wf_client_coding;

/* The rows of the tables that a set or a step has, in the order of their ids. */
typedef struct wf_client_rows {
    wf_buf **ids; /* [n_variables]: u64 each; NULL: no table, or none were named */
    uint64_t *n;  /* [n_variables] */
    struct wf_client_range {
        uint64_t first, n;
    } * of_slice; /* [n_slices]: which of them are in a slice */
} wf_client_rows;

/* Of a set and a table with a cache: the rows that the cache has not, by their places among the
 * rows of the set. */
typedef struct wf_client_missing {
    uint64_t *places; /* [n], rising */
    uint64_t n, room;
    uint32_t kept; /* the step of the set whose rows the cache has been given */
} wf_client_missing;

typedef struct wf_client_slice {
    uint32_t variable, ps;
    uint64_t offset, count;
    uint32_t map; /* the version of the slice map that put it on that ps; 0: that of the start */
} wf_client_slice;

/* Where the weights of a variable lie in a set. */
typedef struct wf_client_values {
    wf_buf *own;     /* f32; NULL: not needed so far */
    const float *at; /* their first; NULL: none have come */
    bool lent;       /* they lie in the set's frames, else in `own` */
} wf_client_values;

typedef struct weight_set {
    uint32_t step;            /* 0: none */
    uint32_t clock;           /* of the step, where workers wait for each other */
    uint32_t pull;            /* the pull's name; answers of another are dropped */
    uint32_t left;            /* slices to come */
    uint8_t *have;            /* [n_slices] */
    wf_client_values *values; /* [n_variables]; nothing of the other kind, frozen or not */
    wf_buf **frames;          /* [n_slices]: of messages, which lent values lie in */
    uint64_t *versions;       /* [n_slices]: updates that they hold */
    wf_client_rows rows;
    wf_client_missing *missing;         /* [n_variables] */
    struct wf_client_range *missing_of; /* [n_slices]: which of them are in a slice */
} weight_set;

typedef struct step_push {
    uint32_t step;  /* 0: free */
    uint8_t *acked; /* [n_slices]: a part may be sent twice, and counts once */
    uint32_t *left; /* [n_ps]: parts not acknowledged */
    uint32_t parts_left;
    bool *pushed;              /* [n_variables] */
    bool ended, nothing;       /* nothing: its parts are empty */
    uint32_t clock;            /* as its weights were asked for */
    uint32_t records;          /* that its gradients are means over */
    wf_buf **grads;            /* [n_variables] */
    wf_buf **coded;            /* [n_variables]: what is sent of them in fewer bytes */
    wf_client_coding *codings; /* [n_slices] */
    uint64_t *versions;        /* [n_slices]: of the weights that it is computed from */
    wf_client_rows rows;
} step_push;

/* A push message being filled, for one ps. */
typedef struct draft {
    wf_msg *msg;
    uint32_t step; /* that its parts are of: of one that failed it stays behind */
    wf_part parts[WF_MAX_PARTS];
    uint32_t n, entries; /* of the part table */
    size_t bytes;
} draft;

typedef struct wf_client {
    wf_exchange base; /* first */
    wf_net *net;
    wf_client_variable *variables;
    uint32_t n_variables;
    wf_client_slice *slices; /* in the order of the variables, then of offsets */
    uint32_t n_slices;
    uint32_t *first_slice; /* [n_variables + 1] */
    wf_peer **ps;
    uint64_t *ps_incarnation; /* those of the view: another has not the slices */
    uint32_t n_ps, shards_at_start;
    bool is_part; /* of an exchange whose other part writes the file behind those of the ps */
    struct ps_door {
        bool open;        /* it has the list: pulls and pushes may be sent */
        bool is_strange;  /* since it was asked last, it has answered without a map: it had none of
                           * this generation then */
        int64_t retry_ns; /* when to ask again after a denial; INT64_MAX: not */
        int64_t wait_ns;  /* before that; doubles */
        bool joined;      /* it has answered that this worker joins */
    } * doors;            /* [n_ps] */
    uint16_t job, generation;
    uint32_t map, view, pipeline, next_pull;
    int64_t moved_ns; /* since when weights are awaited that moves have delayed; 0: none are */
    bool checksums;
    wf_pool *pool; /* writes coded gradients; NULL: the caller's thread alone */
    bool bounded;  /* workers wait for each other, */
    bool together; /* and make each step together */
    struct ps_clock {
        bool joins;                   /* it has asked to; base.is_in: all ps have answered */
        uint32_t number, step, least; /* of the request; its step, and its clock so far */
        uint32_t used;                /* the largest clock that weights were asked for with */
        uint32_t made;                /* that of the last step begun */
        wf_decisions decided;         /* to be told to all other ps */
    } clock;
    weight_set sets[WF_WEIGHT_SETS];
    weight_set frozen;     /* K4; step is always 0 */
    uint32_t n_moving;     /* slices of variables that are on ps and not frozen */
    uint64_t frozen_bytes; /* received */
    uint32_t n_frames;     /* that all sets hold */
    step_push steps[WF_CLIENT_STEPS];
    uint32_t cached_from; /* base.base when the caches were emptied last */
    draft *drafts;        /* [n_ps] */
    wf_part parts[WF_MAX_PARTS];
} wf_client;

/* ps.c: sets job, generation, map and view, and sends. While the ps has not registered the list
 * the message is dropped: everything is sent again when it has. Takes *m. */
WF_MUST_USE wf_status wf_client_send(wf_client *c, uint32_t ps, wf_lane lane, uint64_t key,
                                     wf_msg **m, wf_err *err);

/* Sets job, generation, map and view. */
void wf_client_set_head(const wf_client *c, wf_msg *m);

/* ps_clock.c: joins with a step, unless it has; pulls of training leave once all have answered. */
WF_MUST_USE wf_status wf_clock_join(wf_client *c, uint32_t step, wf_err *err);
/* The same with the first step that weights were asked for, when pushes were acknowledged. */
WF_MUST_USE wf_status wf_clock_join_late(wf_client *c, wf_err *err);
bool wf_clock_is_in(const wf_client *c);
/* The clock of a step whose weights are about to be asked for; 0 where nobody waits for anybody.
 * Where steps are made together, and the others have gone on without this worker, it is theirs. */
uint32_t wf_clock_of(wf_client *c, uint32_t step);
/* A ps tells what it has decided: all others are told. Errors: WF_PROTO, WF_NOMEM. And one that may
 * have missed it is told again. */
WF_MUST_USE wf_status wf_decided_on(wf_client *c, uint32_t ps, const wf_msg *m, wf_err *err);
WF_MUST_USE wf_status wf_decided_again(wf_client *c, uint32_t ps, wf_err *err);
/* A ps may have missed that this worker joins, or has left. */
WF_MUST_USE wf_status wf_clock_again(wf_client *c, uint32_t ps, wf_err *err);
WF_MUST_USE wf_status wf_clock_on_ok(wf_client *c, uint32_t ps, const wf_msg *m, wf_err *err);
/* The row of wf_exchange_ops; `x` is a wf_client. */
WF_MUST_USE wf_status wf_clock_leave(wf_exchange *x, wf_err *err);

/* ps_values.c: where the weights of a set lie. All sets hold so many frames at most, a quarter of
 * what one side of shared memory may lend to the other. Errors: WF_NOMEM. */
enum { WF_VALUES_FRAMES_MOST = 1024 };
WF_MUST_USE wf_status wf_values_init(const wf_client *c, weight_set *s, wf_err *err);
void wf_values_free(wf_client *c, weight_set *s);
/* Before the weights of another pull come: lets go of the frames of the last one. */
void wf_values_begin(wf_client *c, weight_set *s);
/* Memory of the set's own for a variable, which holds what has come of it. */
WF_MUST_USE wf_status wf_values_own(wf_client *c, weight_set *s, uint32_t variable, float **out,
                                    wf_err *err);
/* Takes what has come of slice i in a frame, whose part `from` is. */
WF_MUST_USE wf_status wf_values_take(wf_client *c, weight_set *s, uint32_t i, const wf_coded *from,
                                     wf_buf *frame, wf_err *err);

/* ps_rows.c: the rows of tables. Memory for them, without any. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_rows_init(const wf_client *c, wf_client_rows *r, wf_err *err);
void wf_rows_free(const wf_client *c, wf_client_rows *r);
/* The same of what caches lack. */
WF_MUST_USE wf_status wf_missing_init(const wf_client *c, weight_set *s, wf_err *err);
void wf_missing_free(const wf_client *c, weight_set *s);
static inline bool wf_rows_has(const wf_client *c, uint32_t slice)
{
    return c->variables[c->slices[slice].variable].rows_most > 0;
}
/* Elements of a variable that a set has room for. */
static inline uint64_t wf_rows_room(const wf_client_variable *v)
{
    return v->rows_most ? v->rows_most * v->row : v->count;
}
/* A step goes by the rows of its set, which may be given others while its parts are on their way.
 */
void wf_rows_copy(const wf_client *c, wf_client_rows *to, const wf_client_rows *from);
/* How many rows of slice i, of a table, a set asks for: not those that the worker has cached. */
uint64_t wf_rows_asked(const wf_client *c, const weight_set *s, uint32_t i);
/* Gives the cache of a table the rows of a set, before others are named. */
void wf_rows_keep(wf_client *c, weight_set *s, uint32_t variable);
/* Takes what the caches have for the step of a set, and notes what is missing. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_rows_look_up(wf_client *c, weight_set *s, wf_err *err);
/* Whether a set takes rows of a table from a cache. */
bool wf_rows_cached(const wf_client *c, const weight_set *s, uint32_t variable);
/* Takes the rows of slice i that its cache lacked, into the values [rows named] of the set. */
void wf_rows_take(const wf_client *c, const weight_set *s, uint32_t i, const wf_coded *from,
                  float values[]);
/* What a pull asks of a ps: parts [WF_MAX_PARTS] and the frame of the message that holds their ids.
 * Errors: WF_NOMEM, WF_FULL. */
WF_MUST_USE wf_status wf_rows_ask(wf_client *c, uint32_t ps, const weight_set *s, wf_msg *m,
                                  wf_part parts[], uint32_t *n, wf_err *err);
/* The row of wf_exchange_ops; `x` is a wf_client. */
WF_MUST_USE wf_status wf_rows_name(wf_exchange *x, int set, uint32_t variable, const uint64_t ids[],
                                   uint64_t n, wf_err *err);

/* ps_pulls.c: lists are named in messages by these numbers. The second has those frozen slices
 * alone that have not come yet. */
enum { WF_CLIENT_LIST = 0, WF_CLIENT_FROZEN_LIST = 1 };
WF_MUST_USE wf_status wf_pulls_init(wf_client *c, wf_err *err);
void wf_pulls_free_set(wf_client *c, weight_set *s);
/* Registers a list with a ps. */
WF_MUST_USE wf_status wf_pulls_send_list(wf_client *c, uint32_t ps, uint32_t list, wf_err *err);
/* Asks a ps for its part of a set. */
WF_MUST_USE wf_status wf_pulls_send(wf_client *c, uint32_t ps, weight_set *s, wf_err *err);
/* Asks all ps for the sets of training that are not in. */
WF_MUST_USE wf_status wf_pulls_again(wf_client *c, wf_err *err);
/* Whether a ps owes frozen weights. */
bool wf_pulls_lack_frozen(const wf_client *c, uint32_t ps);
/* Weights from a ps. Errors: WF_PROTO. */
WF_MUST_USE wf_status wf_pulls_on_weights(wf_client *c, uint32_t ps, const wf_msg *m, wf_err *err);
/* The first ps that owes weights of a set, or frozen ones; n_ps if none does. */
uint32_t wf_pulls_late(const wf_client *c, const weight_set *s);
/* The rows of wf_exchange_ops that pull; `x` is a wf_client. */
WF_MUST_USE wf_status wf_pulls_want(wf_exchange *x, int set, uint32_t step, wf_err *err);
bool wf_pulls_ready(const wf_exchange *x, int set);
uint32_t wf_pulls_frozen_left(const wf_exchange *x);
const float *wf_pulls_weights(const wf_exchange *x, int set, uint32_t variable);

/* ps_saves.c: rows of wf_exchange_ops, */
uint32_t wf_saves_count(const wf_exchange *x);
WF_MUST_USE wf_status wf_saves_begin(wf_exchange *x, wf_err *err);
/* the request to a ps, which may be sent again, and what it answers: a ps that has taken its copies
 * for this cut takes no others. */
WF_MUST_USE wf_status wf_saves_ask(wf_client *c, uint32_t ps, wf_err *err);
WF_MUST_USE wf_status wf_saves_on_message(wf_client *c, uint32_t ps, const wf_msg *m, wf_err *err);

/* ps_codings.c: how the gradients of a variable are to be written. Errors: WF_PROTO. */
WF_MUST_USE wf_status wf_codings_take(const Weft__Variable *from, wf_client_variable *v,
                                      wf_err *err);
/* Memory, once the slices are known. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_codings_init(wf_client *c, wf_err *err);
void wf_codings_close(wf_client *c);
/* The bytes that a part takes up: the next begins at a multiple of 8, so that both share a frame.
 */
static inline size_t wf_codings_room(size_t bytes)
{
    return (bytes + 7) / 8 * 8;
}
/* Writes the gradient of a variable, which is final, as s->codings then says. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_codings_write(wf_client *c, step_push *s, uint32_t variable, wf_err *err);

/* ps_pushes.c. Memory for what is sent of a variable, from which it travels to its ps without a
 * copy where that can be; NULL when there is none. */
wf_buf *wf_pushes_new_buf(const wf_client *c, uint32_t variable, size_t bytes);
WF_MUST_USE wf_status wf_pushes_init(wf_client *c, wf_err *err);
void wf_pushes_close(wf_client *c);
/* The rows of wf_exchange_ops that push; `x` is a wf_client. */
void wf_pushes_begin(wf_exchange *x, uint32_t step, uint32_t records);
float *wf_pushes_gradient(wf_exchange *x, uint32_t step, uint32_t variable);
WF_MUST_USE wf_status wf_pushes_push(wf_exchange *x, uint32_t step, uint32_t variable, wf_err *err);
/* The parts of a dropped step are sent empty, so that clocks and pulls go on. */
WF_MUST_USE wf_status wf_pushes_drop_step(wf_exchange *x, uint32_t step, wf_err *err);
WF_MUST_USE wf_status wf_pushes_end_step(wf_exchange *x, uint32_t step, wf_err *err);
/* A slice is on another ps than before: what it has not acknowledged is owed by that one. */
void wf_pushes_moved(wf_client *c, uint32_t slice, uint32_t from, uint32_t to);
/* Drops the message in the making for a ps: all its parts are pushed again (wf_pushes_again). */
void wf_pushes_drop_draft(wf_client *c, uint32_t ps);
/* An acknowledgement from a ps. Errors: WF_PROTO. */
WF_MUST_USE wf_status wf_pushes_on_ok(wf_client *c, uint32_t ps, const wf_msg *m, wf_err *err);
/* All parts that a ps has not acknowledged, in the order of their steps (K2). */
WF_MUST_USE wf_status wf_pushes_again(wf_client *c, uint32_t ps, wf_err *err);
/* The first ps that owes acknowledgements of a step; n_ps if none does. */
uint32_t wf_pushes_late(const wf_client *c, uint32_t step);

#endif
