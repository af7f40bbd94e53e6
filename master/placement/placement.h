/* SPDX-License-Identifier: Apache-2.0 */
/* master/placement/placement.h - which slice is on which ps, what slices cost there, and the moves
 * that the master orders, to level the load or since a person asks for one.
 *
 * The life cycle of balances:
 *   idle --begun--> level --tilted--> tilted --levelled--> level
 *   level, tilted, resting --ordered--> moving
 *   moving --moved--> resting
 *   moving --refused--> resting
 *   resting --rested--> level
 *   level, tilted, moving, resting --ended--> idle
 *
 * idle: no job runs. tilted: a ps has more load than the others; slices move when it had for some
 * time. moving: a slice is on its way, and no checkpoint begins; nothing but the giver's word ends
 * that, or the end of the generation, as when either ps dies. resting: until the next move, for
 * workers ask their ps anew after each.
 *
 * A generation begins with the places of its set-up. A master that starts again learns from the
 * registers of the ps what has moved since: nothing of it is in the journal.
 *
 * Invariants
 *   L1  one slice is on its way at a time
 *   L2  a version of the map is given to one move, and is higher than all that any ps has told of
 *   L3  no move is ordered while a cut is open or wanted, and no cut is opened during a move
 *   L4  a slice that the job has pinned is not moved
 */
#ifndef WF_MASTER_PLACEMENT_PLACEMENT_H
#define WF_MASTER_PLACEMENT_PLACEMENT_H

#include "master/job/job.h"
#include "master/placement/balance.h"
#include <jansson.h>

typedef enum wf_balance_state {
    WF_BALANCE_IDLE = 0,
    WF_BALANCE_LEVEL,
    WF_BALANCE_TILTED,
    WF_BALANCE_MOVING,
    WF_BALANCE_RESTING
} wf_balance_state;

typedef enum wf_balance_event {
    WF_BALANCE_BEGUN = 0,
    WF_BALANCE_TILTS,
    WF_BALANCE_LEVELLED,
    WF_BALANCE_ORDERED,
    WF_BALANCE_MOVED,
    WF_BALANCE_REFUSED,
    WF_BALANCE_RESTED,
    WF_BALANCE_ENDED
} wf_balance_event;

extern const wf_states wf_balance_states;

enum {
    WF_PLACEMENT_BUSIEST = 64,       /* slices of a ps that it tells of each by itself */
    WF_PLACEMENT_BARRED = 16,        /* slices that are left alone after a refusal */
    WF_MOVE_BYTES = 16 * 1024 * 1024 /* of a larger slice workers would wait too long */
};

/* What a ps has told last of its slices, for a second; and what moves since have changed. */
typedef struct wf_placement_ps {
    int64_t told_ns;        /* 0: nothing, in this generation */
    uint32_t slices, moves; /* moves: since it told */
    uint64_t held_bytes;
    double pulled, pushed, parts; /* a second */
    double applying;              /* share of the time in which it applied updates */
    wf_balance_slice busiest[WF_PLACEMENT_BUSIEST];
    uint32_t n;
} wf_placement_ps;

typedef struct wf_placement_slice {
    uint32_t ps, version;
} wf_placement_slice;

typedef struct wf_placement_change {
    uint32_t slice, ps, version;
} wf_placement_change;

typedef struct wf_placement {
    wf_balance_state state; /* written by wf_placement_enter alone */
    uint32_t number;        /* of the job and its generation that all is about; 0: none */
    uint16_t generation;
    uint32_t version;           /* the highest of the map that is known (L2) */
    wf_placement_slice *slices; /* [n_slices] */
    uint32_t n_slices, n_ps;
    wf_placement_ps *ps; /* [n_ps] */
    wf_balance_ps *view; /* [n_ps]: scratch */
    /* what registers have told before the set-up was known */
    wf_placement_change *told;
    uint32_t n_told, told_version, told_number;
    uint16_t told_generation;
    struct {
        uint32_t slice, from, to, version;
        uint64_t giver; /* its incarnation */
        int64_t since_ns;
        double load;
        uint64_t held_bytes;
        bool asked; /* by a person */
    } move;
    bool levelling;                        /* a series of moves has begun, and is not over */
    int64_t tilted_ns, rest_ns, looked_ns; /* since when; until when; the last look at loads */
    uint32_t series, refusals;             /* moves of the series; refusals in a row */
    struct {
        uint32_t slice;
        int64_t until_ns;
    } barred[WF_PLACEMENT_BARRED];
    uint32_t n_barred;
    /* of the generation */
    uint32_t n_moved, n_refused;
    uint64_t frozen_most_ns, moved_bytes;
} wf_placement;

/* For a number of ps; the caller's. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_placement_new(uint32_t n_ps, wf_placement **out, wf_err *err);
void wf_placement_free(wf_placement **p);

/* Does what is due for the job in hand, which runs. `quiet`: no cut is open or wanted. Errors:
 * WF_NOMEM. */
WF_MUST_USE wf_status wf_placement_advance(wf_master *m, wf_job *j, bool quiet, wf_err *err);
/* No job runs, or it is set up anew. */
void wf_placement_end(wf_master *m);
/* Whether what is known is of that job and its generation. */
bool wf_placement_is_of(const wf_placement *p, const wf_job *j);
/* L3: whether a slice is on its way. */
bool wf_placement_is_moving(const wf_master *m);

/* A ps registers with the generation in hand. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_placement_on_register(wf_master *m, const wf_job *j, const wf_member *who,
                                               const Weft__Register *r, wf_err *err);
/* What a ps says of its slices, and of a move. Errors: WF_PROTO, WF_NOMEM. */
WF_MUST_USE wf_status wf_placement_on_load(wf_master *m, const wf_member *who, const wf_msg *msg,
                                           wf_err *err);
WF_MUST_USE wf_status wf_placement_on_moved(wf_master *m, wf_job *j, const wf_member *who,
                                            const wf_msg *msg, wf_err *err);

/* A person asks that a slice be moved: number `at` of a variable. Its answer is that the move is
 * ordered; an event of the job says what came of it. Errors: WF_USAGE, WF_NOTFOUND; WF_INVALID
 * when the job does not run; WF_AGAIN when it cannot be now. */
WF_MUST_USE wf_status wf_placement_ask(wf_master *m, wf_job *j, const char *variable, uint32_t at,
                                       uint32_t to, bool quiet, wf_err *err);

/* shown.c: what a person sees of it, of a job that it is of; NULL when there is no memory. */
json_t *wf_placement_json(const wf_master *m, const wf_job *j);

#endif
