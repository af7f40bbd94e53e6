/* SPDX-License-Identifier: Apache-2.0 */
/* common/session/remote_unit.h - a run of a session's graph while it is prepared; for remote.c and
 * fragments.c alone. */
#ifndef WF_SESSION_REMOTE_UNIT_H
#define WF_SESSION_REMOTE_UNIT_H

#include "common/session/remote.h"

#define WF_REMOTE_MODEL "the session's graph"

enum { WF_REMOTE_FAR = 64 }; /* Sends and arrivals of one run: fragments have a bit for each */

/* What comes in while the run computes: of a Recv, or of an AssignAdd. */
typedef struct wf_remote_arrival {
    const wf_node *node;
    wf_value *value; /* an input in place of what the node makes */
    wf_value *added; /* by AssignAdd; NULL: it is a Recv */
} wf_remote_arrival;

/* A value that a Send takes away. */
typedef struct wf_remote_leaving {
    const wf_node *node;
    wf_value *value;
} wf_remote_leaving;

typedef struct wf_remote_unit {
    const wf_remote_run *run;
    wf_remote *r;
    wf_graph *g;       /* without operations on variables, which are the last of its inputs */
    bool *needed;      /* [g->n_nodes] */
    wf_value **wanted; /* [n_wanted]: what the run is to give or to assign, each once */
    size_t n_wanted;
    wf_value **results;     /* [n_fetches]: what a fetch is; NULL: the variable after a write */
    wf_value **written;     /* [n_writes]: what is assigned */
    const wf_node **writer; /* [n_writes]: by which node */
    wf_remote_arrival arrivals[WF_REMOTE_FAR];
    wf_remote_leaving leaving[WF_REMOTE_FAR];
    size_t n_arrivals, n_leaving;
    wf_fed fed;         /* by the inputs that are no variables */
    wf_tensor **blanks; /* [n_blanks]: shapes of the variables, and then of the arrivals */
    size_t n_blanks, n_variables;
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

/* The worker of "/job:worker/task:N". Errors: WF_NOTFOUND when the cluster has none of that
 * number. */
WF_MUST_USE wf_status wf_remote_worker(const wf_remote_unit *u, const wf_node *n, const char *text,
                                       uint32_t *out, wf_err *err);

/* far.c: takes a Send, a Recv, or an AssignAdd whose result is computed with out of the graph, and
 * lists it. Errors: as wf_remote_prepare. */
WF_MUST_USE wf_status wf_remote_settle_send(wf_remote_unit *u, wf_node *n, wf_err *err);
WF_MUST_USE wf_status wf_remote_settle_recv(wf_remote_unit *u, wf_node *n, wf_err *err);
WF_MUST_USE wf_status wf_remote_settle_sum(wf_remote_unit *u, wf_node *n, wf_err *err);
/* Makes the arrivals inputs, behind the variables. Errors: WF_NOMEM, WF_FULL. */
WF_MUST_USE wf_status wf_remote_add_arrivals(wf_remote_unit *u, wf_err *err);
/* What comes in place of what n made; NULL: nothing does. */
wf_remote_arrival *wf_remote_arrival_of(wf_remote_unit *u, const wf_node *n);
/* The arrival that the value is, its place in *at. */
bool wf_remote_arrives(const wf_remote_unit *u, const wf_value *v, size_t *at);
/* Fills in the fields of a Send or Recv of the run; strings live as long as u->r. */
WF_MUST_USE wf_status wf_remote_fill_send(wf_remote_unit *u, size_t at, wf_remote_send *out,
                                          wf_err *err);
WF_MUST_USE wf_status wf_remote_fill_receive(wf_remote_unit *u, size_t at, wf_remote_receive *out,
                                             wf_err *err);

/* fragments.c: marks in u->needed what is needed without operations on variables, whose values are
 * settled. */
WF_MUST_USE wf_status wf_remote_mark_settled(wf_remote_unit *u, wf_err *err);
/* fragments.c: cuts what is needed into fragments, and compiles them. Errors: as
 * wf_remote_prepare. */
WF_MUST_USE wf_status wf_remote_compile(wf_remote_unit *u, char unfed[WF_UNFED_NAME], wf_err *err);

#endif
