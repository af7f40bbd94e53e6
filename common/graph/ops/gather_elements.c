/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/gather_elements.c - GatherElements: each index names a place along attr axis;
 * its place along the other axes is its own. Negative ones count from the end. */
#include "common/graph/emit.h"
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    const wf_value *data = n->in[0], *ids = n->in[1];
    uint32_t axis;

    (void)g;
    WF_TRY(wf_need_int(n, 1, "indices", err));
    wf_out_like(n, 0, data->dtype, ids);
    if (data->rank < 0 || ids->rank < 0)
        return WF_OK;
    WF_TRY(wf_axis_number(wf_node_int(n, "axis", 0), (uint32_t)data->rank, &axis, err));
    return wf_ids_within(data, ids, axis, err);
}

static wf_status grad(wf_grads *g, const wf_node *n, wf_err *err)
{
    wf_emit *e = wf_grads_emit(g);
    wf_attr attrs[] = {wf_attr_int("axis", wf_node_int(n, "axis", 0)),
                       wf_attr_string("reduction", "add")};
    wf_value *zeros = wf_emit_expand_like(e, wf_emit_scalar(e, n->in[0]->dtype, 0), n->in[0]);
    wf_value *in[] = {zeros, n->in[1], wf_grads_upstream(g, n, 0)};

    (void)err;
    return wf_grads_add(g, n, 0, wf_emit_op(e, "ScatterElements", 3, in, 2, attrs));
}

static const wf_attr_row attrs[] = {{"axis", WF_ATTR_INT, false}, {0}};

const wf_op wf_op_gather_elements = {
    .name = "GatherElements",
    .domain = WF_DOMAIN_ONNX,
    .since = 13,
    .n_in_min = 2,
    .n_in_max = 2,
    .n_out_min = 1,
    .n_out_max = 1,
    .flags = WF_OP_FOLDABLE,
    .no_grad_in = 1u << 1,
    .attrs = attrs,
    .infer = infer,
    .grad = grad,
};
