/* SPDX-License-Identifier: Apache-2.0 */
/* common/session/remote_unit.h - a run of a session's graph while it is prepared; for remote.c and
 * fragments.c alone. */
#ifndef WF_SESSION_REMOTE_UNIT_H
#define WF_SESSION_REMOTE_UNIT_H

#include "common/session/remote.h"

#define WF_REMOTE_MODEL "the session's graph"

typedef struct wf_remote_unit {
    const wf_remote_run *run;
    wf_remote *r;
    wf_graph *g;       /* without operations on variables, which are the last of its inputs */
    bool *needed;      /* [g->n_nodes] */
    wf_value **wanted; /* [n_wanted]: what the run is to give or to assign, each once */
    size_t n_wanted;
    wf_value **results; /* [n_fetches]: what a fetch is; NULL: the variable after a write */
    wf_value **written; /* [n_writes]: what is assigned */
    wf_fed fed;         /* by the inputs that are no variables */
    wf_tensor **blanks; /* [n_blanks]: shapes of the variables */
    size_t n_blanks;
} wf_remote_unit;

/* Where the variables begin among the inputs. */
static inline size_t wf_remote_first_variable(const wf_remote_unit *u)
{
    return u->g->n_inputs - u->n_blanks;
}

/* Marks in u->needed the nodes that make wanted values, and in values [of the graph] what they read
 * in turn. */
static inline void wf_remote_mark_needed(wf_remote_unit *u, bool values[])
{
    for (size_t i = u->g->n_nodes; i-- > 0;) {
        const wf_node *n = u->g->nodes[i];

        for (uint32_t k = 0; k < n->n_out; k++)
            u->needed[i] |= n->out[k] && values[n->out[k]->index];
        for (uint32_t k = 0; u->needed[i] && k < n->n_in; k++)
            if (n->in[k])
                values[n->in[k]->index] = true;
    }
}
/* A copy of a name that lives as long as u->r. */
WF_MUST_USE wf_status wf_remote_name(wf_remote_unit *u, const char *name, const char **out,
                                     wf_err *err);

/* fragments.c: cuts what is needed into fragments, and compiles them. Errors: as
 * wf_remote_prepare. */
WF_MUST_USE wf_status wf_remote_compile(wf_remote_unit *u, char unfed[WF_UNFED_NAME], wf_err *err);

#endif
