/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/elementwise/compare.c - And, Equal, Greater, GreaterOrEqual, Less,
 * LessOrEqual, Not, Or and Xor. */
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

/* Equal: a == b, also of bools. */

static wf_status infer_equal(wf_graph *g, wf_node *n, wf_err *err)
{
    return wf_infer_compare(g, n, wf_elem_equal, err);
}

const wf_op wf_op_equal =
    WF_ELEMENTWISE(WF_DOMAIN_ONNX, "Equal", 13, 2, infer_equal, .no_grad_in = 3);

/* Greater: a > b. */

static wf_status infer_greater(wf_graph *g, wf_node *n, wf_err *err)
{
    return wf_infer_compare(g, n, wf_elem_greater, err);
}

const wf_op wf_op_greater =
    WF_ELEMENTWISE(WF_DOMAIN_ONNX, "Greater", 13, 2, infer_greater, .no_grad_in = 3);

/* GreaterOrEqual: a >= b, of numbers. */

static wf_elem greater_or_equal_compare(const wf_elem *a, const wf_elem *b)
{
    wf_elem opposite = wf_elem_less(a, b);

    return opposite.is_known ? wf_elem_of(!opposite.value) : wf_elem_unknown();
}

static wf_status infer_greater_or_equal(wf_graph *g, wf_node *n, wf_err *err)
{
    return wf_infer_compare(g, n, greater_or_equal_compare, err);
}

const wf_op wf_op_greater_or_equal = WF_ELEMENTWISE(WF_DOMAIN_ONNX, "GreaterOrEqual", 16, 2,
                                                    infer_greater_or_equal, .no_grad_in = 3);

/* Less: a < b. */

static wf_status infer_less(wf_graph *g, wf_node *n, wf_err *err)
{
    return wf_infer_compare(g, n, wf_elem_less, err);
}

const wf_op wf_op_less = WF_ELEMENTWISE(WF_DOMAIN_ONNX, "Less", 13, 2, infer_less, .no_grad_in = 3);

/* LessOrEqual: a <= b, of numbers. */

static wf_elem less_or_equal_compare(const wf_elem *a, const wf_elem *b)
{
    wf_elem opposite = wf_elem_greater(a, b);

    return opposite.is_known ? wf_elem_of(!opposite.value) : wf_elem_unknown();
}

static wf_status infer_less_or_equal(wf_graph *g, wf_node *n, wf_err *err)
{
    return wf_infer_compare(g, n, less_or_equal_compare, err);
}

const wf_op wf_op_less_or_equal =
    WF_ELEMENTWISE(WF_DOMAIN_ONNX, "LessOrEqual", 16, 2, infer_less_or_equal, .no_grad_in = 3);

/* Not: of bools. */

static wf_status infer_not(wf_graph *g, wf_node *n, wf_err *err)
{
    (void)g;
    WF_TRY(wf_need_dtype(n, 0, WF_BOOL, "X", err));
    wf_out_like(n, 0, WF_BOOL, n->in[0]);
    return WF_OK;
}

const wf_op wf_op_not = WF_ELEMENTWISE(WF_DOMAIN_ONNX, "Not", 1, 1, infer_not);

/* And, Or and Xor of two bools, broadcast. */

static bool is(const wf_elem *e, int64_t value)
{
    return e->is_known && e->value == value;
}

/* One side alone may settle it. */
static wf_elem both(const wf_elem *a, const wf_elem *b)
{
    if (is(a, 0) || is(b, 0))
        return wf_elem_of(0);
    return a->is_known && b->is_known ? wf_elem_of(1) : wf_elem_unknown();
}

static wf_elem either(const wf_elem *a, const wf_elem *b)
{
    if (is(a, 1) || is(b, 1))
        return wf_elem_of(1);
    return a->is_known && b->is_known ? wf_elem_of(0) : wf_elem_unknown();
}

static wf_elem differ(const wf_elem *a, const wf_elem *b)
{
    return a->is_known && b->is_known ? wf_elem_of(a->value != b->value) : wf_elem_unknown();
}

static wf_status infer_logical(wf_graph *g, wf_node *n, wf_elem_fn *fn, wf_err *err)
{
    WF_TRY(wf_need_dtype(n, 0, WF_BOOL, "A", err));
    return wf_infer_compare(g, n, fn, err);
}

static wf_status infer_and(wf_graph *g, wf_node *n, wf_err *err)
{
    return infer_logical(g, n, both, err);
}

static wf_status infer_or(wf_graph *g, wf_node *n, wf_err *err)
{
    return infer_logical(g, n, either, err);
}

static wf_status infer_xor(wf_graph *g, wf_node *n, wf_err *err)
{
    return infer_logical(g, n, differ, err);
}

const wf_op wf_op_and = WF_ELEMENTWISE(WF_DOMAIN_ONNX, "And", 7, 2, infer_and);
const wf_op wf_op_or = WF_ELEMENTWISE(WF_DOMAIN_ONNX, "Or", 7, 2, infer_or);
const wf_op wf_op_xor = WF_ELEMENTWISE(WF_DOMAIN_ONNX, "Xor", 7, 2, infer_xor);
