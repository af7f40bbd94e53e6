/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/rules/linear.c - linear layers as ai.weft Linear: product, bias and Relu in one
 * pass over the result, with weights as they lie; and backward, the product that gives the gradient
 * of a Relu's output, and ReluGrad. After differentiate: the gradient of Relu reads its output,
 * which is Linear's. */
#include "common/compile/rules/rules.h"
#include <string.h>

/* x, W, bias and y; the latter two may be NULL. */
enum { INPUTS = 4 };

static wf_status emit(wf_rewrite *r, wf_value *const in[INPUTS], bool trans, const char *activation)
{
    wf_emit e = wf_emit_begin(r->u->graph, r->n->name, r->err);
    wf_attr attrs[2];
    uint32_t n = 0, n_in = INPUTS;

    if (activation)
        attrs[n++] = wf_attr_string("activation", activation);
    if (trans)
        attrs[n++] = wf_attr_int("transB", 1);
    while (!in[n_in - 1])
        n_in--;
    r->instead = wf_emit_op(&e, "Linear", n_in, in, n, attrs);
    return wf_emit_end(&e);
}

static bool is_linear(const wf_node *n)
{
    return wf_node_is(n, WF_DOMAIN_WEFT, "Linear");
}

static bool has_activation(const wf_node *n)
{
    return wf_node_string(n, "activation", "")[0] != 0;
}

/* A row vector of known size that broadcasts over y's last axis. */
static bool is_row(const wf_value *v, const wf_value *y)
{
    return v->rank == 1 && y->rank >= 2 && v->axes[0].size > 0 &&
           v->axes[0].size == y->axes[y->rank - 1].size && v->dtype == y->dtype;
}

/* MatMul by a matrix: where it is transposed on the way, or a bias or a Relu follows. */
static wf_status transposed(wf_rewrite *r)
{
    const wf_node *t = wf_rewrite_made_by(r->n, 1, "Transpose");

    if (!t || t->out[0]->rank != 2 || r->n->in[0]->rank < 2 ||
        !wf_dtype_is_float(r->n->in[0]->dtype))
        return WF_OK;
    return emit(r, (wf_value *[INPUTS]){r->n->in[0], t->in[0]}, true, NULL);
}

/* The inputs of a product that could be Linear, and does nothing that Linear does not do. */
static bool product_of(const wf_node *n, wf_value *in[INPUTS], bool *trans)
{
    bool is_product = n && (is_linear(n) || wf_node_is(n, WF_DOMAIN_ONNX, "MatMul") ||
                            wf_node_is(n, WF_DOMAIN_ONNX, "Gemm"));

    /* Others may lack these inputs, as Resize does its second. */
    if (!is_product || !wf_dtype_is_float(n->in[0]->dtype) || n->in[0]->rank < 2 ||
        n->in[1]->rank != 2)
        return false;
    in[0] = n->in[0];
    in[1] = n->in[1];
    in[2] = wf_node_has_in(n, 2) ? n->in[2] : NULL;
    in[3] = NULL;
    *trans = wf_node_int(n, "transB", 0) != 0;
    if (is_linear(n))
        return !has_activation(n);
    if (wf_node_is(n, WF_DOMAIN_ONNX, "MatMul"))
        return true;
    return wf_node_is(n, WF_DOMAIN_ONNX, "Gemm") && wf_node_float(n, "alpha", 1) == 1 &&
           !wf_node_int(n, "transA", 0) &&
           (!in[2] || (wf_node_float(n, "beta", 1) == 1 && is_row(in[2], n->out[0])));
}

static wf_status add_bias(wf_rewrite *r)
{
    for (uint32_t i = 0; i < 2; i++) {
        wf_value *y = r->n->in[i], *bias = r->n->in[1 - i], *in[INPUTS];
        bool trans;

        if (!product_of(y->producer, in, &trans) || in[2] || !is_row(bias, y) ||
            !wf_rewrite_sole(r, y))
            continue;
        in[2] = bias;
        return emit(r, in, trans, NULL);
    }
    return WF_OK;
}

static wf_status relu(wf_rewrite *r)
{
    wf_value *y = r->n->in[0], *in[INPUTS];
    bool trans;

    if (!product_of(y->producer, in, &trans) || !wf_rewrite_sole(r, y))
        return WF_OK;
    return emit(r, in, trans, "Relu");
}

/* Of a layer of more than two axes: the product of all rows as a matrix, and a Reshape behind it.
 */
static wf_status relu_grad_of_rows(wf_rewrite *r, const wf_node *shaped)
{
    wf_value *rows = shaped->in[0], *y = r->n->in[1], *in[INPUTS];
    const wf_axis *last = &y->axes[y->rank - 1];
    wf_emit e = wf_emit_begin(r->u->graph, r->n->name, r->err);
    bool trans;

    if (rows->rank != 2 || y->rank < 2 || last->size < 0 || rows->axes[1].size != last->size ||
        !product_of(rows->producer, in, &trans) || rows->producer->device != r->n->device ||
        !wf_rewrite_sole(r, rows) || !wf_rewrite_sole(r, shaped->out[0]))
        return WF_OK;
    in[3] = wf_emit_reshape(&e, y, 2, (const int64_t[]){-1, last->size});
    WF_TRY(wf_emit_end(&e));
    WF_TRY(emit(r, in, trans, "ReluGrad"));
    e = wf_emit_begin(r->u->graph, r->n->name, r->err);
    r->instead = wf_emit_reshape_like(&e, r->instead, y);
    return wf_emit_end(&e);
}

/* Product and ReluGrad are of two layers, which may be in two places: each stays where its layer
 * is. */
static wf_status relu_grad(wf_rewrite *r)
{
    wf_value *dy = r->n->in[0], *in[INPUTS];
    const wf_node *shaped = wf_rewrite_maker(dy, "Reshape");
    bool trans;

    if (r->u->spec->n_stages > 0 || !dy->producer || dy->producer->device != r->n->device)
        return WF_OK;
    if (shaped)
        return relu_grad_of_rows(r, shaped);
    if (!product_of(dy->producer, in, &trans) || !wf_rewrite_sole(r, dy))
        return WF_OK;
    in[3] = r->n->in[1];
    return emit(r, in, trans, "ReluGrad");
}

const wf_rewrite_rule wf_rules_linear[] = {
    {WF_DOMAIN_ONNX, "MatMul", transposed},
    {WF_DOMAIN_ONNX, "Add", add_bias},
    {WF_DOMAIN_ONNX, "Relu", relu},
    {WF_DOMAIN_WEFT, "ReluGrad", relu_grad},
    {0},
};
