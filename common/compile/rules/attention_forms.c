/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/rules/attention_forms.c - what DotAttention and its gradient say by an attribute,
 * in place of a tensor or of nodes around them.
 *
 * A mask that is known, and lets each row see the columns up to its own, becomes `causal`: kernels
 * then leave out what is hidden, and no mask is in memory. This has to look at content before large
 * constants become Pulls.
 */
#include "common/compile/rules/rules.h"
#include <math.h>

/* A score that is so low has no part in any sum that one at least 1e8 higher is in. */
static const double HIDDEN = -1e9;

/* What element i of a mask adds to a score, or puts in its place: 0 of neither. */
static double added(const wf_tensor *mask, double fill, int64_t i)
{
    if (mask->dtype == WF_BOOL)
        return ((const uint8_t *)mask->data)[i] ? fill : 0.0;
    return mask->dtype == WF_F32 ? (double)((const float *)mask->data)[i]
                                 : ((const double *)mask->data)[i];
}

/* Whether a mask, [t, s] behind axes of one, lets row i see columns 0 to i alone. */
static bool is_causal(const wf_tensor *mask, double fill)
{
    const int64_t t = wf_dim(mask, -2), s = wf_dim(mask, -1);

    if (wf_elems(mask) != t * s ||
        (mask->dtype != WF_BOOL && mask->dtype != WF_F32 && mask->dtype != WF_F64))
        return false;
    for (int64_t i = 0; i < t; i++)
        for (int64_t j = 0; j < s; j++) {
            const double x = added(mask, fill, i * s + j);

            if (j > i ? !(x <= HIDDEN) : x != 0)
                return false;
        }
    return true;
}

/* Of a node whose mask is input `at`, behind q, k and v. */
static wf_status take_causal(wf_rewrite *r, uint32_t at)
{
    wf_node *n = r->n;
    const wf_value *mask = wf_node_has_in(n, at) ? n->in[at] : NULL, *q = n->in[at - 3],
                   *v = n->in[at - 1];

    if (!mask || !wf_value_is_constant(mask) || mask->rank < 2 || q->rank < 2 ||
        q->axes[q->rank - 2].size != wf_dim(mask->known, -2) ||
        v->axes[v->rank - 2].size != wf_dim(mask->known, -1) ||
        !is_causal(mask->known, (double)wf_node_float(n, "fill", -INFINITY)))
        return WF_OK;
    wf_node_set_in(n, at, NULL);
    wf_node_drop_attr(n, "fill");
    r->changed = true;
    return wf_node_set_int(r->u->graph, n, "causal", 1, r->err);
}

static wf_status causal(wf_rewrite *r)
{
    return take_causal(r, 3);
}

static wf_status causal_grad(wf_rewrite *r)
{
    return take_causal(r, 4);
}

const wf_rewrite_rule wf_rules_attention_forms[] = {
    {WF_DOMAIN_WEFT, "DotAttention", causal},
    {WF_DOMAIN_WEFT, "DotAttentionGrad", causal_grad},
    {0},
};
