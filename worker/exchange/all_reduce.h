/* SPDX-License-Identifier: Apache-2.0 */
/* worker/exchange/all_reduce.h - sums of float arrays over the members of a group, by messages
 * between two members at a time. It sends nothing itself: messages to send come out, messages that
 * arrived go in, in any order.
 *
 * A plan lists what a member does, in rounds: it sends a range of its array, then takes a range
 * that another member sends in the same round. Ranges that are sent and taken in one round are
 * disjoint. Four plans are known:
 *
 *   ring     Each member adds to a chunk and passes it on, until each has the sum of one chunk;
 *            then sums go round. 2 (n - 1) rounds, 2 (n - 1) / n of the bytes of an array: the
 *            least there can be (Patarasuk & Yuan 2009, "Bandwidth optimal all-reduce algorithms
 *            for clusters of workstations").
 *   halving  Pairs exchange halves and add them up, then quarters of these and so on; then sums
 *            come back the same way. 2 log2(n) rounds (Thakur, Rabenseifner & Gropp 2005,
 *            "Optimization of collective communication operations in MPICH", section 4.4: recursive
 *            halving and doubling). Of members beyond a power of two each first gives its array to
 *            a neighbour, and is given the sum at the end.
 *
 *   pair     Of two members each sends its whole array, and keeps what it takes beside its own,
 *            until the caller adds them up: the same bytes as in a ring of two, in one round.
 *   direct   Each member owns a part of the array. It takes that part of all others, makes the
 *            weighted sum of them and of its own in one pass, in the order of members, and sends
 *            it to all. The same bytes as in a ring, and each is read once where a ring adds it up
 *            on its way (Thakur, Rabenseifner & Gropp 2005, section 4.3: pairwise exchange). What
 *            is taken is kept: members that map each other's memory copy nothing. The array stays
 *            as it was.
 *
 * Invariants
 *   A1  the order of additions depends on the number of members, the length and the plan alone:
 *       sums have the same bits at all members, whatever arrives first
 *   A2  what was sent is not written again before the receiver has sent something that depends on
 *       it, or the next sum begins
 *
 * Threading: belongs to the thread of its worker.
 */
#ifndef WF_WORKER_EXCHANGE_ALL_REDUCE_H
#define WF_WORKER_EXCHANGE_ALL_REDUCE_H

#include "common/base/status.h"
#include "common/tensor/buf.h"
#include <stdbool.h>
#include <stdint.h>

enum { WF_REDUCE_MEMBERS_MOST = 1024 };

typedef enum wf_reduce_way {
    WF_REDUCE_BY_SIZE = 0,
    WF_REDUCE_RING,
    WF_REDUCE_HALVING,
    WF_REDUCE_PAIR, /* two members */
    WF_REDUCE_DIRECT
} wf_reduce_way;

/* "size", "ring", "halving", "pair" or "direct". */
const char *wf_reduce_way_name(wf_reduce_way way);

/* What a member does in a round. It may have nothing to send, or nothing to take. */
typedef struct wf_reduce_round {
    bool sends, takes;
    bool adds;   /* what is taken is added; else it replaces, */
    bool keeps;  /* or stays where it is, and later rounds go on before it is there */
    bool of_sum; /* what it sends and takes is of sums: they are made of all that earlier rounds
                    keep */
    uint32_t to, from;
    uint64_t send_at, send_n, take_at, take_n; /* elements of the array */
} wf_reduce_round;

typedef struct wf_reduce_plan {
    wf_reduce_round *rounds; /* [n_rounds] */
    uint32_t n_rounds;       /* the same at all members */
    uint32_t keeps[2];       /* rounds that keep what they take; and of them, those of sums */
    uint32_t members, me;
    uint64_t own_at, own_n; /* direct: the part that this member sums */
} wf_reduce_plan;

/* The plan of member `me` of `members` for arrays of `count` elements. WF_REDUCE_BY_SIZE takes the
 * ring for long arrays, else halving. Close it after an error as well. Errors: WF_NOMEM; WF_INVALID
 * for a member that there is not, or too many. */
WF_MUST_USE wf_status wf_reduce_plan_make(wf_reduce_way way, uint32_t members, uint32_t me,
                                          uint64_t count, wf_reduce_plan *out, wf_err *err);
void wf_reduce_plan_close(wf_reduce_plan *p);

/* A sum under way. */
typedef struct wf_reduce {
    const wf_reduce_plan *plan;
    float *data;      /* NULL: this member's own array is not there yet */
    float weight;     /* direct: of that array in the sum; */
    float *sum;       /* where the sum of the own part is made [own_n]; */
    bool is_summed;   /* it is */
    uint32_t round;   /* the one that is next, or under way; n_rounds: all is sent */
    bool sent;        /* of that round */
    uint32_t kept[2]; /* as `keeps` of the plan: so many have arrived */
    struct wf_reduce_held {
        wf_buf *buf; /* a reference; NULL: nothing is held */
        const uint8_t *bytes;
        float weight;
    } * held; /* [n_rounds]: messages that arrived before their round, or are kept */
} wf_reduce;

/* A message to be sent: elements [at, at + n) of the array. */
typedef struct wf_reduce_message {
    uint32_t to, round;
    uint64_t at, n;
    bool of_sum;  /* which lie in the sum of the own part; else in the array */
    float weight; /* of the array; to be put with it */
} wf_reduce_message;

/* What has arrived: n elements, float32 at any address, in `buf`. */
typedef struct wf_reduce_arrival {
    wf_buf *buf;
    const uint8_t *bytes;
    uint64_t n;
    float weight; /* direct: as it was sent */
} wf_reduce_arrival;

/* A sum that waits for its array. The plan is borrowed. Close it after an error as well. Errors:
 * WF_NOMEM. */
WF_MUST_USE wf_status wf_reduce_init(wf_reduce *r, const wf_reduce_plan *plan, wf_err *err);
/* Forgets what is held. */
void wf_reduce_close(wf_reduce *r);
/* The array [count] is there; it is borrowed until the sum has replaced it, and longer as far as
 * messages are not acknowledged. Of a direct sum it counts `weight` times, and `sum` [own_n] is
 * borrowed as well; other plans add up the arrays as they are. */
void wf_reduce_begin(wf_reduce *r, float *data, float weight, float *sum);
/* A message of another member has arrived; a reference to its buffer is kept until it is used.
 * Errors: WF_PROTO for one that the plan does not expect, or a second one; the sum is as it was. */
WF_MUST_USE wf_status wf_reduce_put(wf_reduce *r, uint32_t from, uint32_t round,
                                    const wf_reduce_arrival *what, wf_err *err);
/* Goes on as far as possible up to the next message to be sent: false when there is none now. */
bool wf_reduce_next(wf_reduce *r, wf_reduce_message *out);
/* Whether the array holds the sum, or what is kept is there, and all messages of this member were
 * given out. */
bool wf_reduce_is_done(const wf_reduce *r);
/* The member whose message is waited for; UINT32_MAX: none. */
uint32_t wf_reduce_late(const wf_reduce *r);
/* What a pair has taken, [count] float32 at any address, until the sum ends. */
const uint8_t *wf_reduce_kept(const wf_reduce *r);
/* A direct sum that is done, from element `at` on: *n elements, float32 at any address, until the
 * sum ends. */
const uint8_t *wf_reduce_sum_at(const wf_reduce *r, uint64_t at, uint64_t *n);
/* Ends a sum that is done: it waits for the next array. What has arrived for it would be lost: two
 * sums that follow each other have two of these. */
void wf_reduce_again(wf_reduce *r);

#endif
