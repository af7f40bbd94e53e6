/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/instance_normalization.c - InstanceNormalization: each channel of each image by
 * its own mean and variance. */
#include "common/graph/infer.h"
#include "common/graph/ops/norm.h"
#include "common/graph/ops/ops.h"

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    (void)g;
    WF_TRY(wf_need_floats(n, 3, err));
    WF_TRY(wf_need_per_channel(n, 3, err));
    wf_out_like(n, 0, n->in[0]->dtype, n->in[0]);
    return WF_OK;
}

static wf_status grad(wf_grads *g, const wf_node *n, wf_err *err)
{
    wf_attr epsilon = wf_attr_float("epsilon", wf_node_float(n, "epsilon", 1e-5f));

    return wf_grad_norm(g, n, "GroupNormalizationGrad", 0, NULL, 1, &epsilon, err);
}

static const wf_attr_row attrs[] = {{"epsilon", WF_ATTR_FLOAT, false}, {0}};

const wf_op wf_op_instance_normalization = {
    .name = "InstanceNormalization",
    .domain = WF_DOMAIN_ONNX,
    .since = 6,
    .n_in_min = 3,
    .n_in_max = 3,
    .n_out_min = 1,
    .n_out_max = 1,
    .flags = WF_OP_FOLDABLE,
    .attrs = attrs,
    .infer = infer,
    .grad = grad,
};
