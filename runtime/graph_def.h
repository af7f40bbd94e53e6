/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/graph_def.h - a graph as TensorFlow's GraphDef, which TensorBoard's Graphs tab draws: its
 * nodes, inputs, variables and constants with their edges and shapes, without weights.
 *
 * The tab groups by '/' and tells outputs apart by ':', so names lose a '/' in front, and ':' is
 * '_'; of two that are then equal the second gets a number. */
#ifndef WF_RUNTIME_GRAPH_DEF_H
#define WF_RUNTIME_GRAPH_DEF_H

#include "common/base/bytes.h"
#include "common/graph/graph.h"

/* Appends the packed message. Errors: WF_NOMEM; WF_UNSUPPORTED for a graph of more nodes than a
 * browser draws. */
WF_MUST_USE wf_status wf_graph_def_write(const wf_graph *g, wf_bytes *out, wf_err *err);

#endif
