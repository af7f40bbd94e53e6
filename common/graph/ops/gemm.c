/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/gemm.c - Gemm: Y = alpha A' B' + beta C, where X' is X or its transpose. */
#include "common/graph/emit.h"
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

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

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
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

static const wf_attr_row attrs[] = {{"alpha", WF_ATTR_FLOAT, false},
                                    {"beta", WF_ATTR_FLOAT, false},
                                    {"transA", WF_ATTR_INT, false},
                                    {"transB", WF_ATTR_INT, false},
                                    {0}};

const wf_op wf_op_gemm = {
    .name = "Gemm",
    .domain = WF_DOMAIN_ONNX,
    .since = 13,
    .n_in_min = 2,
    .n_in_max = 3,
    .n_out_min = 1,
    .n_out_max = 1,
    .flags = WF_OP_FOLDABLE,
    .attrs = attrs,
    .infer = infer,
    .grad = grad,
};
