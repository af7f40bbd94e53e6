/* SPDX-License-Identifier: Apache-2.0 */
/* worker/exchange/ring_state.h - what the files of exchange/ring share; nobody else includes it.
 *
 *   ring.c          steps: what this worker gives, and when a step is over
 *   ring_buckets.c  gradients in one array, cut into buckets, and their sums
 *   ring_device.c   variables that live on this worker's device
 *   ring_members.c  who takes part, and where they begin together
 *   ring_values.c   variables for a member that lacks them
 *   ring_owners.c   each member updates a share of the variables, and sends it to the others
 *   ring_saves.c    the files of a checkpoint, of which each member writes one
 *   ring_wire.c     messages to and from the other workers
 */
#ifndef WF_WORKER_EXCHANGE_RING_STATE_H
#define WF_WORKER_EXCHANGE_RING_STATE_H

#include "common/wire/coding.h"
#include "worker/exchange/all_reduce.h"
#include "worker/exchange/local_state.h"

enum {
    WF_RING_BUCKET = 1 << 20, /* elements, at most; gradients leave while a backward pass goes on */
    WF_RING_PIECE = WF_LOCAL_STAGE, /* elements of a variable in one message, at most */
    WF_RING_AT_ONCE = 2             /* steps: another worker may be one ahead */
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
    bool was_up;   /* there was one */
    /* What it said when this round of steps began (ring_members.c). */
    bool heard;
    bool has_values; /* of the variables; else it wants them */
    uint32_t clock;
    uint32_t done; /* the last step that it has applied */
    wf_ring_word words[WF_RING_AT_ONCE];
} wf_ring_member;

