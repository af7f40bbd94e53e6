/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/nn/dot_attention.c - ai.weft DotAttention(q, k, v, (mask)) and its gradient:
 * softmax(scale q k^T, masked) v, head by head, so that the scores of a head stay in cache. The
 * gradient works the probabilities out again: that costs a product, and keeping them would cost the
 * memory of all heads' scores. What is kept, if the graph asks for it, is a number for each row of
 * scores: the logarithm of the sum of their exponentials.
 */
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

#include <string.h>

/* Heads, rows and columns that must agree: q [heads, t, d], k [heads, s, d] (or [heads, d, s] with
 * transK), v [heads, s, e]; with headsLast the last axis of heads stands behind the rows. Unknown
 * axes are taken to fit; the kernel looks again. */
static wf_status check(const wf_node *n, const wf_value *q, const wf_value *k, const wf_value *v,
                       wf_err *err)
{
    char a[WF_VALUE_STR], b[WF_VALUE_STR], c[WF_VALUE_STR];
    const bool trans = wf_node_int(n, "transK", 0) != 0, last = wf_node_int(n, "headsLast", 0) != 0;
    const uint32_t rank = (uint32_t)q->rank, rows = rank - 2 - last;
    bool fits = q->rank >= 2 + last && k->rank == q->rank && v->rank == q->rank;

    if (trans && last)
        return wf_fail(err, WF_INVALID, NULL, "transK and headsLast cannot both be set");
    for (uint32_t i = 0; fits && i + 1 < rank; i++)
        fits = i == rows || (!wf_axes_clash(&q->axes[i], &k->axes[i]) &&
                             !wf_axes_clash(&q->axes[i], &v->axes[i]));
    fits = fits && !wf_axes_clash(&q->axes[rank - 1], &k->axes[rank - 1 - trans]) &&
           !wf_axes_clash(&k->axes[rows + trans], &v->axes[rows]);
    if (fits)
        return WF_OK;
    return wf_fail(err, WF_SHAPE, NULL, "q is %s, k is %s, v is %s, which do not fit each other",
                   wf_value_str(q, a, sizeof a), wf_value_str(k, b, sizeof b),
                   wf_value_str(v, c, sizeof c));
}

static wf_status check_mask(const wf_node *n, uint32_t at, const wf_value *q, wf_err *err)
{
    const wf_value *mask = wf_node_has_in(n, at) ? n->in[at] : NULL;

    if (mask && wf_node_int(n, "causal", 0))
        return wf_fail(err, WF_INVALID, NULL, "causal attention has no mask beside");
    if (!mask || (mask->rank <= q->rank && (mask->dtype == WF_BOOL || mask->dtype == q->dtype)))
        return WF_OK;
    return wf_fail(err, WF_SHAPE, NULL, "the mask must be bool, or a sum of q's dtype and rank");
}

/* The axes of a number for each row, from q's: heads stand in front of rows. */
static void rows_of(const wf_node *n, const wf_value *q, wf_axis axes[])
{
    const int32_t rank = q->rank;

    memcpy(axes, q->axes, (size_t)rank * sizeof axes[0]);
    if (wf_node_int(n, "headsLast", 0)) {
        axes[rank - 3] = q->axes[rank - 2];
        axes[rank - 2] = q->axes[rank - 3];
    }
}

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    const wf_value *q = n->in[0], *k = n->in[1], *v = n->in[2];
    wf_axis axes[WF_MAX_RANK];

    (void)g;
    WF_TRY(wf_need_float(n, 0, "q", err));
    WF_TRY(wf_need_same_dtype(n, 0, 1, err));
    WF_TRY(wf_need_same_dtype(n, 0, 2, err));
    for (uint32_t i = 0; i < n->n_out; i++)
        wf_out_unknown(n, i, q->dtype);
    if (q->rank < 0 || k->rank < 0 || v->rank < 0)
        return WF_OK;
    WF_TRY(check(n, q, k, v, err));
    WF_TRY(check_mask(n, 3, q, err));
    memcpy(axes, q->axes, (size_t)q->rank * sizeof axes[0]);
    axes[q->rank - 1] = v->axes[v->rank - 1];
    wf_out_axes(n, 0, q->dtype, (uint32_t)q->rank, axes);
    rows_of(n, q, axes);
    if (wf_node_has_out(n, 1))
        wf_out_axes(n, 1, q->dtype, (uint32_t)q->rank - 1, axes);
    return WF_OK;
}

