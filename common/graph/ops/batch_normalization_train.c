/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/batch_normalization_train.c - ai.weft BatchNormalizationTrain(x, scale, bias) ->
 * y, mean, var: BatchNormalization by the batch's own mean and variance, which are given too; they
 * carry no gradient. */
#include "common/graph/infer.h"
#include "common/graph/ops/norm.h"
#include "common/graph/ops/ops.h"

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    (void)g;
    WF_TRY(wf_need_floats(n, 3, err));
    WF_TRY(wf_need_per_channel(n, 3, err));
    wf_out_like(n, 0, n->in[0]->dtype, n->in[0]);
    wf_out_like(n, 1, n->in[0]->dtype, n->in[1]);
    wf_out_like(n, 2, n->in[0]->dtype, n->in[1]);
    return WF_OK;
}

static wf_status grad(wf_grads *g, const wf_node *n, wf_err *err)
{
    wf_attr attrs[] = {wf_attr_float("epsilon", wf_node_float(n, "epsilon", 1e-5f)),
                       wf_attr_int("training_mode", 1)};
    wf_value *moments[] = {wf_grads_output(g, n, 1), wf_grads_output(g, n, 2)};

    return wf_grad_norm(g, n, "BatchNormalizationGrad", 2, moments, 2, attrs, err);
}

static const wf_attr_row attrs[] = {{"epsilon", WF_ATTR_FLOAT, false}, {0}};

const wf_op wf_op_batch_normalization_train = {
    .name = "BatchNormalizationTrain",
    .domain = WF_DOMAIN_WEFT,
    .since = 1,
    .n_in_min = 3,
    .n_in_max = 3,
    .n_out_min = 1,
    .n_out_max = 3,
    .flags = WF_OP_FOLDABLE,
    .attrs = attrs,
    .infer = infer,
    .grad = grad,
};
