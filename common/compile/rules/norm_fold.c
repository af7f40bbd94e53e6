/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/rules/norm_fold.c - BatchNormalization by running values after a product or a
 * convolution, as part of its weights:
 *
 *     (x W + b - mean) s + bias = x (W s) + ((b - mean) s + bias),  s = scale / sqrt(var + epsilon)
 *
 * Of constants alone, which are folded after this: where weights are variables, of a job or of a
 * file whose gradients are wanted, both would be computed in every step.
 */
#include "common/compile/rules/rules.h"
#include <string.h>

/* What stands before the normalisation. */
typedef struct layer {
    wf_node *product;
    wf_value *bias;     /* a constant row, or NULL */
    int64_t axis;       /* of the weight's that goes along the channels */
    uint32_t bias_port; /* of the product; 0: it has none, and a sum follows */
} layer;

static bool are_constant(const wf_node *n, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++)
        if (wf_node_has_in(n, i) && !wf_value_is_constant(n->in[i]))
            return false;
    return true;
}

/* Whether v has one element for each of the weight's channels. */
static bool is_row(const wf_value *v, const wf_value *weight, int64_t axis)
{
    return v->rank == 1 && v->axes[0].size == weight->axes[axis].size;
}

/* The bias that is added to a MatMul, and the MatMul. */
static wf_node *before_sum(wf_node *add, wf_value **bias)
{
    for (uint32_t i = 0; i < 2; i++) {
        wf_node *matmul = wf_rewrite_made_by(add, i, "MatMul");

        if (matmul && wf_value_is_constant(add->in[1 - i])) {
            *bias = add->in[1 - i];
            return matmul;
        }
    }
    return NULL;
}

static bool find(const wf_rewrite *r, layer *l)
{
    wf_value *x = r->n->in[0];

    memset(l, 0, sizeof *l);
    l->product = x->producer;
    if (wf_rewrite_maker(x, "Add"))
        l->product = before_sum(x->producer, &l->bias);
    if (!l->product || !wf_rewrite_sole(r, x) ||
        !(l->product == x->producer || wf_rewrite_sole(r, l->product->out[0])))
        return false;
    if (wf_node_is(l->product, WF_DOMAIN_ONNX, "Conv")) {
        l->bias_port = 2;
    } else if (wf_node_is(l->product, WF_DOMAIN_ONNX, "ConvTranspose")) {
        l->bias_port = 2;
        l->axis = 1;
        if (wf_node_int(l->product, "group", 1) != 1)
            return false;
    } else if (wf_node_is(l->product, WF_DOMAIN_ONNX, "Gemm")) {
        l->bias_port = 2;
        l->axis = !wf_node_int(l->product, "transB", 0);
        if (wf_node_has_in(l->product, 2) && wf_node_float(l->product, "beta", 1) != 1)
            return false;
    } else if (wf_node_is(l->product, WF_DOMAIN_ONNX, "MatMul")) {
        l->axis = 1;
        if (x->rank != 2 || l->product->in[1]->rank != 2)
            return false;
    } else {
        return false;
    }
    if (l->bias_port && wf_node_has_in(l->product, l->bias_port))
        l->bias = l->product->in[l->bias_port];
    return are_constant(l->product, 1, 3) && l->product->in[1]->rank >= 2 &&
           is_row(r->n->in[1], l->product->in[1], l->axis) &&
           (!l->bias || is_row(l->bias, l->product->in[1], l->axis));
}

/* scale / sqrt(var + epsilon), in the weights' dtype: those of the statistics may be another. */
static wf_value *emit_factor(wf_emit *e, const wf_node *n)
{
    wf_value *var = n->in[4];
    wf_value *epsilon = wf_emit_scalar(e, var->dtype, (double)wf_node_float(n, "epsilon", 1e-5f));
    wf_value *deviation = wf_emit_unary(e, "Sqrt", wf_emit_add(e, var, epsilon));

    deviation = deviation ? wf_emit_cast(e, deviation, n->in[1]->dtype) : NULL;
    return wf_emit_div(e, n->in[1], deviation);
}

static wf_value *emit_bias(wf_emit *e, const wf_node *n, wf_value *bias, wf_value *factor)
{
    wf_value *mean = wf_emit_cast(e, n->in[3], n->in[1]->dtype);

    mean = mean && bias ? wf_emit_sub(e, bias, mean) : wf_emit_neg(e, mean);
    return wf_emit_add(e, wf_emit_mul(e, mean, factor), n->in[2]);
}

static wf_status fold(wf_rewrite *r)
{
    wf_emit e = wf_emit_begin(r->u->graph, r->n->name, r->err);
    int64_t dims[WF_MAX_RANK];
    wf_value *in[3], *factor, *spread;
    layer l;

    if (wf_node_int(r->n, "training_mode", 0) || wf_node_has_out(r->n, 1) ||
        wf_node_has_out(r->n, 2) || !are_constant(r->n, 1, 5) || !find(r, &l) ||
        l.product->in[1]->dtype != r->n->in[1]->dtype)
        return WF_OK;
    in[0] = l.product->in[0];
    factor = emit_factor(&e, r->n);
    for (int32_t i = 0; i < l.product->in[1]->rank; i++)
        dims[i] = i == l.axis ? -1 : 1;
    spread = factor ? wf_emit_reshape(&e, factor, (uint32_t)l.product->in[1]->rank, dims) : NULL;
    in[1] = wf_emit_mul(&e, l.product->in[1], spread);
    in[2] = emit_bias(&e, r->n, l.bias, factor);
    WF_TRY(wf_emit_end(&e));
    r->instead = wf_emit_op(&e, l.product->op->name, l.bias_port ? 3 : 2, in, l.product->n_attrs,
                            l.product->attrs);
    if (!l.bias_port)
        r->instead = wf_emit_add(&e, r->instead, in[2]);
    return wf_emit_end(&e);
}

const wf_rewrite_rule wf_rules_norm_fold[] = {
    {WF_DOMAIN_ONNX, "BatchNormalization", fold},
    {0},
};
