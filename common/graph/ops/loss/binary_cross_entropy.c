/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/loss/binary_cross_entropy.c - SigmoidCrossEntropy and SigmoidCrossEntropyGrad.
 */
#include "common/graph/emit.h"
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

#include <string.h>

/* ai.weft SigmoidCrossEntropy: binary cross-entropy from logits x and labels z in [0, 1]: max(x,
 * 0) - x z + log(1 + exp(-|x|)), which neither overflows nor takes log 0. */

static wf_status infer_sigmoid_cross_entropy(wf_graph *g, wf_node *n, wf_err *err)
{
    const wf_value *x = n->in[0], *z = n->in[1];
    const char *reduction = wf_node_string(n, "reduction", "mean");
    wf_axis axes[WF_MAX_RANK];
    char a[WF_VALUE_STR], b[WF_VALUE_STR];
    uint32_t rank = 0;

    (void)g;
    WF_TRY(wf_need_float(n, 0, "logits", err));
    WF_TRY(wf_need_same_dtype(n, 0, 1, err));
    if (x->rank >= 0 && z->rank >= 0) {
        wf_status rc = wf_axes_broadcast(axes, &rank, x, err);

        if (rc == WF_OK)
            rc = wf_axes_broadcast(axes, &rank, z, err);
        if (rc == WF_OK && rank != (uint32_t)x->rank)
            rc = wf_fail(err, WF_SHAPE, NULL, "labels have more axes than logits");
        WF_TRY(wf_err_wrap(err, rc, "logits are %s and labels %s", wf_value_str(x, a, sizeof a),
                           wf_value_str(z, b, sizeof b)));
    }
    if (strcmp(reduction, "none") == 0)
        wf_out_like(n, 0, x->dtype, x);
    else
        wf_out_axes(n, 0, x->dtype, 0, NULL);
    return WF_OK;
}

static const wf_attr_row attrs[] = {{"reduction", WF_ATTR_STRING, false}, {0}};

const wf_op wf_op_sigmoid_cross_entropy = WF_FOLDABLE(
    WF_DOMAIN_WEFT, "SigmoidCrossEntropy", 1, 2, 2, infer_sigmoid_cross_entropy,
    .means = "(logits, labels) -> loss; attr reduction = \"mean\", \"sum\" or "
             "\"none\"; labels broadcast to logits; max(x, 0) - x z + log(1 + "
             "exp(-abs(x)))",
    .no_grad_in = 1u << 1, .attrs = attrs, WF_GRAD_NODE("SigmoidCrossEntropyGrad", "d0 x0 x1"));

/* ai.weft SigmoidCrossEntropyGrad: dx = (sigmoid(x) - z) dloss, divided by the number of logits
 * for "mean". */

static wf_status infer_sigmoid_cross_entropy_grad(wf_graph *g, wf_node *n, wf_err *err)
{
    (void)g;
    WF_TRY(wf_need_float(n, 1, "logits", err));
    wf_out_like(n, 0, n->in[1]->dtype, n->in[1]);
    return WF_OK;
}

const wf_op wf_op_sigmoid_cross_entropy_grad = WF_FOLDABLE(
    WF_DOMAIN_WEFT, "SigmoidCrossEntropyGrad", 1, 3, 3, infer_sigmoid_cross_entropy_grad,
    .means = "(dloss, logits, labels) -> dlogits; attr reduction = \"mean\"; "
             "(sigmoid(x) - z) dloss, divided by the number of logits for \"mean\"",
    .attrs = attrs);
