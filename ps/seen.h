/* SPDX-License-Identifier: Apache-2.0 */
/* ps/seen.h - which steps of which worker incarnations a slice has applied.
 *
 * A worker that misses an answer sends its part again, perhaps by another link. For each
 * incarnation there is a low-water step (all up to it are applied) and a window of 64 steps above
 * it.
 *
 * Invariant: for each (incarnation, step), wf_seen_mark succeeds at most once.
 */
#ifndef WF_PS_SEEN_H
#define WF_PS_SEEN_H

#include "common/base/bytes.h"
#include "common/base/status.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct wf_seen_row {
    uint64_t incarnation;
    uint32_t low;    /* every step up to this one is applied */
    uint64_t window; /* bit i: step low + 1 + i is applied */
} wf_seen_row;

typedef struct wf_seen {
    wf_seen_row *rows; /* [n] */
    uint32_t n, room;
    uint32_t *table; /* [2 * room], by incarnation: 1 + a row's place, 0 free; NULL while few */
} wf_seen;

void wf_seen_close(wf_seen *s);
/* Whether the step is applied already; true for step 0, false beyond the window. */
bool wf_seen_before(const wf_seen *s, uint64_t incarnation, uint32_t step);
/* Whether every step up to and including this one is applied; true for step 0. */
bool wf_seen_all(const wf_seen *s, uint64_t incarnation, uint32_t step);
/* Marks a step. Errors: WF_EXISTS when it is applied already, WF_FULL when it is more than 64 steps
 * ahead of the low-water mark, WF_NOMEM. Nothing is marked then. */
WF_MUST_USE wf_status wf_seen_mark(wf_seen *s, uint64_t incarnation, uint32_t step, wf_err *err);
/* Appends all rows, to be read by wf_seen_decode: it moves with its slice. 20 bytes for each
 * incarnation, little-endian: incarnation u64, low u32, window u64. */
void wf_seen_encode(const wf_seen *s, wf_bytes *out);
/* Fills an empty one. Errors: WF_PROTO for bytes that are no such rows, WF_NOMEM. */
WF_MUST_USE wf_status wf_seen_decode(wf_seen *s, const uint8_t *bytes, size_t n, wf_err *err);
/* Forgets an incarnation that a view has removed: it never pushes again. */
void wf_seen_forget(wf_seen *s, uint64_t incarnation);

#endif
