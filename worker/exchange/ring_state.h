/* SPDX-License-Identifier: Apache-2.0 */
/* worker/exchange/ring_state.h - what the files of exchange/ring share; nobody else includes it.
 *
 *   ring.c          steps: what this worker gives, and when a step is over
 *   ring_buckets.c  gradients in one array, cut into buckets, and their sums
 *   ring_wire.c     messages to and from the other workers
 */
#ifndef WF_WORKER_EXCHANGE_RING_STATE_H
#define WF_WORKER_EXCHANGE_RING_STATE_H

#include "worker/exchange/all_reduce.h"
#include "worker/exchange/local_state.h"

enum {
    WF_RING_BUCKET = 1 << 20, /* elements, at most; gradients leave while a backward pass goes on */
    WF_RING_AT_ONCE = 2       /* steps: another worker may be one ahead */
};

/* What a member has said of a step. */
typedef struct wf_ring_word {
    bool in;
    uint32_t records;
} wf_ring_word;

typedef struct wf_ring_member {
    uint32_t index;
    uint64_t incarnation;
    wf_peer *peer; /* NULL: this worker, or there is no link */
    bool was_up;
    uint32_t done; /* the last step that it has applied */
    wf_ring_word words[WF_RING_AT_ONCE];
} wf_ring_member;

typedef struct wf_ring_bucket {
    uint64_t at, n;     /* elements of the array */
    uint32_t variables; /* that have a part in it */
    uint32_t missing;   /* of them: not pushed in the step under way */
    wf_reduce_plan plan;
    wf_reduce sums[WF_RING_AT_ONCE];
} wf_ring_bucket;

/* Where a variable lies. */
typedef struct wf_ring_variable {
    uint64_t at;
    uint32_t first, last; /* buckets */
    bool is_in;           /* it has elements, and is not frozen */
    bool pushed;          /* in the step under way, by this worker */
} wf_ring_variable;

typedef struct wf_ring {
    wf_local local; /* first */
    wf_exchange_ops ops;
    wf_ring_member *members; /* [n_members], by index */
    uint32_t n_members, me;  /* its place among them */
    wf_buf *gradients;       /* one array for all variables */
    wf_buf *means;        /* the same, of all workers: sums may still be on their way to others */
    uint64_t n_gradients; /* elements */
    wf_ring_variable *variables; /* [n_variables] */
    wf_ring_bucket *buckets;     /* [n_buckets], in the order in which they are ready */
    uint32_t n_buckets;
    uint8_t *given[WF_RING_AT_ONCE]; /* [n_variables]: somebody has a gradient of it in the step */
    uint32_t clock;                  /* the last step of all workers that is applied here */
    bool under_way;                  /* of the next one this worker has given something */
    bool is_given;                   /* all of it */
    bool idle;          /* this worker has nothing to compute: it gives no records when others do */
    uint32_t records;   /* that it gives */
    uint32_t own_step;  /* of this worker, that the step is; 0: it gives nothing */
    uint32_t own_clock; /* of the last step that this worker has made */
    uint64_t order;     /* of messages */
} wf_ring;

static inline uint32_t wf_ring_slot(uint32_t clock)
{
    return clock % WF_RING_AT_ONCE;
}

/* ring_buckets.c */
/* Lays out the array. Errors: WF_NOMEM; WF_INVALID. */
WF_MUST_USE wf_status wf_ring_buckets_open(wf_ring *r, wf_err *err);
void wf_ring_buckets_close(wf_ring *r);
/* Where this worker's gradient of a variable lies. */
float *wf_ring_gradient(const wf_ring *r, uint32_t variable);
/* A variable's gradient is there: buckets that have all of theirs begin. */
WF_MUST_USE wf_status wf_ring_give(wf_ring *r, uint32_t variable, wf_err *err);
/* Buckets that did not begin do, with zeros for what was not pushed. */
WF_MUST_USE wf_status wf_ring_give_rest(wf_ring *r, wf_err *err);
/* Goes on with a bucket's sum. */
WF_MUST_USE wf_status wf_ring_pump(wf_ring *r, uint32_t bucket, wf_err *err);
bool wf_ring_sums_are_in(const wf_ring *r);
/* The sums become means over so many records; all is ready for the next step. */
void wf_ring_end_sums(wf_ring *r, uint64_t records);

/* ring_wire.c */
/* The view's workers. Errors: WF_PROTO, WF_NOMEM. */
WF_MUST_USE wf_status wf_ring_members_open(wf_ring *r, wf_err *err);
/* Whether there is a link to each member. */
bool wf_ring_is_linked(const wf_ring *r);
WF_MUST_USE wf_status wf_ring_send_sums(wf_ring *r, uint32_t bucket, const wf_reduce_message *what,
                                        wf_err *err);
/* To all: what this worker gives to the step under way is complete. */
WF_MUST_USE wf_status wf_ring_say_given(wf_ring *r, wf_err *err);
/* To all: the step `clock` is applied here. */
WF_MUST_USE wf_status wf_ring_say_done(wf_ring *r, wf_err *err);
WF_MUST_USE wf_status wf_ring_on_up(wf_exchange *x, const wf_peer *peer, wf_err *err);
void wf_ring_on_down(wf_exchange *x, const wf_peer *peer);
WF_MUST_USE wf_status wf_ring_on_message(wf_exchange *x, const wf_peer *from, const wf_msg *m,
                                         int64_t now_ns, wf_err *err);
void wf_ring_name_late(const wf_exchange *x, wf_exchange_wait wait, uint32_t of, wf_waiting *out);

/* ring.c: goes on as far as possible. */
WF_MUST_USE wf_status wf_ring_advance(wf_ring *r, wf_err *err);

#endif
