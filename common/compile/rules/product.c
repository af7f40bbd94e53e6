/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/rules/product.c - products of matrices in batches that read a transposed operand
 * as it lies, as ai.weft Product; the gradient of every MatMul has two of them. Of two plain
 * matrices Gemm does it, and a weight at the right is Linear's (linear.c), which comes first. */
#include "common/compile/rules/rules.h"

/* Whether a Transpose exchanges the last two axes and no others. */
static bool turns(const wf_node *t)
{
    size_t n = 0;
    const int64_t *perm = wf_node_ints(t, "perm", &n);

    if (t->out[0]->rank < 2)
        return false;
    for (size_t i = 0; i + 2 < n; i++)
        if (perm[i] != (int64_t)i)
            return false;
    return perm ? n == (size_t)t->out[0]->rank && perm[n - 1] == (int64_t)n - 2
                : t->out[0]->rank == 2;
}

/* What v is before a transpose of its last two axes; NULL: it has none. */
static wf_value *turned(const wf_value *v)
{
    const wf_node *t = wf_rewrite_maker(v, "Transpose");

    return t && turns(t) ? t->in[0] : NULL;
}

static wf_value *emit(wf_emit *e, wf_value *a, wf_value *b, bool trans_a, bool trans_b)
{
    wf_attr attrs[2];
    uint32_t n = 0;

    if (a->rank == 2 && b->rank == 2)
        return wf_emit_gemm(e, a, b, NULL, 1, 1, trans_a, trans_b);
    if (trans_a)
        attrs[n++] = wf_attr_int("transA", 1);
    if (trans_b)
        attrs[n++] = wf_attr_int("transB", 1);
    return wf_emit_op(e, "Product", 2, (wf_value *[]){a, b}, n, attrs);
}

static wf_status matmul(wf_rewrite *r)
{
    wf_emit e = wf_emit_begin(r->u->graph, r->n->name, r->err);
    wf_value *a = r->n->in[0], *b = r->n->in[1], *turned_a = turned(a), *turned_b = turned(b);

    if ((!turned_a && !turned_b) || a->rank < 2 || b->rank < 2 || !wf_dtype_is_float(a->dtype))
        return WF_OK;
    r->instead = emit(&e, turned_a ? turned_a : a, turned_b ? turned_b : b, turned_a != NULL,
                      turned_b != NULL);
    return wf_emit_end(&e);
}

/* (A B)^T = B^T A^T: the gradient of an operand that is transposed. */
static wf_status transpose(wf_rewrite *r)
{
    wf_emit e = wf_emit_begin(r->u->graph, r->n->name, r->err);
    const wf_node *n = r->n->in[0]->producer;

    if ((!wf_node_is(n, WF_DOMAIN_ONNX, "MatMul") && !wf_node_is(n, WF_DOMAIN_WEFT, "Product")) ||
        !turns(r->n) || !wf_rewrite_sole(r, n->out[0]) || n->in[0]->rank < 2 ||
        n->in[1]->rank < 2 || !wf_dtype_is_float(n->out[0]->dtype))
        return WF_OK;
    r->instead =
        emit(&e, n->in[1], n->in[0], !wf_node_int(n, "transB", 0), !wf_node_int(n, "transA", 0));
    return wf_emit_end(&e);
}

const wf_rewrite_rule wf_rules_product[] = {
    {WF_DOMAIN_ONNX, "MatMul", matmul},
    {WF_DOMAIN_ONNX, "Transpose", transpose},
    {0},
};
