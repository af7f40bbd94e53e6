/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/infer.h - what the operations' infer functions are made of. For ops/.
 *
 * An infer function finds all outputs cleared (dtype WF_NONE, rank -1) and sets what it can; inputs
 * of unknown rank or dtype leave outputs unknown and are no error. Its errors say what does not
 * fit; wf_infer_node puts the operation and the node's name in front.
 */
#ifndef WF_GRAPH_INFER_H
#define WF_GRAPH_INFER_H

#include "common/base/status.h"
#include "common/graph/graph.h"
#include "common/graph/op.h"
#include <stdbool.h>
#include <stdint.h>

/* Room for wf_value_str in messages. */
enum { WF_VALUE_STR = 192 };

/* Axes. Unknown ones are equal only when both have the same symbol. */
wf_axis wf_axis_of(int64_t size);
wf_axis wf_axis_unknown(int64_t bound);
bool wf_axis_same(const wf_axis *a, const wf_axis *b);
/* Both known, and different. */
bool wf_axes_clash(const wf_axis *a, const wf_axis *b);
/* What is known of an axis from two places that must agree. */
wf_axis wf_axis_merge(const wf_axis *a, const wf_axis *b);
wf_axis wf_axis_mul(const wf_axis *a, const wf_axis *b);
wf_axis wf_axis_add(const wf_axis *a, const wf_axis *b);
/* Broadcasts v into axes [*rank], which may grow. Errors: WF_SHAPE, without the node. */
WF_MUST_USE wf_status wf_axes_broadcast(wf_axis axes[WF_MAX_RANK], uint32_t *rank,
                                        const wf_value *v, wf_err *err);
/* -rank..rank-1 to 0..rank-1. Errors: WF_SHAPE. */
WF_MUST_USE wf_status wf_axis_number(int64_t axis, uint32_t rank, uint32_t *out, wf_err *err);

/* A symbolic axis may be a multiple of another: "12*batch" is 12 times "batch". The factor of a
 * symbol, 1 when it has none; *base is what follows it. */
int64_t wf_symbol_factor(const char *symbol, const char **base);
/* factor times a symbolic axis whose own symbol has no factor; the text is the graph's. */
WF_MUST_USE wf_status wf_axis_multiple(wf_graph *g, int64_t factor, const char *base, int64_t bound,
                                       wf_axis *out, wf_err *err);

/* Elements of carried integers. */
wf_elem wf_elem_of(int64_t value);
wf_elem wf_elem_unknown(void);
wf_elem wf_elem_of_axis(const wf_axis *axis);
wf_axis wf_axis_of_elem(const wf_elem *e);
typedef wf_elem wf_elem_fn(const wf_elem *a, const wf_elem *b);
/* Integer arithmetic as C has it; unknown when it depends on an unknown or overflows. */
wf_elem_fn wf_elem_add, wf_elem_sub, wf_elem_mul, wf_elem_div, wf_elem_max, wf_elem_min;
/* 1, 0, or unknown. */
wf_elem_fn wf_elem_equal, wf_elem_greater, wf_elem_less;

/* Outputs; nothing happens when output i is absent. */
void wf_out_axes(wf_node *n, uint32_t i, wf_dtype dtype, uint32_t rank, const wf_axis axes[]);
void wf_out_like(wf_node *n, uint32_t i, wf_dtype dtype, const wf_value *like);
/* Dtype known, shape not. */
void wf_out_unknown(wf_node *n, uint32_t i, wf_dtype dtype);
/* The content of output i; ignored above WF_MAX_CARRIED. Its dtype and shape are set already. */
WF_MUST_USE wf_status wf_out_carry(wf_graph *g, wf_node *n, uint32_t i, uint32_t count,
                                   const wf_elem elems[], wf_err *err);

/* Output 0 holds the elements of input 0, in the same order. */
WF_MUST_USE wf_status wf_carry_input(wf_graph *g, wf_node *n, wf_err *err);
/* Output 0, whose dtype is set, holds the elements of input 0 cast to it. */
WF_MUST_USE wf_status wf_carry_cast(wf_graph *g, wf_node *n, wf_err *err);