typedef struct wf_ring_bucket {
    uint64_t at, n;     /* elements of the array */
    uint64_t own_at;    /* elements of the sums of own parts (direct) */
    wf_coding coding;   /* how they are sent, where they are not few */
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

/* Values that come from another member, in the order of wf_ring_array_at. */
typedef struct wf_ring_fetch {
    wf_buf **arrays; /* [n_arrays]; NULL: nothing has come */
    uint64_t *updates;
    uint32_t from;  /* a member's place */
    uint32_t array; /* the piece that is next; n_arrays: all are there */
    uint64_t at;
} wf_ring_fetch;

typedef struct wf_ring {
    wf_local local; /* first */
    wf_exchange_ops ops;
    wf_ring_member *members; /* [n_members], by index */
    uint32_t n_members, me;  /* its place among them */
    bool on_one_host;        /* all of them are, by their addresses */
    wf_reduce_way way;       /* how they add up, which is the same at all */
    /* ring_members.c */
    uint32_t view, attempt; /* which round of steps; view 0: the members are not known yet */
    bool is_agreed;         /* all members have said where they are: `start` is where all begin */
    uint32_t start;         /* a clock */
    uint32_t giver;         /* who gives values to those that lack them */
    uint32_t early;         /* the step of messages that came before that; 0: none did */
    bool has_values;        /* of the variables, as they are after `clock` */
    uint32_t n_arrays;
    wf_ring_fetch fetch;
    /* Arrays for all variables. */
    wf_buf *means;    /* of the step that is applied, but for those of wf_ring_keeps */
    float weighs[2];  /* of a pair: this worker's gradients, and the other's, in the mean */
    uint64_t records; /* of all, in the step that is applied */
    wf_buf *sums[WF_RING_AT_ONCE];     /* one may still be on its way when the next step begins */
    wf_buf *own_sums[WF_RING_AT_ONCE]; /* direct: of this member's part of each bucket */
    uint64_t n_own_sums;               /* elements */
    bool is_lent[WF_RING_AT_ONCE];     /* those who are sent these sums read them where they lie */
    uint32_t slow_copies, copies_past; /* plain copies in a row that were slow; and those past the
                                        * cache (ring_buckets.c) */
    bool in_sums;                      /* gradients are computed in the array of the sums */
    wf_buf *gradients; /* what this worker gives, until the step is over: that of the sums, or of
                        * the means; with a device, which may still read the means, `own` */
    wf_buf *own;
    wf_buf *brought; /* of the device: the means, for its updates; NULL: no variable is on it */
    wf_buf *weights; /* then, if the state is divided: those that come or are sent, on the host */
    uint64_t n_gradients; /* elements, */
    struct wf_ring_group {
        uint64_t at, n;
        uint32_t first;          /* bucket */
    } groups[3];                 /* of those that are sent as bf16, f16, float32 */
    wf_ring_variable *variables; /* [n_variables] */
    wf_ring_bucket *buckets;     /* [n_buckets], in the order in which they are ready */
    uint32_t n_buckets;
    uint8_t *given[WF_RING_AT_ONCE]; /* [n_variables]: somebody has a gradient of it in the step */
    uint32_t clock;                  /* the last step of all workers that is applied here */
    bool under_way;                  /* of the next one this worker has given something */
    bool is_given;                   /* all of it */
    bool is_divided; /* each member has the slots of a share of the variables, and updates it */
    bool is_updated; /* then: this one has updated its own in the step under way, */
    uint64_t weights_due, weights_in; /* so many elements of others are to come, and have */
    bool *updated;                    /* [n_variables] */
    bool idle; /* this worker has nothing to compute: it gives no records when others do */
    uint32_t own_records; /* that it gives */
    uint32_t own_step;    /* of this worker, that the step is; 0: it gives nothing */
    uint32_t applied_step, applied_clock; /* the last own step that is applied here */
    uint32_t files_left; /* the cut of files that others have not written in their round; 0: none */
    uint32_t cut_due;    /* whose files are written when the variables are those of all; 0: none */
    uint64_t order;      /* of messages */
} wf_ring;

static inline uint32_t wf_ring_slot(uint32_t clock)
{
    return clock % WF_RING_AT_ONCE;
}

/* Whether the variables are here, as all members have them. */
static inline bool wf_ring_is_current(const wf_ring *r)
{
    return r->is_agreed && r->has_values && r->clock >= r->start;
}

/* Whether gradients stay as they are while they are added up, and means lie nowhere: they are made
 * of what others have sent, where they are used. */
static inline bool wf_ring_keeps(const wf_ring *r)
{
    return r->way == WF_REDUCE_PAIR || r->way == WF_REDUCE_DIRECT;
}

/* ring_buckets.c */
/* Lays out the arrays. Errors: WF_NOMEM; WF_INVALID. */
WF_MUST_USE wf_status wf_ring_buckets_open(wf_ring *r, wf_err *err);
void wf_ring_buckets_close(wf_ring *r);
/* The sums are of these members. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_ring_plan(wf_ring *r, wf_err *err);
/* Sums begin anew, and later in fresh memory: what was sent of them may still be read. Errors:
 * WF_NOMEM. */
WF_MUST_USE wf_status wf_ring_restart(wf_ring *r, wf_err *err);
/* Chooses where the gradients of the next step lie. */
void wf_ring_take_array(wf_ring *r);
/* What a variable's gradient takes where it is sent. */
uint64_t wf_ring_bytes_of(const wf_ring *r, uint32_t variable);
/* Where this worker's gradient of a variable lies. */
float *wf_ring_gradient(const wf_ring *r, uint32_t variable);
/* A variable's gradient is there: buckets that have all of theirs begin. */
WF_MUST_USE wf_status wf_ring_give(wf_ring *r, uint32_t variable, wf_err *err);
/* Buckets that did not begin do, with zeros for what was not pushed. */
WF_MUST_USE wf_status wf_ring_give_rest(wf_ring *r, wf_err *err);
/* Begins the sums of the step under way that have all gradients. */
WF_MUST_USE wf_status wf_ring_give_again(wf_ring *r, wf_err *err);
/* Goes on with a bucket's sum. */
WF_MUST_USE wf_status wf_ring_pump(wf_ring *r, uint32_t bucket, wf_err *err);
bool wf_ring_sums_are_in(const wf_ring *r);
/* The sums become means over so many records, for updates to read; and are read no more. Errors:
 * what the device says. */
WF_MUST_USE wf_status wf_ring_take_means(wf_ring *r, uint64_t records, wf_err *err);
void wf_ring_drop_means(wf_ring *r);
/* Means of elements [at, at + n) of a bucket of several members, on any thread. */
void wf_ring_make_means(const wf_ring *r, uint32_t bucket, uint64_t at, uint64_t n, float to[]);
/* All is ready for the gradients of the next step. */
void wf_ring_end_sums(wf_ring *r);

/* ring_device.c: see there. What there is for arrays of so many bytes, r->means among it. Errors:
 * WF_NOMEM. */
WF_MUST_USE wf_status wf_ring_device_open(wf_ring *r, size_t bytes, wf_err *err);
void wf_ring_device_close(wf_ring *r);
/* The members are new. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_ring_device_plan(wf_ring *r, wf_err *err);
/* Returns when the device reads nothing any more that was queued for the last update. Errors of
 * this and of all below: what the device says. */
WF_MUST_USE wf_status wf_ring_device_wait(const wf_ring *r, wf_err *err);
/* Queues the copies of the means to the device, bucket by bucket as they are made. */
WF_MUST_USE wf_status wf_ring_bring_means(wf_ring *r, wf_err *err);
/* Copies the weights that this member has updated to r->weights, behind the update, and waits. */
WF_MUST_USE wf_status wf_ring_fetch_share(const wf_ring *r, wf_err *err);
/* Queues the copy of weights [at, at + n) of a variable that another has updated. */
WF_MUST_USE wf_status wf_ring_bring_weights(const wf_ring *r, uint32_t variable, uint64_t at,
                                            const uint8_t *bytes, uint64_t n, wf_err *err);

/* ring_members.c: see there. */
/* The operation `on_view`. */
WF_MUST_USE wf_status wf_ring_on_view(wf_exchange *x, const Weft__View *view, uint32_t number,
                                      wf_err *err);
WF_MUST_USE wf_status wf_ring_on_up(wf_exchange *x, const wf_peer *peer, wf_err *err);
void wf_ring_on_down(wf_exchange *x, const wf_peer *peer);
/* A member has said where it is: its clock, and whether it has values. */
WF_MUST_USE wf_status wf_ring_on_place(wf_ring *r, uint32_t from, uint32_t attempt, uint32_t clock,
                                       bool has_values, wf_err *err);
/* Whether there is a link to each member. */
bool wf_ring_is_linked(const wf_ring *r);
/* Whose place it is; n_members: nobody's. */
uint32_t wf_ring_place_of(const wf_ring *r, const wf_peer *peer);

/* ring_values.c */
/* The array of that number of the variables' values; its variable, if that is not NULL. */
wf_buf **wf_ring_array_at(const wf_ring *r, uint32_t number, wf_local_variable **of);
uint32_t wf_ring_count_arrays(const wf_ring *r);
WF_MUST_USE wf_status wf_ring_give_values(wf_ring *r, uint32_t to, wf_err *err);
/* A piece of an array [n], borrowed; `updates` are those that its variable has had. Errors:
 * WF_PROTO, WF_NOMEM. */
WF_MUST_USE wf_status wf_ring_on_values(wf_ring *r, uint32_t from, uint32_t array, uint64_t updates,
                                        const uint8_t *bytes, uint64_t n, wf_err *err);
/* Takes the values once all of them are there. Errors: WF_PROTO. */
WF_MUST_USE wf_status wf_ring_take_values(wf_ring *r, wf_err *err);
void wf_ring_drop_values(wf_ring *r);

/* ring_owners.c: see there. The members are new: this one takes its share. Errors: WF_AGAIN if
 * steps were made with other members, and for those of wf_local_own. */
WF_MUST_USE wf_status wf_ring_divide(wf_ring *r, wf_err *err);
/* The state of what a lost link may have kept from others is here alone. Errors: WF_AGAIN. */
WF_MUST_USE wf_status wf_ring_cannot_go_on(wf_err *err);
/* The means of a step are there: updates the own share, and sends it. */
WF_MUST_USE wf_status wf_ring_update_share(wf_ring *r, wf_err *err);
bool wf_ring_has_all_shares(const wf_ring *r);
/* Elements of a variable's weights from their owner, at an offset. Errors: WF_PROTO. */
WF_MUST_USE wf_status wf_ring_on_weights(wf_ring *r, uint32_t from, uint32_t variable, uint64_t at,
                                         const uint8_t *bytes, uint64_t n, wf_err *err);

/* ring_saves.c: the operations `count_shards` and `save`; the latter also as time goes on, until it
 * is done: a member that has just joined may not have the variables yet. */
uint32_t wf_ring_count_files(const wf_exchange *x);
WF_MUST_USE wf_status wf_ring_save(wf_exchange *x, wf_err *err);
WF_MUST_USE wf_status wf_ring_save_when_due(wf_ring *r, wf_err *err);
/* A member is asked for its file, or has written it. Errors: WF_PROTO, WF_NOMEM. */
WF_MUST_USE wf_status wf_ring_on_save(wf_ring *r, uint32_t from, const wf_msg *m, wf_err *err);
WF_MUST_USE wf_status wf_ring_on_saved(wf_ring *r, uint32_t from, const wf_msg *m, wf_err *err);
/* A round ends: files that others were to write are not waited for. */
void wf_ring_forget_files(wf_ring *r);

/* ring_wire.c */
/* A message of this round with a body, to one member. */
WF_MUST_USE wf_status wf_ring_send(wf_ring *r, uint32_t to, uint16_t kind, uint32_t cut,
                                   const ProtobufCMessage *body, wf_err *err);
WF_MUST_USE wf_status wf_ring_send_sums(wf_ring *r, uint32_t bucket, const wf_reduce_message *what,
                                        wf_err *err);
/* To all: what this worker gives to the step under way is complete. */
WF_MUST_USE wf_status wf_ring_say_given(wf_ring *r, wf_err *err);
/* To all: the step `clock` is applied here. */
WF_MUST_USE wf_status wf_ring_say_done(wf_ring *r, wf_err *err);
/* To one: where this worker is. */
WF_MUST_USE wf_status wf_ring_say_place(wf_ring *r, uint32_t to, wf_err *err);
/* Elements of a variable's weights, after the step under way. */
WF_MUST_USE wf_status wf_ring_send_weights(wf_ring *r, uint32_t to, uint32_t variable, uint64_t at,
                                           uint64_t n, wf_err *err);
/* A piece of an array, of which *piece is a copy. */
WF_MUST_USE wf_status wf_ring_send_values(wf_ring *r, uint32_t to, uint32_t array, uint64_t updates,
                                          wf_buf *piece, wf_err *err);
WF_MUST_USE wf_status wf_ring_on_message(wf_exchange *x, const wf_peer *from, const wf_msg *m,
                                         int64_t now_ns, wf_err *err);

/* ring.c: goes on as far as possible. */
WF_MUST_USE wf_status wf_ring_advance(wf_ring *r, wf_err *err);
/* The step under way is over here, and `clock` with it. */
WF_MUST_USE wf_status wf_ring_end_step(wf_ring *r, wf_err *err);

#endif
