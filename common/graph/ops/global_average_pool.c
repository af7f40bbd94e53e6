/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/global_average_pool.c - GlobalAveragePool: the mean of each channel. */
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"
#include "common/graph/ops/spatial.h"

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    (void)g;
    WF_TRY(wf_need_float(n, 0, "X", err));
    return wf_infer_pool(n, err);
}

static wf_status grad(wf_grads *g, const wf_node *n, wf_err *err)
{
    (void)err;
    return wf_grad_pool(g, n, "AveragePoolGrad", false);
}

const wf_op wf_op_global_average_pool = {
    .name = "GlobalAveragePool",
    .domain = WF_DOMAIN_ONNX,
    .since = 1,
    .n_in_min = 1,
    .n_in_max = 1,
    .n_out_min = 1,
    .n_out_max = 1,
    .flags = WF_OP_FOLDABLE,
    .infer = infer,
    .grad = grad,
};
