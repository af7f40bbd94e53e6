/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/rules/attention.c - attention, as every exporter below opset 23 writes it out:
 *
 *     MatMul(Softmax(masked(scale * MatMul(q, k^T))), v)
 *
 * where the scale is a Mul or Div by a number, of the scores or of a factor of theirs, and the mask
 * a Where that fills in a number, or an Add of what no variable reaches. Dropout of the
 * probabilities in training stands in the way.
 */
#include "common/compile/rules/rules.h"
#include <math.h>
#include <string.h>

enum { MOST_LOOKED_AT = 64 };

typedef struct form {
    wf_value *q, *k, *v, *mask;
    double scale, fill;
    bool has_fill, fills_false, trans_k;
} form;

/* Whether no variable is in v, so that no gradient is wanted of it; none passes through whole
 * numbers, such as the shape of what is trained. Looks at so many nodes and no more: masks are
 * small. */
static bool is_untrained(const wf_value *v, int *left)
{
    if (v->dtype == WF_I64 || v->dtype == WF_I32 || v->dtype == WF_BOOL)
        return true;
    if (!v->producer)
        return v->variable == WF_VAR_NOT || v->variable == WF_VAR_FROZEN;
    if (v->producer->n_in == 0 || --*left < 0 ||
        (v->producer->op->flags & (WF_OP_RANDOM | WF_OP_STATEFUL)))
        return false;
    for (uint32_t i = 0; i < v->producer->n_in; i++)
        if (v->producer->in[i] && !is_untrained(v->producer->in[i], left))
            return false;
    return true;
}

/* Scores under a mask, or the scores themselves. NULL: some other mask. */
static wf_value *unmasked(wf_value *scores, form *f)
{
    const wf_node *where = wf_rewrite_maker(scores, "Where"),
                  *add = wf_rewrite_maker(scores, "Add");
    int left = MOST_LOOKED_AT;

    for (uint32_t i = 1; where && i < 3; i++)
        if (wf_rewrite_uniform(where->in[i], &f->fill)) {
            f->has_fill = true;
            f->fills_false = i == 2;
            f->mask = where->in[0];
            return where->in[3 - i];
        }
    if (where)
        return NULL;
    for (uint32_t i = 0; add && i < 2; i++)
        if (is_untrained(add->in[i], &left)) {
            f->mask = add->in[i];
            return add->in[1 - i];
        }
    return scores;
}

static wf_value *unscaled(const wf_rewrite *r, wf_value *scores, form *f)
{
    const wf_node *mul = wf_rewrite_maker(scores, "Mul"), *div = wf_rewrite_maker(scores, "Div");
    double number;

    for (uint32_t i = 0; mul && i < 2; i++)
        if (wf_rewrite_uniform(mul->in[i], &number) && wf_rewrite_sole(r, mul->in[1 - i])) {
            f->scale *= number;
            return mul->in[1 - i];
        }
    if (div && wf_rewrite_uniform(div->in[1], &number) && number != 0.0 &&
        wf_rewrite_sole(r, div->in[0])) {
        f->scale /= number;
        return div->in[0];
    }
    return scores;
}

/* The same of a factor of the scores, which only a product reads: Keras multiplies the queries, and
 * PyTorch's exporters queries and keys by the root. */
static wf_value *unscaled_factor(const wf_rewrite *r, wf_value *x, form *f)
{
    const wf_node *mul = wf_rewrite_maker(x, "Mul");
    double number;

    for (uint32_t i = 0; mul && wf_rewrite_sole(r, x) && i < 2; i++)
        if (wf_rewrite_uniform(mul->in[i], &number) && wf_same_shape(mul->in[1 - i], x)) {
            f->scale *= number;
            return mul->in[1 - i];
        }
    return x;
}

/* k out of k^T: without a Transpose of the last two axes it is taken as it lies. */
static void find_k(form *f, wf_value *transposed)
{
    const wf_node *t = wf_rewrite_maker(transposed, "Transpose");
    size_t n;
    const int64_t *perm = t ? wf_node_ints(t, "perm", &n) : NULL;

    f->k = transposed;
    f->trans_k = true;
    if (!perm || n < 2)
        return;
    for (size_t i = 0; i + 2 < n; i++)
        if (perm[i] != (int64_t)i)
            return;
    if (perm[n - 1] == (int64_t)n - 2 && perm[n - 2] == (int64_t)n - 1) {
        f->k = t->in[0];
        f->trans_k = false;
    }
}

