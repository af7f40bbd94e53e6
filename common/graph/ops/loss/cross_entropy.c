/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/loss/cross_entropy.c - NegativeLogLikelihoodLoss,
 * NegativeLogLikelihoodLossGrad, SoftmaxCrossEntropyGrad and SoftmaxCrossEntropyLoss. */
#include "common/graph/emit.h"
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

#include <string.h>

static const wf_attr_row attrs[] = {
    {"ignore_index", WF_ATTR_INT, false}, {"reduction", WF_ATTR_STRING, false}, {0}};

/* labels are scores without axis 1. */
static wf_status check_labels(const wf_value *scores, const wf_value *labels, wf_err *err)
{
    char a[WF_VALUE_STR], b[WF_VALUE_STR];
    bool fits = scores->rank >= 2 && labels->rank == scores->rank - 1;

    for (int32_t i = 0; fits && i < labels->rank; i++)
        fits = !wf_axes_clash(&labels->axes[i], &scores->axes[i == 0 ? 0 : i + 1]);
    return fits ? WF_OK
                : wf_fail(
                      err, WF_SHAPE, "labels are class numbers, not one-hot rows",
                      "scores are %s, which must be [n, classes, ...], and labels %s, which must "
                      "be the same without classes",
                      wf_value_str(scores, a, sizeof a), wf_value_str(labels, b, sizeof b));
}

static wf_status check_weights(const wf_value *scores, const wf_value *weights, wf_err *err)
{
    char a[WF_VALUE_STR], b[WF_VALUE_STR];

    if (weights->rank < 0 ||
        (weights->rank == 1 && !wf_axes_clash(&weights->axes[0], &scores->axes[1])))
        return WF_OK;
    return wf_fail(err, WF_SHAPE, NULL,
                   "scores are %s and weights %s; there must be one weight a class",
                   wf_value_str(scores, a, sizeof a), wf_value_str(weights, b, sizeof b));
}

/* Checks scores [n, classes, d...], labels [n, d...], weights [classes]; sets output 0. */
static wf_status infer_loss(wf_node *n, wf_err *err)
{
    const wf_value *scores = n->in[0], *labels = n->in[1];
    static const char *const reductions[] = {"mean", "sum", "none", NULL};
    const char *reduction = wf_node_string(n, "reduction", "mean");

    WF_TRY(wf_need_float(n, 0, "scores", err));
    WF_TRY(wf_need_int(n, 1, "labels", err));
    if (wf_node_has_in(n, 2))
        WF_TRY(wf_need_same_dtype(n, 0, 2, err));
    WF_TRY(wf_need_choice(n, "reduction", reductions, err));
    if (scores->rank >= 0 && labels->rank >= 0)
        WF_TRY(check_labels(scores, labels, err));
    if (scores->rank >= 2 && wf_node_has_in(n, 2))
        WF_TRY(check_weights(scores, n->in[2], err));
    if (strcmp(reduction, "none") == 0)
        wf_out_like(n, 0, scores->dtype, labels);
    else
        wf_out_axes(n, 0, scores->dtype, 0, NULL);
    return WF_OK;
}

/* dloss, scores or log_prob, labels, weights -> like input 1. */
static wf_status infer_grad(wf_graph *g, wf_node *n, wf_err *err)
{
    (void)g;
    WF_TRY(wf_need_float(n, 1, "scores", err));
    WF_TRY(wf_need_int(n, 2, "labels", err));
    wf_out_like(n, 0, n->in[1]->dtype, n->in[1]);
    return WF_OK;
}

/* SoftmaxCrossEntropyLoss: scores [n, classes, d...], labels [n, d...], class weights [classes];
 * output 1, log_prob, is what the gradient needs. */

static wf_status infer_softmax_cross_entropy_loss(wf_graph *g, wf_node *n, wf_err *err)
{
    (void)g;
    WF_TRY(infer_loss(n, err));
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
                 .attrs = attrs, .grad = grad_softmax_cross_entropy_loss);

/* ai.weft SoftmaxCrossEntropyGrad: dscores = (exp(log_prob) - onehot(labels)) dloss w[label] / sum
 * of w over the batch ("mean"), and 0 where labels are ignored. */

const wf_op wf_op_softmax_cross_entropy_grad =
    WF_FOLDABLE(WF_DOMAIN_WEFT, "SoftmaxCrossEntropyGrad", 1, 3, 4, infer_grad,
                .means = "(dloss, log_prob, labels, (weights)) -> dscores, as log_prob; attrs "
                         "ignore_index (none when absent), reduction = \"mean\"; dloss is a "
                         "scalar, or as labels for \"none\"",
                .attrs = attrs);

/* NegativeLogLikelihoodLoss: as SoftmaxCrossEntropyLoss, of log probabilities. */

static wf_status infer_negative_log_likelihood_loss(wf_graph *g, wf_node *n, wf_err *err)
{
    (void)g;
    return infer_loss(n, err);
}

const wf_op wf_op_negative_log_likelihood_loss =
    WF_FOLDABLE(WF_DOMAIN_ONNX, "NegativeLogLikelihoodLoss", 13, 2, 3,
                infer_negative_log_likelihood_loss, .labels_in = 1, .no_grad_in = 1u << 1 | 1u << 2,
                .attrs = attrs, WF_GRAD_NODE("NegativeLogLikelihoodLossGrad", "d0 x0 x1 x2"));

/* ai.weft NegativeLogLikelihoodLossGrad: -dloss w[label] / sum of w over the batch ("mean") at
 * each label, and 0 elsewhere. */

const wf_op wf_op_negative_log_likelihood_loss_grad =
    WF_FOLDABLE(WF_DOMAIN_WEFT, "NegativeLogLikelihoodLossGrad", 1, 3, 4, infer_grad,
                .means = "(dloss, input, labels, (weights)) -> dinput; attrs ignore_index (none "
                         "when absent), reduction = \"mean\"; of input only the shape is read",
                .attrs = attrs);
