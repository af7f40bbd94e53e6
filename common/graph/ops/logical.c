/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/logical.c - And, Or and Xor of two bools, broadcast. */
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

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

static wf_status infer(wf_graph *g, wf_node *n, wf_elem_fn *fn, wf_err *err)
{
    WF_TRY(wf_need_dtype(n, 0, WF_BOOL, "A", err));
    return wf_infer_compare(g, n, fn, err);
}

static wf_status infer_and(wf_graph *g, wf_node *n, wf_err *err)
{
    return infer(g, n, both, err);
}

static wf_status infer_or(wf_graph *g, wf_node *n, wf_err *err)
{
    return infer(g, n, either, err);
}

static wf_status infer_xor(wf_graph *g, wf_node *n, wf_err *err)
{
    return infer(g, n, differ, err);
}

const wf_op wf_op_and = WF_ELEMENTWISE(WF_DOMAIN_ONNX, "And", 7, 2, infer_and);
const wf_op wf_op_or = WF_ELEMENTWISE(WF_DOMAIN_ONNX, "Or", 7, 2, infer_or);
const wf_op wf_op_xor = WF_ELEMENTWISE(WF_DOMAIN_ONNX, "Xor", 7, 2, infer_xor);
