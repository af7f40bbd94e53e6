/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/decisions.h - whose gradients make up each step that workers make together, where
 * some of them need not be waited for. One ps decides (ps/together.h) and tells the workers; each
 * of them tells the other ps. A worker that is about to begin hears the newest before those that it
 * is told again, and passes them on like that: so each says which one it follows.
 *
 * Invariants
 *   D1  clocks are decided in rising order, each once; a later word on one changes nothing
 *   D2  nobody goes from a decision to another than the one that follows it, in whatever order
 *       they are heard
 */
#ifndef WF_WIRE_DECISIONS_H
#define WF_WIRE_DECISIONS_H

#include "common/base/status.h"
#include <stdbool.h>
#include <stdint.h>

/* So many of the last are kept: no worker begins a step before each slice has applied the one
 * before the last. */
enum { WF_DECISIONS = 16 };

typedef struct wf_decision {
    uint32_t clock, before; /* before: that of the decision which it follows, 0 for the first */
    uint32_t n;
    uint64_t *workers; /* [n]: incarnations */
} wf_decision;

typedef struct wf_decisions {
    wf_decision rows[WF_DECISIONS]; /* [n], by rising clock */
    uint32_t n;
} wf_decisions;

void wf_decisions_close(wf_decisions *d);
/* The clock of the last decision; 0: there is none. */
uint32_t wf_decisions_last(const wf_decisions *d);
/* Adds a copy of one; *added is false for one that is known, or older than all that are kept.
 * Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_decisions_add(wf_decisions *d, const wf_decision *row, bool *added,
                                       wf_err *err);
/* The first that is later than `clock`; NULL: none is known. */
const wf_decision *wf_decisions_after(const wf_decisions *d, uint32_t clock);
/* The one that follows `clock` (D2); NULL: it is not known. */
const wf_decision *wf_decisions_next(const wf_decisions *d, uint32_t clock);

#endif
