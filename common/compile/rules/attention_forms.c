/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/rules/attention_forms.c - what DotAttention and its gradient say by an attribute,
 * in place of a tensor or of nodes around them.
 *
 * A mask that is known, and lets each row see the columns up to its own, becomes `causal`: kernels
 * then leave out what is hidden, and no mask is in memory. This has to look at content before large
 * constants become Pulls.
 *
 * Products make [..., rows, heads, features], and attention is written out over [..., heads, rows,
 * features], with a Transpose around each tensor. Those in front become `headsLast`, and one
 * behind, which meets that of the model:
 *
 *     DotAttention(Transpose(q), Transpose(k), Transpose(v)) = Transpose(DotAttention(q, k, v))
 */
#include "common/compile/rules/rules.h"
#include <math.h>
#include <string.h>

enum { MOST_IN = 5, MOST_ATTRS = 8 };

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

/* The third axis from behind and the second change places. */
static void swap(int64_t perm[], int32_t rank)
{
    for (int32_t i = 0; i < rank; i++)
        perm[i] = i;
    perm[rank - 3] = rank - 2;
    perm[rank - 2] = rank - 3;
}

/* What v is a Transpose of that swaps these axes; or NULL. */
static wf_value *swapped(const wf_value *v)
{
    const wf_node *t = wf_rewrite_maker(v, "Transpose");
    int64_t want[WF_MAX_RANK];
    size_t n = 0;
    const int64_t *perm = t ? wf_node_ints(t, "perm", &n) : NULL;

    if (!perm || n < 3 || v->rank != (int32_t)n)
        return NULL;
    swap(want, v->rank);
    return memcmp(perm, want, n * sizeof *perm) == 0 ? t->in[0] : NULL;
}

static wf_value *swap_back(wf_emit *e, wf_value *v)
{
    int64_t perm[WF_MAX_RANK];

    if (!v)
        return NULL;
    swap(perm, v->rank);
    return wf_emit_transpose(e, v, perm);
}

/* The same node over what stands in front of the Transposes, `in` and `out` as it has them; q is
 * input `first`, k and v are behind. Leaves out[0] NULL where one of the three is no Transpose, or
 * what the forward pass knew is kept. */
static void move_heads(const wf_rewrite *r, wf_emit *e, uint32_t first, wf_value *out[])
{
    const wf_node *n = r->n;
    wf_attr attrs[MOST_ATTRS];
    wf_value *in[MOST_IN];

    out[0] = NULL;
    if (n->n_in > first + 4 || n->n_attrs + 1 > MOST_ATTRS || wf_node_int(n, "transK", 0) ||
        wf_node_int(n, "headsLast", 0) || (first == 0 && wf_node_has_out(n, 1)))
        return;
    memcpy(in, n->in, n->n_in * sizeof *in);
    for (uint32_t i = first; i < first + 3; i++) {
        in[i] = swapped(n->in[i]);
        if (!in[i])
            return;
    }
    for (uint32_t i = 0; i < first; i++) /* dy */
        in[i] = swapped(n->in[i]) ? swapped(n->in[i]) : swap_back(e, n->in[i]);
    if (n->n_attrs)
        memcpy(attrs, n->attrs, n->n_attrs * sizeof *attrs);
    attrs[n->n_attrs] = wf_attr_int("headsLast", 1);
    (void)wf_emit_node(e, n->op->name, n->n_in, in, n->n_attrs + 1, attrs, first ? 3 : 1, out);
}

static wf_status heads_last(wf_rewrite *r)
{
    wf_emit e = wf_emit_begin(r->u->graph, r->n->name, r->err);
    wf_value *y[1];

    move_heads(r, &e, 0, y);
    r->instead = swap_back(&e, y[0]);
    return wf_emit_end(&e);
}

static wf_status heads_last_grad(wf_rewrite *r)
{
    wf_emit e = wf_emit_begin(r->u->graph, r->n->name, r->err);
    wf_value *made[3];

    move_heads(r, &e, 1, made);
    if (!made[0])
        return wf_emit_end(&e);
    for (uint32_t i = 0; i < 3; i++)
        made[i] = swap_back(&e, made[i]);
    WF_TRY(wf_emit_end(&e));
    for (uint32_t i = 0; i < 3; i++)
        if (!wf_may_hand_over(r->u->graph, r->n->out[i], made[i]))
            return WF_OK;
    r->instead = made[0];
    for (uint32_t i = 1; i < 3; i++)
        WF_TRY(wf_hand_over(r->u, r->n->out[i], made[i], r->err));
    return WF_OK;
}

const wf_rewrite_rule wf_rules_attention_forms[] = {
    {WF_DOMAIN_WEFT, "DotAttention", causal},
    {WF_DOMAIN_WEFT, "DotAttention", heads_last},
    {WF_DOMAIN_WEFT, "DotAttentionGrad", causal_grad},
    {WF_DOMAIN_WEFT, "DotAttentionGrad", heads_last_grad},
    {0},
};
