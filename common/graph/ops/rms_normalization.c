/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/rms_normalization.c - RMSNormalization, of opset 23: x / sqrt(mean(x^2) +
 * epsilon) scale, over all axes from attr axis on. */
#include "common/graph/infer.h"
#include "common/graph/ops/norm.h"
#include "common/graph/ops/ops.h"

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    const wf_value *x = n->in[0];
    uint32_t axis;

    (void)g;
    WF_TRY(wf_need_floats(n, 2, err));
    if (wf_node_int(n, "stash_type", 1) != 1)
        return wf_fail(err, WF_UNSUPPORTED, NULL, "its stash_type is %lld, and weft has 1 (float)",
                       (long long)wf_node_int(n, "stash_type", 1));
    wf_out_like(n, 0, x->dtype, x);
    return x->rank < 0 ? WF_OK
                       : wf_axis_number(wf_node_int(n, "axis", -1), (uint32_t)x->rank, &axis, err);
}

static wf_status grad(wf_grads *g, const wf_node *n, wf_err *err)
{
    wf_attr attrs[] = {wf_attr_int("axis", wf_node_int(n, "axis", -1)),
                       wf_attr_float("epsilon", wf_node_float(n, "epsilon", 1e-5f))};

    return wf_grad_norm(g, n, "RMSNormalizationGrad", 0, NULL, 2, attrs, err);
}

static const wf_attr_row attrs[] = {{"axis", WF_ATTR_INT, false},
                                    {"epsilon", WF_ATTR_FLOAT, false},
                                    {"stash_type", WF_ATTR_INT, false},
                                    {0}};

const wf_op wf_op_rms_normalization = {
    .name = "RMSNormalization",
    .domain = WF_DOMAIN_ONNX,
    .since = 23,
    .n_in_min = 2,
    .n_in_max = 2,
    .n_out_min = 1,
    .n_out_max = 1,
    .flags = WF_OP_FOLDABLE,
    .attrs = attrs,
    .infer = infer,
    .grad = grad,
};