static bool is_like(const wf_value *v, wf_dtype dtype, int32_t rank, const wf_axis axes[])
{
    if (v->rank < 0)
        return v->dtype == dtype;
    if (v->rank != rank || v->dtype != dtype)
        return false;
    for (int32_t i = 0; i < rank; i++)
        if (wf_axes_clash(&v->axes[i], &axes[i]))
            return false;
    return true;
}

/* y and the sums, if the gradient is given both. */
static wf_status check_kept(const wf_node *n, const wf_value *q, wf_err *err)
{
    const wf_value *dy = n->in[0];
    wf_axis axes[WF_MAX_RANK];

    if (!wf_node_has_in(n, 5) && !wf_node_has_in(n, 6))
        return WF_OK;
    rows_of(n, q, axes);
    if (wf_node_has_in(n, 5) && wf_node_has_in(n, 6) && dy->rank >= 0 &&
        is_like(n->in[5], dy->dtype, dy->rank, dy->axes) &&
        is_like(n->in[6], q->dtype, q->rank - 1, axes))
        return WF_OK;
    return wf_fail(err, WF_SHAPE, NULL, "y and the sums are not both those of its attention");
}

static wf_status infer_grad(wf_graph *g, wf_node *n, wf_err *err)
{
    const wf_value *q = n->in[1], *k = n->in[2], *v = n->in[3];

    (void)g;
    WF_TRY(wf_need_float(n, 0, "dy", err));
    for (uint32_t i = 1; i < 4; i++)
        WF_TRY(wf_need_same_dtype(n, 0, i, err));
    if (q->rank >= 0 && k->rank >= 0 && v->rank >= 0) {
        WF_TRY(check(n, q, k, v, err));
        WF_TRY(check_mask(n, 4, q, err));
        WF_TRY(check_kept(n, q, err));
    }
    for (uint32_t i = 0; i < 3; i++)
        wf_out_like(n, i, n->in[0]->dtype, n->in[i + 1]);
    return WF_OK;
}

static wf_status grad(wf_grads *g, const wf_node *n, wf_err *err)
{
    if (wf_node_has_out(n, 1) && wf_grads_upstream(g, n, 1))
        return wf_fail(err, WF_UNSUPPORTED, NULL, "DotAttention \"%s\": its sums have no gradient",
                       n->name);
    return wf_grad_by_node(g, n, err);
}

static const wf_attr_row attrs[] = {
    {"causal", WF_ATTR_INT, false},    {"fill", WF_ATTR_FLOAT, false},
    {"headsLast", WF_ATTR_INT, false}, {"scale", WF_ATTR_FLOAT, false},
    {"transK", WF_ATTR_INT, false},    {0}};

const wf_op wf_op_dot_attention = WF_OPERATION(
    WF_DOMAIN_WEFT, "DotAttention", 1, 3, 4, 1, 2, WF_OP_FOLDABLE, infer,
    .means =
        "(q, k, v, (mask)) -> y, (sums); attrs scale = 1, fill = -inf, transK = 0, causal = 0, "
        "headsLast = 0; "
        "softmax(scale q k^T, masked) v over the last two axes, q [..., t, d], k "
        "[..., s, d], or [..., d, s] with transK, v [..., s, e]; the mask "
        "broadcasts to [..., t, s]: true where the score is fill, or numbers that "
        "are added; causal: there is none, and row i has columns 0 to i alone; headsLast: q, k, v "
        "and y are [..., t or s, heads, d or e], and rows of a head lie apart; "
        "sums, [..., heads, t], are logarithms of the sums of exponentials of each row of scores",
    .no_grad_in = 1u << 3, .attrs = attrs, .grad = grad, .grad_op = "DotAttentionGrad",
    .grad_takes = "d0 x0 x1 x2 x3");

const wf_op wf_op_dot_attention_grad = WF_OPERATION(
    WF_DOMAIN_WEFT, "DotAttentionGrad", 1, 4, 7, 3, 3, WF_OP_FOLDABLE, infer_grad,
    .means =
        "(dy, q, k, v, (mask), (y), (sums)) -> dq, dk, dv; DotAttention's attrs; y and sums are "
        "its results, which a kernel reads or makes again",
    .attrs = attrs);
