/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/reduce/top_k.c - TopK: the k (input 1) largest, or with attr largest 0 smallest,
 * along attr axis, in order, and their int64 indices; of equals the first. */
#include "common/graph/emit.h"
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"
#include <string.h>

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    const wf_value *x = n->in[0];
    wf_elem k[WF_MAX_CARRIED] = {wf_elem_unknown()};
    wf_axis axes[WF_MAX_RANK];
    uint32_t axis, count = 1;

    (void)g;
    WF_TRY(wf_need_int(n, 1, "k", err));
    if (wf_value_elems(n->in[1], k, &count) && count != 1)
        return wf_fail(err, WF_SHAPE, NULL, "k has %u elements, and must have one", count);
    wf_out_unknown(n, 0, x->dtype);
    wf_out_unknown(n, 1, WF_I64);
    if (x->rank < 0)
        return WF_OK;
    WF_TRY(wf_axis_number(wf_node_int(n, "axis", -1), (uint32_t)x->rank, &axis, err));
    memcpy(axes, x->axes, sizeof axes);
    axes[axis] = k[0].is_known ? wf_axis_of(k[0].value) : wf_axis_unknown(x->axes[axis].bound);
    if (k[0].is_known &&
        (k[0].value < 0 || (x->axes[axis].size >= 0 && k[0].value > x->axes[axis].size)))
        return wf_fail(err, WF_SHAPE, NULL, "k is %lld, along an axis of %lld",
                       (long long)k[0].value, (long long)x->axes[axis].size);
    wf_out_axes(n, 0, x->dtype, (uint32_t)x->rank, axes);
    wf_out_axes(n, 1, WF_I64, (uint32_t)x->rank, axes);
    return WF_OK;
}

static wf_status grad(wf_grads *g, const wf_node *n, wf_err *err)
{
    wf_emit *e = wf_grads_emit(g);
    wf_attr axis = wf_attr_int("axis", wf_node_int(n, "axis", -1));
    wf_value *zeros = wf_emit_expand_like(e, wf_emit_scalar(e, n->in[0]->dtype, 0), n->in[0]);
    wf_value *in[] = {zeros, wf_grads_output(g, n, 1), wf_grads_upstream(g, n, 0)};

    (void)err;
    return wf_grads_add(g, n, 0, wf_emit_op(e, "ScatterElements", 3, in, 1, &axis));
}

static const wf_attr_row attrs[] = {{"axis", WF_ATTR_INT, false},
                                    {"largest", WF_ATTR_INT, false},
                                    {"sorted", WF_ATTR_INT, false},
                                    {0}};

const wf_op wf_op_top_k = WF_OPERATION(WF_DOMAIN_ONNX, "TopK", 11, 2, 2, 1, 2, WF_OP_FOLDABLE,
                                       infer, .no_grad_in = 1u << 1, .attrs = attrs, .grad = grad);
