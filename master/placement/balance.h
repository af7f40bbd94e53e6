/* SPDX-License-Identifier: Apache-2.0 */
/* master/placement/balance.h - how unequal the ps are loaded, and which slice would level it most.
 *
 * The load of a slice is its traffic, bytes pulled and pushed a second: its size by how often it is
 * touched. No state: whoever asks decides when (placement.h).
 */
#ifndef WF_MASTER_PLACEMENT_BALANCE_H
#define WF_MASTER_PLACEMENT_BALANCE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct wf_balance_slice {
    uint32_t slice;
    bool stays; /* it is not to be moved */
    uint64_t held_bytes;
    double load; /* bytes a second */
} wf_balance_slice;

typedef struct wf_balance_ps {
    bool known;  /* what it has told is of late */
    double load; /* of all its slices */
    uint64_t held_bytes;
    const wf_balance_slice *slices; /* [n]: its busiest */
    uint32_t n;
} wf_balance_ps;

typedef struct wf_balance_move {
    uint32_t from, to;
    wf_balance_slice slice;
} wf_balance_move;

/* The load of the ps with most of it, *hottest (of equal ones the first), against the mean of all
 * [n]. 0: not all are known, or there is no load. */
double wf_balance_tilt(const wf_balance_ps ps[], uint32_t n, uint32_t *hottest);

/* The move from the ps with the most load to the one with the least that leaves the least on the
 * fuller of the two; of equal ones that of the fewest bytes, then of the lowest slice. No move when
 * it would take less than a fiftieth of the mean from the fuller one, or the taker would hold more
 * bytes than the giver does and than one and a half of the mean. */
bool wf_balance_choose(const wf_balance_ps ps[], uint32_t n, wf_balance_move *out);

#endif
