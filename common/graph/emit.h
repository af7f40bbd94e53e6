/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/emit.h - building nodes, and gradients out of them.
 *
 * A wf_emit adds nodes to a graph and infers each at once. The first failure stays in it: later
 * calls do nothing and give NULL, and a NULL operand gives NULL, so that a formula reads as one and
 * is checked once, at its end:
 *
 *     wf_emit e = wf_emit_begin(g, "loss", err);
 *     wf_value *d = wf_emit_sub(&e, y, t);
 *     wf_value *loss = wf_emit_reduce_mean(&e, wf_emit_mul(&e, d, d), 0, NULL, false);
 *     WF_TRY(wf_emit_end(&e));
 *
 * Made nodes are called "<hint>/<Op>", made unique; so are their first outputs.
 */
#ifndef WF_GRAPH_EMIT_H
#define WF_GRAPH_EMIT_H

#include "common/base/status.h"
#include "common/graph/graph.h"
#include "common/graph/op.h"
#include "common/tensor/tensor.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct wf_emit {
    wf_graph *g;
    const char *hint; /* borrowed */
    wf_err *err;
    wf_status rc; /* the first failure */
} wf_emit;

wf_emit wf_emit_begin(wf_graph *g, const char *hint, wf_err *err);
/* The first failure, or WF_OK; `err` of wf_emit_begin says what it was. */
WF_MUST_USE wf_status wf_emit_end(const wf_emit *e);

/* Attributes for wf_emit_op; strings and lists are copied by it. */
wf_attr wf_attr_int(const char *name, int64_t value);
wf_attr wf_attr_float(const char *name, float value);
wf_attr wf_attr_string(const char *name, const char *value);
wf_attr wf_attr_ints(const char *name, size_t n, const int64_t values[]);

/* Any operation, by name (ONNX's, else ai.weft's, else ai.onnx.ml's). in [n_in] may hold NULL for
 * an absent optional input; out [n_out] is filled with new values (all NULL after a failure).
 * Returns the node or NULL. */
wf_node *wf_emit_node(wf_emit *e, const char *op, uint32_t n_in, wf_value *const in[],
                      uint32_t n_attrs, const wf_attr attrs[], uint32_t n_out, wf_value *out[]);
/* The same for one output, which it returns. */
wf_value *wf_emit_op(wf_emit *e, const char *op, uint32_t n_in, wf_value *const in[],
                     uint32_t n_attrs, const wf_attr attrs[]);
/* One and two operands, no attributes. */
wf_value *wf_emit_unary(wf_emit *e, const char *op, wf_value *x);
wf_value *wf_emit_binary(wf_emit *e, const char *op, wf_value *a, wf_value *b);

wf_value *wf_emit_add(wf_emit *e, wf_value *a, wf_value *b);
wf_value *wf_emit_sub(wf_emit *e, wf_value *a, wf_value *b);
wf_value *wf_emit_mul(wf_emit *e, wf_value *a, wf_value *b);
wf_value *wf_emit_div(wf_emit *e, wf_value *a, wf_value *b);
wf_value *wf_emit_pow(wf_emit *e, wf_value *a, wf_value *b);
wf_value *wf_emit_neg(wf_emit *e, wf_value *x);
wf_value *wf_emit_exp(wf_emit *e, wf_value *x);
wf_value *wf_emit_log(wf_emit *e, wf_value *x);
wf_value *wf_emit_identity(wf_emit *e, wf_value *x);
wf_value *wf_emit_where(wf_emit *e, wf_value *condition, wf_value *x, wf_value *y);
/* x times a number, by a constant scalar of x's dtype; x itself when factor is 1. */
wf_value *wf_emit_scale(wf_emit *e, wf_value *x, double factor);
wf_value *wf_emit_matmul(wf_emit *e, wf_value *a, wf_value *b);
/* alpha a' b' + beta c; c may be NULL. Attributes at their defaults are left out. */
wf_value *wf_emit_gemm(wf_emit *e, wf_value *a, wf_value *b, wf_value *c, float alpha, float beta,
                       bool trans_a, bool trans_b);
