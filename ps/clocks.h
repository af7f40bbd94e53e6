/* SPDX-License-Identifier: Apache-2.0 */
/* ps/clocks.h - how far workers are, where none may be more than so many steps ahead of another:
 * stale synchronous parallel (Ho, Cipar, Cui and others, "More Effective Distributed ML via a Stale
 * Synchronous Parallel Parameter Server", NIPS 2013, section 2).
 *
 * A worker's clock is the number of its step, shifted: whoever joins begins at the smallest clock
 * there is, whatever steps it has made. The shift is the worker's, and the same on every ps; so the
 * worker with the smallest clock of all waits for nobody, and no two wait for each other. A worker
 * that has nothing to compute leaves, and nobody waits for what it would do after that.
 *
 * Invariants
 *   C1  a worker at clock c is given a slice when each other worker's steps up to clock c - 1 - s
 *       are applied to it (s: the staleness)
 *   C2  a worker's shift and the clock that it works at never go down while it is in
 *   C3  a join has one answer: the worker may work by the first when it asks a second time
 *   C4  what another ps knows of an earlier join of a worker changes nothing
 */
#ifndef WF_PS_CLOCKS_H
#define WF_PS_CLOCKS_H

#include "common/base/status.h"
#include "ps/seen.h"
#include <stdbool.h>
#include <stdint.h>

typedef struct wf_clock {
    uint64_t incarnation;
    int64_t shift;   /* the clock of a step, minus the step's number */
    uint32_t at;     /* the clock of the step that it works at */
    uint32_t last;   /* that of its last step; UINT32_MAX while it is in */
    uint32_t number; /* of the join that all this is of; 0: it is not known */
    bool here;       /* it has joined here by that number, and was answered */
} wf_clock;

typedef struct wf_clocks {
    wf_clock *rows; /* [n]: who is in */
    uint32_t n, room;
    uint32_t staleness;
    uint32_t done; /* where steps are made together: the largest clock that a slice has applied */
} wf_clocks;

void wf_clocks_close(wf_clocks *c);
/* A worker that is in; NULL: it is not. */
const wf_clock *wf_clocks_find(const wf_clocks *c, uint64_t incarnation);
/* A worker comes in, whose next step is `step`, or asks again by the number of a join that it has
 * asked before (C3). *clock is the smallest of the others, and after `done`, which its step has
 * from here on. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_clocks_join(wf_clocks *c, uint64_t incarnation, uint32_t number,
                                     uint32_t step, uint32_t *clock, wf_err *err);
/* A worker says which clock its step has. *moved: others may wait for less now. Errors: WF_NOMEM.
 */
WF_MUST_USE wf_status wf_clocks_note(wf_clocks *c, uint64_t incarnation, uint32_t step,
                                     uint32_t clock, bool *moved, wf_err *err);
/* What another ps knows of a worker, which has given a slice: the later join counts (C4), and of
 * the same one the later clock. When all have left the next join is at clock 1 again, so that a
 * clock does not tell which join is the later. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_clocks_learn(wf_clocks *c, const wf_clock *row, wf_err *err);
/* It leaves, and its last step was that of clock `last`, parts of which may be on their way; 0: it
 * makes none that anybody is to wait for. Whether it was in. */
bool wf_clocks_leave(wf_clocks *c, uint64_t incarnation, uint32_t last);
/* Who holds back a worker at `clock` from a slice with these steps applied (C1), or NULL. */
const wf_clock *wf_clocks_late(const wf_clocks *c, uint64_t incarnation, uint32_t clock,
                               const wf_seen *seen);
/* The number of the step that a worker makes at `clock`; 0: it was not in then. */
static inline uint32_t wf_clock_step(const wf_clock *row, int64_t clock)
{
    int64_t step = clock - row->shift;

    return step < 0 ? 0 : step > UINT32_MAX ? UINT32_MAX : (uint32_t)step;
}

#endif
