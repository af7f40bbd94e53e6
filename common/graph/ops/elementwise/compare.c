/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/elementwise/compare.c - And, Equal, Greater, GreaterOrEqual, Less,
 * LessOrEqual, Not, Or and Xor. */
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

/* The opposite of a comparison, where that is known. */
static wf_elem opposite(wf_elem of)
{
    return of.is_known ? wf_elem_of(!of.value) : wf_elem_unknown();
}

static wf_elem greater_or_equal(const wf_elem *a, const wf_elem *b)
{
    return opposite(wf_elem_less(a, b));
}

static wf_elem less_or_equal(const wf_elem *a, const wf_elem *b)
{
    return opposite(wf_elem_greater(a, b));
}

/* A comparison of two numbers, broadcast; Equal takes bools as well. */
#define COMPARISON(id, name, since, fn)                                                            \
    static wf_status infer_##id(wf_graph *g, wf_node *n, wf_err *err)                              \
    {                                                                                              \
        return wf_infer_compare(g, n, fn, err);                                                    \
    }                                                                                              \
    const wf_op wf_op_##id =                                                                       \
        WF_ELEMENTWISE(WF_DOMAIN_ONNX, name, since, 2, infer_##id, .no_grad_in = 3);

COMPARISON(equal, "Equal", 13, wf_elem_equal)
COMPARISON(greater, "Greater", 13, wf_elem_greater)
COMPARISON(greater_or_equal, "GreaterOrEqual", 16, greater_or_equal)
COMPARISON(less, "Less", 13, wf_elem_less)
COMPARISON(less_or_equal, "LessOrEqual", 16, less_or_equal)

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

/* A function of two bools, broadcast. */
#define LOGICAL(id, name, fn)                                                                      \
    static wf_status infer_##id(wf_graph *g, wf_node *n, wf_err *err)                              \
    {                                                                                              \
        WF_TRY(wf_need_dtype(n, 0, WF_BOOL, "A", err));                                            \
        return wf_infer_compare(g, n, fn, err);                                                    \
    }                                                                                              \
    const wf_op wf_op_##id = WF_ELEMENTWISE(WF_DOMAIN_ONNX, name, 7, 2, infer_##id);

LOGICAL(and, "And", both)
LOGICAL(or, "Or", either)
LOGICAL(xor, "Xor", differ)

static wf_status infer_not(wf_graph *g, wf_node *n, wf_err *err)
{
    (void)g;
    WF_TRY(wf_need_dtype(n, 0, WF_BOOL, "X", err));
    wf_out_like(n, 0, WF_BOOL, n->in[0]);
    return WF_OK;
}

const wf_op wf_op_not = WF_ELEMENTWISE(WF_DOMAIN_ONNX, "Not", 1, 1, infer_not);
