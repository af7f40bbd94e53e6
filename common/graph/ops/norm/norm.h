/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/norm/norm.h - what the normalisations share: input 0 is the data, 1 the scale, 2
 * the bias; the gradient node gives those of all three at once. */
#ifndef WF_GRAPH_OPS_NORM_H
#define WF_GRAPH_OPS_NORM_H

#include "common/graph/emit.h"
#include "common/graph/op.h"

/* dy, x, scale, ... -> dx, dscale, dbias (as scale). */
wf_status wf_infer_norm_grad(wf_graph *g, wf_node *n, wf_err *err);
/* Float inputs [0, count) of one dtype, those that are there. */
WF_MUST_USE wf_status wf_need_floats(const wf_node *n, uint32_t count, wf_err *err);
/* Inputs [1, count) have one axis each, of the size of axis 1 of input 0. */
WF_MUST_USE wf_status wf_need_per_channel(const wf_node *n, uint32_t count, wf_err *err);

#endif
