/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/uses.h - the lists of who reads a value (G4), as graph.c and order.c keep them. */
#ifndef WF_GRAPH_USES_H
#define WF_GRAPH_USES_H

#include "common/base/status.h"
#include "common/graph/graph.h"

/* Puts a node's inputs into the lists of their values; the node is in none yet. Errors: WF_NOMEM.
 */
WF_MUST_USE wf_status wf_uses_link(wf_graph *g, wf_node *n, wf_err *err);
/* Takes them out again. */
void wf_uses_unlink(wf_node *n);
/* Errors: WF_INVALID: an input is in no list. */
WF_MUST_USE wf_status wf_uses_check(const wf_node *n, wf_err *err);

#endif
