/* SPDX-License-Identifier: Apache-2.0 */
/* common/log/states.h - a state machine as data: the states of a life cycle, and the edges that it
 * may take.
 *
 * Whoever owns a life cycle writes its state in one function, which asks wf_states_take for the
 * next state. An edge that the table does not have is a bug in weft and ends the process. So what a
 * peer or a file may cause is looked up with wf_states_next first.
 *
 * The header that declares a table draws it, between a line that ends in "life cycle of NAME:"
 * and the next empty line of the comment. tests/unit/states_doc.c compares the two:
 *
 *   none, open --event--> open --another event--> none
 *   open --an event that changes nothing--> same
 */
#ifndef WF_LOG_STATES_H
#define WF_LOG_STATES_H

#include <stdint.h>

#define WF_STATE(s) (UINT32_C(1) << (s))
enum { WF_STATE_SAME = 32 }; /* as `to`: the state stays as it is */

typedef struct wf_edge {
    uint32_t from; /* set of states: WF_STATE(A) | WF_STATE(B) */
    uint8_t event, to;
} wf_edge;

typedef struct wf_states {
    const char *name;         /* "cuts" */
    const char *const *names; /* [n] of the states, at most 32 */
    const char *const *events;
    const wf_edge *edges; /* at most one for a state and an event */
    uint32_t n, n_events, n_edges;
} wf_states;

/* The lists of a table by name, of arrays. */
#define WF_STATES(what, state_names, event_names, rows)                                            \
    {                                                                                              \
        .name = (what), .names = (state_names), .events = (event_names), .edges = (rows),          \
        .n = sizeof(state_names) / sizeof(*(state_names)),                                         \
        .n_events = sizeof(event_names) / sizeof(*(event_names)),                                  \
        .n_edges = sizeof(rows) / sizeof(*(rows))                                                  \
    }

/* The state that an event leads to; -1 if it cannot happen in state `from`. */
int wf_states_next(const wf_states *s, unsigned from, unsigned event);
/* The same of an event that must be able to happen: anything else aborts. A change of state is
 * logged once, at debug level. `whose` names the one that has the state ("worker/0"; "": none). */
unsigned wf_states_take(const wf_states *s, unsigned from, unsigned event, const char *whose);

#endif
