/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/norm/batch_norm.c - BatchNormalization, BatchNormalizationGrad and
 * BatchNormalizationTrain. */
#include "common/graph/infer.h"
#include "common/graph/ops/norm/norm.h"
#include "common/graph/ops/ops.h"

/* BatchNormalization by the running mean and variance, or, with training_mode 1, by those of the
 * batch, which then move the running ones: old momentum + new (1 - momentum), with the
 * population's variance. Mean and variance that are computed, and are not running ones, carry a
 * gradient like any other value. */

static wf_status infer_batch_normalization(wf_graph *g, wf_node *n, wf_err *err)
{
    (void)g;
    WF_TRY(wf_need_floats(n, 5, err));
    WF_TRY(wf_need_per_channel(n, 5, err));
    if (!wf_node_int(n, "training_mode", 0) && (wf_node_has_out(n, 1) || wf_node_has_out(n, 2)))
        return wf_fail(err, WF_INVALID, "set training_mode to 1",
                       "it has running outputs, which only training_mode 1 makes");
    wf_out_like(n, 0, n->in[0]->dtype, n->in[0]);
    wf_out_like(n, 1, n->in[3]->dtype, n->in[3]);
    wf_out_like(n, 2, n->in[4]->dtype, n->in[4]);
    return WF_OK;
}

/* With y = scale (x - mean) / s + bias and s = sqrt(var + epsilon):
 *   dmean = -dbias scale / s,   dvar = -1/2 dscale scale / s^2. */
static wf_status grad_by_given(wf_grads *g, const wf_node *n)
{
    wf_emit *e = wf_grads_emit(g);
    wf_attr epsilon = wf_attr_float("epsilon", wf_node_float(n, "epsilon", 1e-5f));
    wf_value *scale = n->in[1], *var = n->in[4], *out[3], *squared, *dmean, *dvar;
    wf_value *in[] = {wf_grads_upstream(g, n, 0), n->in[0], scale, n->in[3], var};

    if (!wf_emit_node(e, "BatchNormalizationGrad", 5, in, 1, &epsilon, 3, out))
        return wf_emit_end(e);
    for (uint32_t i = 0; i < 3; i++)
        WF_TRY(wf_grads_add(g, n, i, out[i]));
    squared = wf_emit_add(
        e, var, wf_emit_scalar(e, var->dtype, (double)wf_node_float(n, "epsilon", 1e-5f)));
    dmean = wf_emit_div(e, wf_emit_mul(e, out[2], scale), wf_emit_unary(e, "Sqrt", squared));
    WF_TRY(wf_grads_add(g, n, 3, wf_emit_neg(e, dmean)));
    dvar = wf_emit_div(e, wf_emit_mul(e, out[1], scale), squared);
    return wf_grads_add(g, n, 4, wf_emit_scale(e, dvar, -0.5));
}

static wf_status grad_batch_normalization(wf_grads *g, const wf_node *n, wf_err *err)
{
    bool training = wf_node_int(n, "training_mode", 0) != 0;

    if (!training && (wf_grads_wanted(g, n, 3) || wf_grads_wanted(g, n, 4)))
        return grad_by_given(g, n);
    return wf_grad_node(g, n, "BatchNormalizationGrad", training ? "d0 x0 x1" : "d0 x0 x1 x3 x4",
                        NULL, err);
}

/* Before opset 9 attr spatial 0 asked for statistics of each position apart. */
static wf_status upgrade(wf_graph *g, wf_node *n, int64_t from, wf_err *err)
{
    (void)g;
    if (from < 9 && wf_node_int(n, "spatial", 1) != 1)
        return wf_fail(err, WF_UNSUPPORTED, "export it with opset 9 or later",
                       "its attribute spatial is 0");
    if (from < 9)
        wf_node_drop_attr(n, "spatial");
    return WF_OK;
}

static const wf_attr_row batch_normalization_attrs[] = {{"epsilon", WF_ATTR_FLOAT, false},
                                                        {"momentum", WF_ATTR_FLOAT, false},
                                                        {"training_mode", WF_ATTR_INT, false},
                                                        {0}};

const wf_op wf_op_batch_normalization = WF_OPERATION(
    WF_DOMAIN_ONNX, "BatchNormalization", 15, 5, 5, 1, 3, WF_OP_FOLDABLE, infer_batch_normalization,
    .running_in = 1u << 3 | 1u << 4, .attrs = batch_normalization_attrs,
    .grad = grad_batch_normalization, .upgrade = upgrade);

/* ai.weft BatchNormalizationGrad(dy, x, scale, (mean), (var)) -> dx, dscale, dbias. With
 * training_mode 1 mean and var are the batch's, and worked out when they are absent. */

static const wf_attr_row batch_normalization_grad_attrs[] = {
    {"epsilon", WF_ATTR_FLOAT, false}, {"training_mode", WF_ATTR_INT, false}, {0}};

const wf_op wf_op_batch_normalization_grad = WF_OPERATION(
    WF_DOMAIN_WEFT, "BatchNormalizationGrad", 1, 3, 5, 1, 3, WF_OP_FOLDABLE, wf_infer_norm_grad,
    .means = "(dy, x, scale, (mean), (var)) -> dx, (dscale), (dbias); attrs epsilon, "
             "training_mode = 0: by the given values; 1: by those of the batch, worked "
             "out when they are absent",
    .attrs = batch_normalization_grad_attrs);

/* ai.weft BatchNormalizationTrain(x, scale, bias) -> y, mean, var: BatchNormalization by the
 * batch's own mean and variance, which are given too; they carry no gradient. */

static wf_status infer_batch_normalization_train(wf_graph *g, wf_node *n, wf_err *err)
{
    (void)g;
    WF_TRY(wf_need_floats(n, 3, err));
    WF_TRY(wf_need_per_channel(n, 3, err));
    wf_out_like(n, 0, n->in[0]->dtype, n->in[0]);
    wf_out_like(n, 1, n->in[0]->dtype, n->in[1]);
    wf_out_like(n, 2, n->in[0]->dtype, n->in[1]);
    return WF_OK;
}

static wf_status grad_batch_normalization_train(wf_grads *g, const wf_node *n, wf_err *err)
{
    wf_attr training = wf_attr_int("training_mode", 1);

    return wf_grad_node(g, n, "BatchNormalizationGrad", "d0 x0 x1 y1 y2", &training, err);
}

static const wf_attr_row batch_normalization_train_attrs[] = {{"epsilon", WF_ATTR_FLOAT, false},
                                                              {0}};

const wf_op wf_op_batch_normalization_train =
    WF_OPERATION(WF_DOMAIN_WEFT, "BatchNormalizationTrain", 1, 3, 3, 1, 3, WF_OP_FOLDABLE,
                 infer_batch_normalization_train,
                 .means = "(x, scale, bias) -> y, (mean), (var); attr epsilon = 1e-5; by the "
                          "batch's own mean and (population) variance, which are given",
                 .attrs = batch_normalization_train_attrs, .grad = grad_batch_normalization_train);
