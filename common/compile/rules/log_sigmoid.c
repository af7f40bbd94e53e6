/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/rules/log_sigmoid.c - logarithms of sigmoids in the form that no logit can
 * overflow.
 *
 * PyTorch's binary_cross_entropy_with_logits and logsigmoid come as Log(Sigmoid(x)) and
 * Log(1 - Sigmoid(x)): infinite, and NaN in their gradients, once |x| passes 17 to 88. Both are
 * crossentropies of one logit: log s(x) = -H(x, 1), log(1 - s(x)) = -H(x, 0), with H as in
 * SigmoidCrossEntropy (op.h), whose value and slope are exact for every x. This runs before
 * differentiate, so that gradients come out of the stable form too.
 */
#include "common/compile/rules/rules.h"

/* x when v is Sigmoid(x), else NULL. */
static wf_value *sigmoid_of(const wf_value *v)
{
    return v && v->producer && wf_node_is(v->producer, WF_DOMAIN_ONNX, "Sigmoid")
               ? v->producer->in[0]
               : NULL;
}

/* x and the class when v is Sigmoid(x) (1) or 1 - Sigmoid(x) (0), else NULL. */
static wf_value *probability_of(const wf_value *v, double *label)
{
    const wf_node *n = v->producer;
    double one;

    *label = 1.0;
    if (sigmoid_of(v))
        return sigmoid_of(v);
    *label = 0.0;
    if (!n || !wf_node_is(n, WF_DOMAIN_ONNX, "Sub") || !wf_scalar_of(n->in[0], &one) || one != 1.0)
        return NULL;
    return sigmoid_of(n->in[1]) && wf_same_shape(v, n->in[1]) ? sigmoid_of(n->in[1]) : NULL;
}

static wf_status log_of(wf_rewrite *r)
{
    wf_emit e = wf_emit_begin(r->u->graph, r->n->name, r->err);
    wf_attr none = wf_attr_string("reduction", "none");
    wf_value *in[2];
    double label;

    in[0] = probability_of(r->n->in[0], &label);
    if (!in[0])
        return WF_OK;
    in[1] = wf_emit_scalar(&e, in[0]->dtype, label);
    r->instead = wf_emit_neg(&e, wf_emit_op(&e, "SigmoidCrossEntropy", 2, in, 1, &none));
    return wf_emit_end(&e);
}

const wf_rewrite_rule wf_rules_log_sigmoid[] = {
    {WF_DOMAIN_ONNX, "Log", log_of},
    {0},
};
