/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/rules/sums.c - a bias's gradient beside its weight's: dW = X^T dY adds up over the
 * rows of dY, and db is the sum of these rows. One Product with `sums` gives both.
 *
 * A GPU's libraries have a product that does so; other devices sum the rows behind their product,
 * as ReduceSum does. The compiler does not ask which device it is: a graph is the same wherever it
 * runs, and on the CPU this one has the bits of the two nodes. */
#include "common/compile/rules/rules.h"
#include <stdlib.h>

enum { MOST_VIEWS = 4 /* one of the other, that are looked through */ };

/* What n gives another shape; NULL: it does something else. */
static const wf_value *in_another_shape(const wf_node *n)
{
    if (!n || !n->op->keeps_order || !wf_node_has_in(n, 0) || !wf_node_has_out(n, 0) ||
        n->in[0]->dtype != n->out[0]->dtype)
        return NULL;
    return n->in[0];
}

/* What v is before it was given other shapes. */
static const wf_value *before_shapes(const wf_value *v)
{
    const wf_value *from = v;

    for (int i = 0; from && i <= MOST_VIEWS; i++) {
        v = from;
        from = in_another_shape(v->producer);
    }
    return v;
}

/* Whether a ReduceSum adds up the rows of what it reads: along all axes but the last. */
static bool sums_rows(const wf_node *n)
{
    const wf_value *x = n->in[0], *axes = wf_node_has_in(n, 1) ? n->in[1] : NULL;
    uint32_t summed = 0;

    if (x->rank < 2 || x->axes[x->rank - 1].size < 1 || !wf_dtype_is_float(x->dtype) || !axes ||
        !axes->known || axes->dtype != WF_I64 || n->out[0]->rank != 1)
        return false;
    for (int64_t i = 0; i < wf_elems(axes->known); i++) {
        int64_t axis = ((const int64_t *)axes->known->data)[i];

        summed |= 1u << (axis < 0 ? axis + x->rank : axis);
    }
    return summed == (1u << (x->rank - 1)) - 1;
}

/* Whether n is a product of two matrices and nothing else, which could give sums too. */
static bool is_plain_product(const wf_node *n)
{
    bool is_product = wf_node_is(n, WF_DOMAIN_WEFT, "Product") && n->n_out == 1,
         is_gemm = wf_node_is(n, WF_DOMAIN_ONNX, "Gemm") && !wf_node_has_in(n, 2) &&
                   wf_node_float(n, "alpha", 1) == 1;

    return (is_product || is_gemm) && n->in[0]->rank == 2 && n->in[1]->rank == 2;
}

/* Whose rows are summed, and the product that could do it. */
typedef struct found {
    const wf_rewrite *r;
    int64_t columns; /* of a row */
    wf_node *product;
    int operand;
} found;

/* The operand of a product that it adds up over the rows of, if that is v: 0 or 1, or -1. */
static int operand_of(const wf_node *n, const wf_value *v)
{
    for (int i = 0; i < 2; i++) {
        bool over_rows = i == 0 ? wf_node_int(n, "transA", 0) != 0 : !wf_node_int(n, "transB", 0);

        if (over_rows && n->in[i] == v)
            return i;
    }
    return -1;
}

/* Looks among those who read v, and v in other shapes: where two have rows of one length, they have
 * the same rows. Of several products the first node is taken, whatever the order of readers. */
static void find_product(found *f, const wf_value *v, int views)
{
    for (const wf_use *u = v->first_use; u; u = u->next) {
        wf_node *n = u->node;
        int operand = is_plain_product(n) ? operand_of(n, v) : -1;

        if (operand >= 0 && v->axes[1].size == f->columns && n->device == f->r->n->device &&
            wf_uses(f->r->u->graph, n->out[0]) && (!f->product || n->index < f->product->index)) {
            f->product = n;
            f->operand = operand;
        }
        if (views > 0 && in_another_shape(n) == v)
            find_product(f, n->out[0], views - 1);
    }
}

/* Whether nothing that f->product reads is computed from the sums: one node could not give both.
 * `left` and `seen` have a place for each node. */
static bool is_apart(const found *f, wf_node **left, bool seen[])
{
    size_t n_left = 1;

    left[0] = f->product;
    while (n_left > 0) {
        const wf_node *n = left[--n_left];

        for (uint32_t i = 0; i < n->n_in; i++) {
            wf_node *maker = n->in[i] ? n->in[i]->producer : NULL;

            if (maker == f->r->n)
                return false;
            if (!maker || seen[maker->index])
                continue;
            seen[maker->index] = true;
            left[n_left++] = maker;
        }
    }
    return true;
}

static wf_status take_in(wf_rewrite *r, const found *f)
{
    wf_graph *g = r->u->graph;
    const wf_node *product = f->product;
    wf_emit e = wf_emit_begin(g, product->name, r->err);
    wf_attr attrs[3] = {wf_attr_string("sums", f->operand == 0 ? "a" : "b")};
    wf_value *out[2];
    uint32_t n = 1;

    if (wf_node_int(product, "transA", 0))
        attrs[n++] = wf_attr_int("transA", 1);
    if (wf_node_int(product, "transB", 0))
        attrs[n++] = wf_attr_int("transB", 1);
    (void)wf_emit_node(&e, "Product", 2, product->in, n, attrs, 2, out);
    WF_TRY(wf_emit_end(&e));
    if (!wf_may_hand_over(g, product->out[0], out[0]) || !wf_may_hand_over(g, r->n->out[0], out[1]))
        return WF_OK;
    r->instead = out[1];
    return wf_hand_over(r->u, product->out[0], out[0], r->err);
}

static wf_status sum(wf_rewrite *r)
{
    const size_t n = r->u->graph->n_nodes;
    const wf_value *x = r->n->in[0];
    found f = {.r = r};
    wf_node **left;
    bool *seen;
    wf_status rc = WF_OK;

    if (!sums_rows(r->n))
        return WF_OK;
    f.columns = x->axes[x->rank - 1].size;
    find_product(&f, before_shapes(x), MOST_VIEWS);
    if (!f.product)
        return WF_OK;
    left = calloc(n, sizeof *left);
    seen = calloc(n, sizeof *seen);
    if (!left || !seen)
        rc = wf_fail_nomem(r->err, n * sizeof *left);
    else if (is_apart(&f, left, seen))
        rc = take_in(r, &f);
    free(left);
    free(seen);
    return rc;
}

const wf_rewrite_rule wf_rules_sums[] = {
    {WF_DOMAIN_ONNX, "ReduceSum", sum},
    {0},
};
