/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/loss/cross_entropy.c - NegativeLogLikelihoodLoss,
 * NegativeLogLikelihoodLossGrad, SoftmaxCrossEntropyGrad and SoftmaxCrossEntropyLoss. */
#include "common/graph/emit.h"
#include "common/graph/infer.h"
#include "common/graph/ops/loss/label_loss.h"
#include "common/graph/ops/ops.h"

/* SoftmaxCrossEntropyLoss: scores [n, classes, d...], labels [n, d...], class weights [classes];
 * output 1, log_prob, is what the gradient needs. */

static wf_status infer_softmax_cross_entropy_loss(wf_graph *g, wf_node *n, wf_err *err)
{
    (void)g;
    WF_TRY(wf_infer_label_loss(n, err));
    wf_out_like(n, 1, n->in[0]->dtype, n->in[0]);
    return WF_OK;
}

static wf_status grad_softmax_cross_entropy_loss(wf_grads *g, const wf_node *n, wf_err *err)
{
    wf_emit *e = wf_grads_emit(g);
    wf_value *dloss = wf_grads_upstream(g, n, 0), *dlog = wf_grads_upstream(g, n, 1);
    wf_value *log_prob = wf_grads_output(g, n, 1);
    wf_attr axis = wf_attr_int("axis", 1);

    (void)err;
    if (dloss) {
        wf_value *in[] = {dloss, log_prob, n->in[1], wf_node_has_in(n, 2) ? n->in[2] : NULL};

        WF_TRY(wf_grads_add(
            g, n, 0,
            wf_emit_op(e, "SoftmaxCrossEntropyGrad", in[3] ? 4 : 3, in, n->n_attrs, n->attrs)));
    }
    if (dlog)
        WF_TRY(wf_grads_add(
            g, n, 0, wf_emit_op(e, "LogSoftmaxGrad", 2, (wf_value *[]){dlog, log_prob}, 1, &axis)));
    return wf_emit_end(e);
}

const wf_op wf_op_softmax_cross_entropy_loss =
    WF_OPERATION(WF_DOMAIN_ONNX, "SoftmaxCrossEntropyLoss", 13, 2, 3, 1, 2, WF_OP_FOLDABLE,
                 infer_softmax_cross_entropy_loss, .labels_in = 1, .no_grad_in = 1u << 1 | 1u << 2,
                 .attrs = wf_label_loss_rows, .grad = grad_softmax_cross_entropy_loss);

/* ai.weft SoftmaxCrossEntropyGrad: dscores = (exp(log_prob) - onehot(labels)) dloss w[label] / sum
 * of w over the batch ("mean"), and 0 where labels are ignored. */

const wf_op wf_op_softmax_cross_entropy_grad =
    WF_FOLDABLE(WF_DOMAIN_WEFT, "SoftmaxCrossEntropyGrad", 1, 3, 4, wf_infer_label_loss_grad,
                .means = "(dloss, log_prob, labels, (weights)) -> dscores, as log_prob; attrs "
                         "ignore_index (none when absent), reduction = \"mean\"; dloss is a "
                         "scalar, or as labels for \"none\"",
                .attrs = wf_label_loss_rows);

/* NegativeLogLikelihoodLoss: as SoftmaxCrossEntropyLoss, of log probabilities. */

static wf_status infer_negative_log_likelihood_loss(wf_graph *g, wf_node *n, wf_err *err)
{
    (void)g;
    return wf_infer_label_loss(n, err);
}

const wf_op wf_op_negative_log_likelihood_loss = WF_FOLDABLE(
    WF_DOMAIN_ONNX, "NegativeLogLikelihoodLoss", 13, 2, 3, infer_negative_log_likelihood_loss,
    .labels_in = 1, .no_grad_in = 1u << 1 | 1u << 2, .attrs = wf_label_loss_rows,
    WF_GRAD_NODE("NegativeLogLikelihoodLossGrad", "d0 x0 x1 x2"));

/* ai.weft NegativeLogLikelihoodLossGrad: -dloss w[label] / sum of w over the batch ("mean") at
 * each label, and 0 elsewhere. */

const wf_op wf_op_negative_log_likelihood_loss_grad =
    WF_FOLDABLE(WF_DOMAIN_WEFT, "NegativeLogLikelihoodLossGrad", 1, 3, 4, wf_infer_label_loss_grad,
                .means = "(dloss, input, labels, (weights)) -> dinput; attrs ignore_index (none "
                         "when absent), reduction = \"mean\"; of input only the shape is read",
                .attrs = wf_label_loss_rows);
