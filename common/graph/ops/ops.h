/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/ops.h - the rows of the table, declared from the list in meson.build, and what
 * several operations share. */
#ifndef WF_GRAPH_OPS_OPS_H
#define WF_GRAPH_OPS_OPS_H

#include "common/graph/emit.h"
#include "common/graph/op.h"

#define WF_OP(name, file) extern const wf_op wf_op_##name;
#include "common/graph/ops/rows.def"
#undef WF_OP

/* A row of the table for an operation of least_in to most_in inputs and least_out to most_out
 * outputs; further fields (attributes, gradient) follow. */
#define WF_OPERATION(domain_, name_, since_, least_in, most_in, least_out, most_out, flags_,       \
                     infer_, ...)                                                                  \
    {                                                                                              \
        .name = name_, .domain = domain_, .since = since_, .n_in_min = least_in,                   \
        .n_in_max = most_in, .n_out_min = least_out, .n_out_max = most_out, .flags = flags_,       \
        .infer = infer_, __VA_ARGS__                                                               \
    }
/* The same for one output that may be computed at compile time. */
#define WF_FOLDABLE(domain, name, since, least_in, most_in, infer, ...)                            \
    WF_OPERATION(domain, name, since, least_in, most_in, 1, 1, WF_OP_FOLDABLE, infer, __VA_ARGS__)
/* The same, element by element, for n_in inputs. */
#define WF_ELEMENTWISE(domain, name, since, n_in, infer, ...)                                      \
    WF_OPERATION(domain, name, since, n_in, n_in, 1, 1, WF_OP_ELEMENTWISE | WF_OP_FOLDABLE, infer, \
                 __VA_ARGS__)

/* The gradient of a row that one node `op` computes. `takes` names its inputs in order: d0 is d
 * loss / d output 0, x1 is input 1, or nothing if that is absent, and y0 is output 0. Its output i
 * is the gradient of input i; it has those attributes of the node that it knows. */
#define WF_GRAD_NODE(op, takes) .grad = wf_grad_by_node, .grad_op = op, .grad_takes = takes
wf_status wf_grad_by_node(wf_grads *g, const wf_node *n, wf_err *err);
/* The same where op or takes depend on the node; `more`, unless NULL, is a further attribute. */
wf_status wf_grad_node(wf_grads *g, const wf_node *n, const char *op, const char *takes,
                       const wf_attr *more, wf_err *err);

/* Gradient of what moves elements into another shape, keeping their order: Reshape and its kin. */
wf_status wf_grad_reshape_back(wf_grads *g, const wf_node *n, wf_err *err);
/* Output 0 like input 0, which is a number of any kind. */
wf_status wf_infer_like_number(wf_graph *g, wf_node *n, wf_err *err);
/* attr reduction of the scattering operations. Errors: WF_UNSUPPORTED. */
WF_MUST_USE wf_status wf_check_reduction(const wf_node *n, wf_err *err);
/* Gradient of a scattering operation: `gather` takes from where it put. */
wf_status wf_grad_scatter(wf_grads *g, const wf_node *n, const char *gather, wf_err *err);
/* A list attribute, as opsets before the operation's own have it, becomes input 1. */
WF_MUST_USE wf_status wf_upgrade_list(wf_graph *g, wf_node *n, const char *name, wf_err *err);
/* The upgrade of those whose attr axes became input 1 with opset 13. */
wf_status wf_upgrade_axes(wf_graph *g, wf_node *n, int64_t from, wf_err *err);

#endif
