/* SPDX-License-Identifier: Apache-2.0 */
/* master/placement/state.h - what the files of this room share; nobody else includes it. */
#ifndef WF_MASTER_PLACEMENT_STATE_H
#define WF_MASTER_PLACEMENT_STATE_H

#include "master/placement/placement.h"

/* places.c: moves the balance along its life cycle. */
void wf_placement_enter(wf_placement *p, wf_balance_event event);
wf_member *wf_placement_find_ps(const wf_master *m, uint32_t index);
/* Sends the order of the move in hand, perhaps again. */
WF_MUST_USE wf_status wf_placement_send(wf_master *m, const wf_member *giver, wf_err *err);
/* The move in hand has ended, by `how`; nothing moves for a while. */
void wf_placement_rest(wf_master *m, wf_balance_event how);

/* Where a ps says that a slice is: of a slice the newest word counts. And what registers have told
 * before the set-up was known. */
void wf_placement_take(wf_placement *p, uint32_t slice, uint32_t ps, uint32_t version);
void wf_placement_take_told(wf_placement *p);
/* What is known of the load of a slice that is to move. */
void wf_placement_fill_load(const wf_placement *p, wf_balance_move *move);

#endif
