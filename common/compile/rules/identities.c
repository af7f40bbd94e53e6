/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/rules/identities.c - arithmetic that gives what it was given.
 *
 * Equal values, but for the sign of a zero where 0 is added. */
#include "common/compile/rules/rules.h"

static wf_status always(wf_rewrite *r)
{
    r->instead = r->n->in[0];
    return WF_OK;
}

/* Out of training it is its input; the mask is true everywhere, and here nobody wants it. */
static wf_status dropout(wf_rewrite *r)
{
    double training = 0.0, ratio = -1.0;
    bool off = !wf_node_has_in(r->n, 2) ||
               (wf_scalar_of(r->n->in[2], &training) && training == 0.0) ||
               (wf_node_has_in(r->n, 1) && wf_scalar_of(r->n->in[1], &ratio) && ratio == 0.0);
    bool masked = wf_node_has_out(r->n, 1) && wf_uses(r->u->graph, r->n->out[1]);

    if (off && !masked)
        r->instead = r->n->in[0];
    return WF_OK;
}

/* x op neutral, on either side where the operation commutes. */
static wf_status neutral(wf_rewrite *r, double element, bool commutes)
{
    for (uint32_t i = 0; i < 2; i++) {
        wf_value *x = r->n->in[i];
        double other;

        if (i == 1 && !commutes)
            break;
        if (wf_rewrite_uniform(r->n->in[1 - i], &other) && other == element &&
            wf_same_shape(x, r->n->out[0]) && x->dtype == r->n->out[0]->dtype)
            r->instead = x;
    }
    return WF_OK;
}

static wf_status add(wf_rewrite *r)
{
    return neutral(r, 0.0, true);
}

static wf_status sub(wf_rewrite *r)
{
    return neutral(r, 0.0, false);
}

static wf_status mul(wf_rewrite *r)
{
    return neutral(r, 1.0, true);
}

static wf_status divide(wf_rewrite *r)
{
    return neutral(r, 1.0, false);
}

static wf_status neg(wf_rewrite *r)
{
    const wf_node *before = wf_rewrite_made_by(r->n, 0, "Neg");

    if (before)
        r->instead = before->in[0];
    return WF_OK;
}

const wf_rewrite_rule wf_rules_identities[] = {
    {WF_DOMAIN_ONNX, "Identity", always},
    {WF_DOMAIN_ONNX, "Dropout", dropout},
    {WF_DOMAIN_ONNX, "Add", add},
    {WF_DOMAIN_ONNX, "Sub", sub},
    {WF_DOMAIN_ONNX, "Mul", mul},
    {WF_DOMAIN_ONNX, "Div", divide},
    {WF_DOMAIN_ONNX, "Pow", divide},
    {WF_DOMAIN_ONNX, "Neg", neg},
    {0},
};
