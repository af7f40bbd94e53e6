/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/nn/gemm.c - Gemm and Linear. */
#include "common/graph/emit.h"
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

#include <string.h>

/* Gemm: Y = alpha A' B' + beta C, where X' is X or its transpose. */

static bool transposes(const wf_node *n, const char *name)
{
    return wf_node_int(n, name, 0) != 0;
}

/* C [m, n], or less, broadcasts to Y and not the other way round. */
static wf_status check_c(const wf_value *c, const wf_axis y[2], wf_err *err)
{
    char text[WF_VALUE_STR];

    if (c->rank < 0)
        return WF_OK;
    for (int32_t i = 0; i < c->rank; i++) {
        const wf_axis *axis = &c->axes[c->rank - 1 - i];

        if (i >= 2 ? axis->size > 1 : axis->size != 1 && wf_axes_clash(axis, &y[1 - i]))
            return wf_fail(err, WF_SHAPE, NULL,
                           "C is %s, which does not broadcast to the result of %lld columns",
                           wf_value_str(c, text, sizeof text), (long long)y[1].size);
    }
    return WF_OK;
}

static wf_status infer_gemm(wf_graph *g, wf_node *n, wf_err *err)
{
    const wf_value *a = n->in[0], *b = n->in[1];
    bool trans_a = transposes(n, "transA"), trans_b = transposes(n, "transB");
    char text_a[WF_VALUE_STR], text_b[WF_VALUE_STR];
    wf_axis y[2];

    (void)g;
    WF_TRY(wf_need_same_dtype(n, 0, 1, err));
    if (wf_node_has_in(n, 2))
        WF_TRY(wf_need_same_dtype(n, 0, 2, err));
    wf_out_unknown(n, 0, a->dtype);
    if (a->rank < 0 || b->rank < 0)
        return WF_OK;
    wf_value_str(a, text_a, sizeof text_a);
    wf_value_str(b, text_b, sizeof text_b);
    if (a->rank != 2 || b->rank != 2)
        return wf_fail(err, WF_SHAPE, "put a Flatten before it, or use MatMul",
                       "A is %s, B is %s; both must be matrices", text_a, text_b);
    if (wf_axes_clash(&a->axes[!trans_a], &b->axes[trans_b]))
        return wf_fail(err, WF_SHAPE,
                       trans_b ? "if B is stored [in, out], leave transB out"
                               : "if B is stored [out, in], set transB=1",
                       "A is %s, B is %s; A's %s and B's %s axis must agree (%lld, %lld)", text_a,
                       text_b, trans_a ? "first" : "last", trans_b ? "last" : "first",
                       (long long)a->axes[!trans_a].size, (long long)b->axes[trans_b].size);
    y[0] = a->axes[trans_a];
    y[1] = b->axes[!trans_b];
    if (wf_node_has_in(n, 2))
        WF_TRY(wf_err_wrap(err, check_c(n->in[2], y, err), "A is %s, B is %s", text_a, text_b));
    wf_out_axes(n, 0, a->dtype, 2, y);
    return WF_OK;
}

/* dA' = alpha dY B'^T and dB' = alpha A'^T dY; stored transposed, the product is taken the other
 * way round. Always as Gemm with its own transposes, which BLAS does on the way. */
static wf_status grad(wf_grads *g, const wf_node *n, wf_err *err)
{
    wf_emit *e = wf_grads_emit(g);
    wf_value *a = n->in[0], *b = n->in[1], *dy = wf_grads_upstream(g, n, 0);
    bool trans_a = transposes(n, "transA"), trans_b = transposes(n, "transB");
    float alpha = wf_node_float(n, "alpha", 1), beta = wf_node_float(n, "beta", 1);

    (void)err;
    if (wf_grads_wanted(g, n, 0))
        WF_TRY(wf_grads_add(g, n, 0,
                            trans_a ? wf_emit_gemm(e, b, dy, NULL, alpha, 1, trans_b, true)
                                    : wf_emit_gemm(e, dy, b, NULL, alpha, 1, false, !trans_b)));
    if (wf_grads_wanted(g, n, 1))
        WF_TRY(wf_grads_add(g, n, 1,
                            trans_b ? wf_emit_gemm(e, dy, a, NULL, alpha, 1, true, trans_a)
                                    : wf_emit_gemm(e, a, dy, NULL, alpha, 1, !trans_a, false)));
    if (wf_grads_wanted(g, n, 2))
        WF_TRY(wf_grads_add(g, n, 2, wf_emit_scale(e, wf_emit_sum_to(e, dy, n->in[2]), beta)));
    return WF_OK;
}

static const wf_attr_row gemm_attrs[] = {{"alpha", WF_ATTR_FLOAT, false},
                                         {"beta", WF_ATTR_FLOAT, false},
                                         {"transA", WF_ATTR_INT, false},
                                         {"transB", WF_ATTR_INT, false},
                                         {0}};