/* Where k^T is a Transpose of its own that puts the features in front of the rows: k by a Transpose
 * that leaves rows whole, which takes no more work, and kernels want k as it lies then. */
static void keep_rows_whole(const wf_rewrite *r, wf_emit *e, form *f)
{
    const wf_node *t = f->trans_k ? wf_rewrite_maker(f->k, "Transpose") : NULL;
    int64_t whole[WF_MAX_RANK];
    size_t n;
    const int64_t *perm = t ? wf_node_ints(t, "perm", &n) : NULL;

    if (!perm || n < 2 || perm[n - 2] != (int64_t)n - 1 || !wf_rewrite_sole(r, f->k))
        return;
    memcpy(whole, perm, n * sizeof *whole);
    whole[n - 2] = perm[n - 1];
    whole[n - 1] = perm[n - 2];
    f->k = wf_emit_transpose(e, t->in[0], whole);
    f->trans_k = false;
}

/* One rank, and certainly the same heads: the kernel broadcasts none. */
static bool fits(const form *f, const wf_value *scores)
{
    wf_value q = *f->q, k = *f->k, v = *f->v;

    if (q.rank < 3 || k.rank != q.rank || v.rank != q.rank || !wf_dtype_is_float(q.dtype) ||
        (f->mask && (f->mask->rank < 0 || f->mask->rank > q.rank)))
        return false;
    if (f->mask && f->mask->dtype != (f->has_fill ? WF_BOOL : q.dtype))
        return false;
    for (int32_t i = 0; f->mask && i < f->mask->rank; i++) {
        const wf_axis *to = &scores->axes[scores->rank - f->mask->rank + i];
        const wf_axis *from = &f->mask->axes[i];

        if (from->size < 0 ? to->size >= 0 : from->size != 1 && from->size != to->size)
            return false;
    }
    q.rank = k.rank = v.rank = q.rank - 2;
    return wf_same_shape(&q, &k) && wf_same_shape(&q, &v);
}

static bool is_softmax_of_last(const wf_node *n)
{
    int64_t axis = n ? wf_node_int(n, "axis", -1) : 0;

    return n && (axis == -1 || axis == n->in[0]->rank - 1);
}

/* The parts of an attention that ends in this MatMul. */
static bool find(const wf_rewrite *r, form *f)
{
    const wf_node *softmax = wf_rewrite_made_by(r->n, 0, "Softmax"), *product;
    wf_value *scores, *masked;

    *f = (form){.v = r->n->in[1], .scale = 1.0};
    if (!is_softmax_of_last(softmax) || !wf_rewrite_sole(r, softmax->out[0]) ||
        !wf_rewrite_sole(r, softmax->in[0]))
        return false;
    masked = unmasked(softmax->in[0], f);
    if (!masked || !wf_rewrite_sole(r, masked))
        return false;
    scores = unscaled(r, masked, f);
    product = wf_rewrite_maker(scores, "MatMul");
    if (!product || !wf_rewrite_sole(r, scores))
        return false;
    f->q = unscaled_factor(r, product->in[0], f);
    find_k(f, unscaled_factor(r, product->in[1], f));
    return fits(f, scores) && wf_same_shape(scores, softmax->in[0]);
}

static wf_status attention(wf_rewrite *r)
{
    wf_emit e = wf_emit_begin(r->u->graph, r->n->name, r->err);
    wf_attr attrs[3];
    uint32_t n = 0;
    form f;

    if (!find(r, &f))
        return WF_OK;
    keep_rows_whole(r, &e, &f);
    if (f.fills_false)
        f.mask = wf_emit_unary(&e, "Not", f.mask);
    attrs[n++] = wf_attr_float("scale", (float)f.scale);
    if (f.has_fill)
        attrs[n++] = wf_attr_float("fill", (float)f.fill);
    if (f.trans_k)
        attrs[n++] = wf_attr_int("transK", 1);
    r->instead = wf_emit_op(&e, "DotAttention", f.mask ? 4 : 3,
                            (wf_value *[]){f.q, f.k, f.v, f.mask}, n, attrs);
    return wf_emit_end(&e);
}

const wf_rewrite_rule wf_rules_attention[] = {
    {WF_DOMAIN_ONNX, "MatMul", attention},
    {0},
};
