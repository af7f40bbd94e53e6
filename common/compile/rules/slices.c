/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/rules/slices.c - slices that need not be cut from something larger.
 *
 *     SliceGrad(a, 0:4) + SliceGrad(b, 4:8) + SliceGrad(c, 8:12) = Concat(a, b, c)
 *     columns 0:4 of Gemm(a, b, transB) = Gemm(a, rows 0:4 of b, transB)
 *
 * The first is the gradient of what was cut into slices: exporters write the heads of attention and
 * the gates of an LSTM so. The second is the gradient of what was put side by side, of which some
 * is an input of the model and wants none; the factor is smaller than the product.
 */
#include "common/base/size.h"
#include "common/compile/rules/rules.h"
#include <stdlib.h>

enum { MOST_PIECES = 32 };

typedef struct piece {
    wf_value *dy;
    int64_t axis, begin, end;
} piece;

typedef struct pieces {
    const wf_rewrite *r;
    const wf_value *whole; /* the sum */
    piece of[MOST_PIECES];
    size_t n;
} pieces;

/* The one number of a constant list of one; false: it is not that. */
static bool number_of(const wf_node *n, uint32_t i, int64_t *out)
{
    wf_elem elems[WF_MAX_CARRIED];
    uint32_t count;

    if (!wf_node_has_in(n, i) || !wf_value_elems(n->in[i], elems, &count) || count != 1 ||
        !elems[0].is_known)
        return false;
    *out = elems[0].value;
    return true;
}

/* Where a bound of Slice lies in an axis. */
static int64_t clamped(int64_t at, int64_t size)
{
    at = at < 0 ? at + size : at;
    return WF_MAX(0, WF_MIN(at, size));
}

/* A Slice or SliceGrad of `whole` along one axis of known size, step by step; what is cut stands in
 * the inputs of n from number `at` on. */
static bool read_piece(const wf_node *n, uint32_t at, const wf_value *whole, piece *p)
{
    int64_t size, step = 1;

    if (!number_of(n, at, &p->begin) || !number_of(n, at + 1, &p->end) ||
        !number_of(n, at + 2, &p->axis) ||
        (wf_node_has_in(n, at + 3) && !number_of(n, at + 3, &step)) || step != 1 || whole->rank < 1)
        return false;
    p->axis += p->axis < 0 ? whole->rank : 0;
    if (p->axis < 0 || p->axis >= whole->rank)
        return false;
    size = whole->axes[p->axis].size;
    p->dy = n->in[0];
    p->begin = clamped(p->begin, size);
    p->end = clamped(p->end, size);
    return size > 0 && p->begin < p->end;
}

/* The terms of a sum, all of them slices along one axis. */
static bool collect(pieces *p, const wf_value *v)
{
    const wf_node *add = wf_rewrite_maker(v, "Add");

    if (!wf_same_shape(v, p->whole))
        return false;
    if (add && (v == p->whole || wf_rewrite_sole(p->r, v)))
        return collect(p, add->in[0]) && collect(p, add->in[1]);
    if (p->n == MOST_PIECES || !wf_node_is(v->producer, WF_DOMAIN_WEFT, "SliceGrad") ||
        !read_piece(v->producer, 2, v, &p->of[p->n]) || p->of[p->n].axis != p->of[0].axis)
        return false;
    p->n++;
    return true;
}

static int by_begin(const void *a, const void *b)
{
    const piece *x = a, *y = b;

    return (x->begin > y->begin) - (x->begin < y->begin);
}

static wf_status sum(wf_rewrite *r)
{
    wf_emit e = wf_emit_begin(r->u->graph, r->n->name, r->err);
    pieces p = {.r = r, .whole = r->n->out[0]};
    wf_value *in[MOST_PIECES];
    wf_attr axis;
    int64_t at = 0;

    if (!collect(&p, r->n->out[0]))
        return WF_OK;
    qsort(p.of, p.n, sizeof p.of[0], by_begin);
    for (size_t i = 0; i < p.n; i++) {
        if (p.of[i].begin != at)
            return WF_OK; /* a gap, or twice the same */
        at = p.of[i].end;
        in[i] = p.of[i].dy;
    }
    if (at != p.whole->axes[p.of[0].axis].size)
        return WF_OK;
    axis = wf_attr_int("axis", p.of[0].axis);
    r->instead = wf_emit_op(&e, "Concat", (uint32_t)p.n, in, 1, &axis);
    return wf_emit_end(&e);
}

/* Whether a product has more rows than its sums have terms, as far as is known: of a batch. */
static bool has_many_rows(const wf_node *product, bool trans_a)
{
    const wf_value *a = product->in[0];
    int64_t rows = a->axes[trans_a].size, k = a->axes[!trans_a].size;

    return k >= 0 && (rows < 0 || rows > k);
}

static wf_status columns(wf_rewrite *r)
{
    wf_emit e = wf_emit_begin(r->u->graph, r->n->name, r->err);
    const wf_node *product = wf_rewrite_made_by(r->n, 0, "Gemm");
    bool trans_a = product && wf_node_int(product, "transA", 0),
         trans_b = product && wf_node_int(product, "transB", 0);
    wf_value *in[4];
    piece p;

    if (!product || wf_node_has_in(product, 2) || !wf_rewrite_sole(r, r->n->in[0]) ||
        !read_piece(r->n, 1, r->n->in[0], &p) || p.axis != 1 || !has_many_rows(product, trans_a))
        return WF_OK;
    in[0] = product->in[1];
    in[1] = wf_emit_ints(&e, 1, &p.begin);
    in[2] = wf_emit_ints(&e, 1, &p.end);
    in[3] = wf_emit_ints(&e, 1, &(int64_t){trans_b ? 0 : 1});
    r->instead = wf_emit_gemm(&e, product->in[0], wf_emit_op(&e, "Slice", 4, in, 0, NULL), NULL,
                              wf_node_float(product, "alpha", 1), 1, trans_a, trans_b);
    return wf_emit_end(&e);
}

const wf_rewrite_rule wf_rules_slices[] = {
    {WF_DOMAIN_ONNX, "Add", sum},
    {WF_DOMAIN_ONNX, "Slice", columns},
    {0},
};