/* n axes, each -rank to rank - 1; n == 0 reduces all. */
wf_value *wf_emit_reduce_sum(wf_emit *e, wf_value *x, uint32_t n, const int64_t axes[],
                             bool keep_dims);
wf_value *wf_emit_reduce_mean(wf_emit *e, wf_value *x, uint32_t n, const int64_t axes[],
                              bool keep_dims);
/* To fixed dims; 0 copies an axis of x and one -1 takes the rest. */
wf_value *wf_emit_reshape(wf_emit *e, wf_value *x, uint32_t rank, const int64_t dims[]);
/* To the shape of ref, also when that is symbolic; x itself when it is that already. */
wf_value *wf_emit_reshape_like(wf_emit *e, wf_value *x, wf_value *ref);
wf_value *wf_emit_unsqueeze(wf_emit *e, wf_value *x, uint32_t n, const int64_t axes[]);
/* perm [rank of x]; output axis i is input axis perm[i]. */
wf_value *wf_emit_transpose(wf_emit *e, wf_value *x, const int64_t perm[]);
/* x itself when it has this dtype. */
wf_value *wf_emit_cast(wf_emit *e, wf_value *x, wf_dtype to);
/* Broadcasts x to the shape of ref; x itself when it is that already. */
wf_value *wf_emit_expand_like(wf_emit *e, wf_value *x, wf_value *ref);
/* Reverse broadcasting: sums x down to the shape of ref, which was broadcast to x's. ReduceSum
 * where the axes are certain, SumToLike where they depend on the run; x itself when there is none.
 */
wf_value *wf_emit_sum_to(wf_emit *e, wf_value *x, wf_value *ref);
/* int64 [rank]: the shape, or a constant when no axis of x is unknown. */
wf_value *wf_emit_shape_of(wf_emit *e, wf_value *x);
/* int64 [1]: the size of one axis. */
wf_value *wf_emit_dim_of(wf_emit *e, wf_value *x, uint32_t axis);

/* Constants: a scalar [], int64 [n], and any tensor (taken, also on failure; *t is NULL then). */
wf_value *wf_emit_scalar(wf_emit *e, wf_dtype dtype, double value);
wf_value *wf_emit_ints(wf_emit *e, uint32_t n, const int64_t values[]);
wf_value *wf_emit_constant(wf_emit *e, const char *hint, wf_tensor **t);

/* True when the two certainly have one shape in every run: equal sizes, or the same symbols. */
bool wf_same_shape(const wf_value *a, const wf_value *b);

/* What a gradient builder (wf_op.grad) works with. Nodes are emitted through wf_grads_emit; the
 * loss of the graph is a scalar, and all gradients have the dtype and shape of their value. */
wf_emit *wf_grads_emit(wf_grads *g);
/* d loss / d output i of n, or NULL when the loss does not depend on it. At least one output has
 * one. */
wf_value *wf_grads_upstream(wf_grads *g, const wf_node *n, uint32_t i);
/* Output i of n; made if nobody wanted it so far (Dropout's mask). */
wf_value *wf_grads_output(wf_grads *g, const wf_node *n, uint32_t i);
/* True when a gradient for input i is asked for: do no work for others. */
bool wf_grads_wanted(const wf_grads *g, const wf_node *n, uint32_t i);
/* Adds to d loss / d input i of n; ignored when it is not wanted. The shape must be the input's:
 * pass what was broadcast through wf_emit_sum_to. Returns the first failure of the emitter. */
wf_status wf_grads_add(wf_grads *g, const wf_node *n, uint32_t i, wf_value *grad);

/* Emits the nodes that compute grads[i] = d loss / d wrt[i], named "grad/<name of wrt[i]>" if that
 * is free, for n values; NULL where the loss does not depend on wrt[i] (integers carry no
 * gradient). `loss` has one element. Only nodes on a path from wrt to loss are visited; one of them
 * without a gradient is WF_UNSUPPORTED, which names the node and its operation. On failure the
 * graph may hold new nodes that nobody uses. */
WF_MUST_USE wf_status wf_graph_differentiate(wf_graph *g, wf_value *loss, wf_value *const wrt[],
                                             size_t n, wf_value *grads[], wf_err *err);

#endif