const wf_op wf_op_gemm =
    WF_FOLDABLE(WF_DOMAIN_ONNX, "Gemm", 13, 2, 3, infer_gemm, .attrs = gemm_attrs, .grad = grad);

/* ai.weft Linear(x, W, (bias), (y)): activation(x W + bias) over the last axis of an x of any rank.
 * The compiler makes it of MatMul or Gemm and what follows, once gradients are built; so it needs
 * none of its own. With ReluGrad x is the gradient behind a linear layer, and the result that of
 * the Relu before it, whose output is y. */

static wf_status check_shapes(const wf_value *x, const wf_value *w, bool trans, wf_err *err)
{
    char text_x[WF_VALUE_STR], text_w[WF_VALUE_STR];

    if (x->rank >= 1 && w->rank == 2 && !wf_axes_clash(&x->axes[x->rank - 1], &w->axes[trans]))
        return WF_OK;
    return wf_fail(err, WF_SHAPE, NULL, "x is %s, W is %s; W must be a matrix with x's last axis",
                   wf_value_str(x, text_x, sizeof text_x), wf_value_str(w, text_w, sizeof text_w));
}

static wf_status check_bias(const wf_value *bias, const wf_axis *columns, wf_err *err)
{
    char text[WF_VALUE_STR];

    if (bias->rank < 0 || (bias->rank == 1 && !wf_axes_clash(&bias->axes[0], columns)))
        return WF_OK;
    return wf_fail(err, WF_SHAPE, NULL, "the bias is %s, and must be a row of %lld",
                   wf_value_str(bias, text, sizeof text), (long long)columns->size);
}

static wf_status check_activation(const wf_node *n, wf_err *err)
{
    const char *name = wf_node_string(n, "activation", "");
    bool is_grad = strcmp(name, "ReluGrad") == 0;

    if (name[0] && strcmp(name, "Relu") != 0 && !is_grad)
        return wf_fail(err, WF_UNSUPPORTED, "take a node of its own for it",
                       "its activation is \"%.40s\", and weft has Relu and ReluGrad", name);
    if (is_grad == wf_node_has_in(n, 3))
        return WF_OK;
    return wf_fail(err, WF_INVALID, "give y, the output of the Relu, with ReluGrad alone", "%s",
                   is_grad ? "ReluGrad wants y" : "only ReluGrad takes y");
}

static wf_status check_y(const wf_node *n, wf_err *err)
{
    const wf_value *y = n->in[3], *dx = n->out[0];
    char text_y[WF_VALUE_STR], text_dx[WF_VALUE_STR];

    if (y->rank < 0)
        return WF_OK;
    for (int32_t i = 0; y->rank == dx->rank; i++) {
        if (i == y->rank)
            return WF_OK;
        if (wf_axes_clash(&y->axes[i], &dx->axes[i]))
            break;
    }
    return wf_fail(err, WF_SHAPE, "y is the output of the Relu", "y is %s, and the result %s",
                   wf_value_str(y, text_y, sizeof text_y),
                   wf_value_str(dx, text_dx, sizeof text_dx));
}

static wf_status infer_linear(wf_graph *g, wf_node *n, wf_err *err)
{
    const wf_value *x = n->in[0], *w = n->in[1];
    bool trans = wf_node_int(n, "transB", 0) != 0;
    wf_axis axes[WF_MAX_RANK];

    (void)g;
    WF_TRY(check_activation(n, err));
    WF_TRY(wf_need_float(n, 0, "x", err));
    WF_TRY(wf_need_same_dtype(n, 0, 1, err));
    for (uint32_t i = 2; i < 4; i++)
        if (wf_node_has_in(n, i))
            WF_TRY(wf_need_same_dtype(n, 0, i, err));
    wf_out_unknown(n, 0, x->dtype);
    if (x->rank < 0 || w->rank < 0)
        return WF_OK;
    WF_TRY(check_shapes(x, w, trans, err));
    memcpy(axes, x->axes, (size_t)x->rank * sizeof axes[0]);
    axes[x->rank - 1] = w->axes[!trans];
    if (wf_node_has_in(n, 2))
        WF_TRY(check_bias(n->in[2], &w->axes[!trans], err));
    wf_out_axes(n, 0, x->dtype, (uint32_t)x->rank, axes);
    return wf_node_has_in(n, 3) ? check_y(n, err) : WF_OK;
}

static const wf_attr_row linear_attrs[] = {
    {"activation", WF_ATTR_STRING, false}, {"transB", WF_ATTR_INT, false}, {0}};

const wf_op wf_op_linear =
    WF_FOLDABLE(WF_DOMAIN_WEFT, "Linear", 1, 2, 4, infer_linear,
                .means = "(x, W, (bias), (y)) -> result; attrs activation = \"\", \"Relu\" or "
                         "\"ReluGrad\", transB = 0; activation(x W + bias), W a matrix, bias a "
                         "row; y, with ReluGrad alone, the output of the Relu",
                .attrs = linear_attrs);