/* Checks. `letter` names the input in messages, as ONNX's documentation does. Errors: WF_SHAPE. */
WF_MUST_USE wf_status wf_need_float(const wf_node *n, uint32_t i, const char *letter, wf_err *err);
WF_MUST_USE wf_status wf_need_int(const wf_node *n, uint32_t i, const char *letter, wf_err *err);
WF_MUST_USE wf_status wf_need_dtype(const wf_node *n, uint32_t i, wf_dtype dtype,
                                    const char *letter, wf_err *err);
/* Inputs a and b have one dtype. */
WF_MUST_USE wf_status wf_need_same_dtype(const wf_node *n, uint32_t a, uint32_t b, wf_err *err);

/* A string attribute is one of `known`, which ends with NULL and begins with what is meant without
 * it. Errors: WF_UNSUPPORTED. */
WF_MUST_USE wf_status wf_need_choice(const wf_node *n, const char *attr, const char *const known[],
                                     wf_err *err);
/* A result of so many axes is one that weft has. Errors: WF_UNSUPPORTED. */
WF_MUST_USE wf_status wf_need_rank(int64_t rank, wf_err *err);
/* Input i, of which a gradient is made, has a known rank. Errors: WF_UNSUPPORTED. */
WF_MUST_USE wf_status wf_need_known_rank(const wf_node *n, uint32_t i, wf_err *err);

/* The shape that input i (int64 [n]) asks for; *known is false when its content cannot be followed.
 * Errors: WF_SHAPE for a negative size; WF_UNSUPPORTED for too many axes. */
WF_MUST_USE wf_status wf_shape_input(const wf_node *n, uint32_t i, bool *known, uint32_t *rank,
                                     wf_axis axes[WF_MAX_RANK], wf_err *err);
/* Axes given by input i (int64 [n]) of an operation on `rank` axes, as a mask. *known is false when
 * the content cannot be followed; *n_axes is -1 when even their number is unknown; an absent input
 * is known and has none. Errors: WF_SHAPE for an axis out of range or named twice. */
WF_MUST_USE wf_status wf_axes_input(const wf_node *n, uint32_t i, uint32_t rank, bool *known,
                                    uint32_t *mask, int64_t *n_axes, wf_err *err);

/* Whole infer functions. */
/* Output 0 like input 0, of any dtype, or of a float one. */
wf_status wf_infer_like_input(wf_graph *g, wf_node *n, wf_err *err);
wf_status wf_infer_like_float(wf_graph *g, wf_node *n, wf_err *err);
/* The same along attr axis, the last one when it is absent. */
wf_status wf_infer_along_axis(wf_graph *g, wf_node *n, wf_err *err);
/* dy, y -> dx: all of one dtype and shape. */
wf_status wf_infer_grad_like(wf_graph *g, wf_node *n, wf_err *err);
/* dy, x, ... -> dx, as x; and dy, a, x -> dx. */
wf_status wf_infer_grad_of_1(wf_graph *g, wf_node *n, wf_err *err);
wf_status wf_infer_grad_of_2(wf_graph *g, wf_node *n, wf_err *err);
/* dy, indices, x -> dx, as x. */
wf_status wf_infer_grad_by_ids(wf_graph *g, wf_node *n, wf_err *err);
/* Broadcast of two numbers of one dtype; fn follows small integers and may be NULL. */
WF_MUST_USE wf_status wf_infer_arithmetic(wf_graph *g, wf_node *n, wf_elem_fn *fn, wf_err *err);
/* The same with a bool result. */
WF_MUST_USE wf_status wf_infer_compare(wf_graph *g, wf_node *n, wf_elem_fn *fn, wf_err *err);
/* Broadcast of all inputs of one dtype; fn follows small integers when there are two. */
WF_MUST_USE wf_status wf_infer_variadic(wf_graph *g, wf_node *n, wf_elem_fn *fn, wf_err *err);
/* ReduceX: axes as input 1, attrs keepdims and noop_with_empty_axes; of numbers, or of any dtype.
 */
wf_status wf_infer_reduce(wf_graph *g, wf_node *n, wf_err *err);
wf_status wf_infer_reduce_any(wf_graph *g, wf_node *n, wf_err *err);

/* A copy of *symbol in g's arena. */
WF_MUST_USE wf_status wf_copy_symbol(wf_graph *g, const char **symbol, wf_err *err);

#endif
