/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/ops.h - the rows of the table, declared from the list in meson.build, and what
 * several operations share. */
#ifndef WF_GRAPH_OPS_OPS_H
#define WF_GRAPH_OPS_OPS_H

#include "common/graph/emit.h"
#include "common/graph/op.h"

#define WF_OP(name) extern const wf_op wf_op_##name;
#include "common/graph/ops/rows.def"
#undef WF_OP

/* A row of the table for an operation of n_in_ inputs and one output, element by element; further
 * fields (attributes, gradient) follow. */
#define WF_ELEMENTWISE(domain_, name_, since_, n_in_, infer_, ...)                                 \
    {                                                                                              \
        .name = name_, .domain = domain_, .since = since_, .n_in_min = n_in_, .n_in_max = n_in_,   \
        .n_out_min = 1, .n_out_max = 1, .flags = WF_OP_ELEMENTWISE | WF_OP_FOLDABLE,               \
        .infer = infer_, __VA_ARGS__                                                               \
    }

/* The same for one that takes least_in to most_in inputs, and is not element by element. */
#define WF_FOLDABLE(domain_, name_, since_, least_in, most_in, infer_, ...)                        \
    {                                                                                              \
        .name = name_, .domain = domain_, .since = since_, .n_in_min = least_in,                   \
        .n_in_max = most_in, .n_out_min = 1, .n_out_max = 1, .flags = WF_OP_FOLDABLE,              \
        .infer = infer_, __VA_ARGS__                                                               \
    }

/* Gradient of what moves elements into another shape, keeping their order: Reshape and its kin. */
wf_status wf_grad_reshape_back(wf_grads *g, const wf_node *n, wf_err *err);
/* Gradient of Max and Min: inputs that are equally extreme share it, as in PyTorch. */
wf_status wf_grad_extreme(wf_grads *g, const wf_node *n, wf_err *err);
/* Output 0 like input 0, which is a number of any kind. */
wf_status wf_infer_like_number(wf_graph *g, wf_node *n, wf_err *err);
/* dy, of an operation that reduced input 0 with attr keepdims 0, with the reduced axes of size 1
 * put back, so that it broadcasts over input 0; *mask is the reduced axes. NULL after a failure. */
wf_value *wf_grad_unreduce(wf_grads *g, const wf_node *n, uint32_t *mask, wf_err *err);
/* The same for v, a value of the shape of the operation's output. */
wf_value *wf_grad_unreduce_value(wf_grads *g, const wf_node *n, wf_value *v, uint32_t *mask,
                                 wf_err *err);
/* attrs of the Reduce operations, and the upgrade of those whose axes are an attribute below opset
 * 18. */
extern const wf_attr_row wf_reduce_attrs[];
wf_status wf_upgrade_reduce(wf_graph *g, wf_node *n, int64_t from, wf_err *err);
/* Indices lie within data but along `axis`: GatherElements, ScatterElements. Errors: WF_SHAPE. */
WF_MUST_USE wf_status wf_ids_within(const wf_value *data, const wf_value *ids, uint32_t axis,
                                    wf_err *err);
/* attr reduction of the scattering operations. Errors: WF_UNSUPPORTED. */
WF_MUST_USE wf_status wf_check_reduction(const wf_node *n, wf_err *err);
/* attrs mode and padding_mode of GridSample. Errors: WF_UNSUPPORTED. */
WF_MUST_USE wf_status wf_check_sampling(const wf_node *n, wf_err *err);
/* The shape of DepthToSpace and SpaceToDepth (and of their gradients). */
WF_MUST_USE wf_status wf_infer_blocks(wf_node *n, bool to_space, wf_err *err);
/* A list attribute, as opsets before the operation's own have it, becomes input 1. */
WF_MUST_USE wf_status wf_upgrade_list(wf_graph *g, wf_node *n, const char *name, wf_err *err);
/* The upgrade of those whose attr axes became input 1 with opset 13. */
wf_status wf_upgrade_axes(wf_graph *g, wf_node *n, int64_t from, wf_err *err);

#endif
