/* SPDX-License-Identifier: Apache-2.0 */
/* ps/life.h - the life cycles of a ps: of the job that it holds, and of the slice that it gives
 * away.
 *
 * The life cycle of set-ups:
 *   empty --begun--> loading --loaded--> serving
 *   empty, loading, serving --cleared--> empty
 *
 * A set-up of a newer generation clears what was there and begins anew; one that fails is cleared.
 *
 * The life cycle of moves:
 *   none --ordered--> dialling --sent--> sent --taken--> none
 *   sent --sent--> same
 *   dialling, sent --kept--> none
 *   dialling, sent --dropped--> none
 *
 * dialling: the slice is served. sent: the other ps may have the slice, and only its word decides.
 * kept: it has refused the state, or the link before it was sent. dropped: the generation is over.
 */
#ifndef WF_PS_LIFE_H
#define WF_PS_LIFE_H

#include "common/log/states.h"

typedef enum wf_ps_state { WF_PS_EMPTY = 0, WF_PS_LOADING, WF_PS_SERVING } wf_ps_state;
typedef enum wf_ps_event { WF_PS_WAS_BEGUN = 0, WF_PS_WAS_LOADED, WF_PS_WAS_CLEARED } wf_ps_event;
extern const wf_states wf_ps_states;

typedef enum wf_move_state { WF_MOVE_NONE = 0, WF_MOVE_DIALLING, WF_MOVE_SENT } wf_move_state;
typedef enum wf_move_event {
    WF_MOVE_WAS_ORDERED = 0,
    WF_MOVE_WAS_SENT,
    WF_MOVE_WAS_TAKEN,
    WF_MOVE_WAS_KEPT,
    WF_MOVE_WAS_DROPPED
} wf_move_event;
extern const wf_states wf_move_states;

#endif
