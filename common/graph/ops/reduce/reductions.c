/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/reduce/reductions.c - ReduceL1, ReduceL2, ReduceLogSum, ReduceLogSumExp,
 * ReduceMax, ReduceMean, ReduceMin, ReduceProd, ReduceSum and ReduceSumSquare. */
#include "common/graph/emit.h"
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

#include <math.h>

/* ReduceL1, ReduceL2, ReduceLogSum, ReduceLogSumExp, ReduceMax, ReduceMin, ReduceProd and
 * ReduceSumSquare, over the axes of input 1; without one, over all. Below opset 18 the axes are an
 * attribute. */

/* v, of the shape of dy, of an operation that reduced input 0 with attr keepdims 0, with the
 * reduced axes of size 1 put back, so that it broadcasts over input 0; *mask is the reduced axes.
 * NULL after a failure. */
static wf_value *unreduce(wf_grads *g, const wf_node *n, wf_value *v, uint32_t *mask, wf_err *err)
{
    wf_emit *e = wf_grads_emit(g);
    const wf_value *x = n->in[0];
    int64_t axes[WF_MAX_RANK], n_axes = 0;
    uint32_t count = 0;
    bool known = x->rank >= 0;

    *mask = 0;
    if (e->rc == WF_OK && known)
        e->rc = wf_axes_input(n, 1, (uint32_t)x->rank, &known, mask, &n_axes, err);
    if (e->rc == WF_OK && !known)
        e->rc = wf_fail(err, WF_UNSUPPORTED, "give the axes as a constant",
                        "which axes are reduced is known at run time only");
    if (e->rc != WF_OK)
        return NULL;
    if (n_axes == 0)
        *mask = wf_node_int(n, "noop_with_empty_axes", 0) ? 0 : (1u << x->rank) - 1;
    for (int32_t i = 0; i < x->rank; i++)
        if (*mask >> i & 1u)
            axes[count++] = i;
    /* A scalar broadcasts as it is. */
    if (wf_node_int(n, "keepdims", 1) || count == 0 || count == (uint32_t)x->rank)
        return v;
    return wf_emit_unsqueeze(e, v, count, axes);
}

static const wf_attr_row attrs[] = {
    {"keepdims", WF_ATTR_INT, false}, {"noop_with_empty_axes", WF_ATTR_INT, false}, {0}};

static wf_status upgrade(wf_graph *g, wf_node *n, int64_t from, wf_err *err)
{
    return from < 18 ? wf_upgrade_list(g, n, "axes", err) : WF_OK;
}

/* dx from dy and y, both with their reduced axes put back as 1, and the axes themselves. */
typedef struct parts {
    wf_value *dy, *y, *x;
    uint32_t n_axes;
    int64_t axes[WF_MAX_RANK];
} parts;
typedef wf_value *slope_fn(wf_emit *e, const parts *p);

static wf_status pass_back(wf_grads *g, const wf_node *n, slope_fn *slope, wf_err *err)
{
    wf_emit *e = wf_grads_emit(g);
    parts p = {.x = n->in[0]};
    uint32_t mask;

    p.dy = unreduce(g, n, wf_grads_upstream(g, n, 0), &mask, err);
    p.y = unreduce(g, n, n->out[0], &mask, err);
    if (!p.dy || !p.y)
        return wf_emit_end(e);
    for (uint32_t i = 0; i < WF_MAX_RANK; i++)
        if (mask >> i & 1u)
            p.axes[p.n_axes++] = i;
    return wf_grads_add(g, n, 0, wf_emit_expand_like(e, slope(e, &p), p.x));
}

static wf_value *zero_of(wf_emit *e, const parts *p)
{
    return wf_emit_scalar(e, p->x->dtype, 0);
}

/* A sum over the reduced axes, which stay as 1; v itself when none is reduced. */
static wf_value *sum_back(wf_emit *e, const parts *p, wf_value *v)
{
    return p->n_axes ? wf_emit_reduce_sum(e, v, p->n_axes, p->axes, true) : v;
}

static wf_value *slope_l1(wf_emit *e, const parts *p)
{
    return wf_emit_mul(e, p->dy, wf_emit_unary(e, "Sign", p->x));
}

/* x / |x|, and 0 at 0, as PyTorch has it. */
static wf_value *slope_l2(wf_emit *e, const parts *p)
{
    wf_value *zero = zero_of(e, p), *at_zero = wf_emit_binary(e, "Equal", p->y, zero);

    return wf_emit_mul(e, p->x, wf_emit_where(e, at_zero, zero, wf_emit_div(e, p->dy, p->y)));
}

static wf_value *slope_sum_square(wf_emit *e, const parts *p)
{
    return wf_emit_mul(e, p->x, wf_emit_scale(e, p->dy, 2));
}

static wf_value *slope_log_sum(wf_emit *e, const parts *p)
{
    return wf_emit_mul(e, p->dy, wf_emit_exp(e, wf_emit_neg(e, p->y)));
}

/* e^(x - y). Where all x are -inf, so is y, and the slope is 0: e^(-inf + inf) would be NaN. */
static wf_value *slope_log_sum_exp(wf_emit *e, const parts *p)
{
    wf_value *least = wf_emit_scalar(e, p->x->dtype, -(double)INFINITY);
    wf_value *usable =
        wf_emit_where(e, wf_emit_binary(e, "Equal", p->y, least), zero_of(e, p), p->y);

    return wf_emit_mul(e, p->dy, wf_emit_exp(e, wf_emit_sub(e, p->x, usable)));
}

/* Elements that are equally extreme share the gradient, as in PyTorch's amax. */
static wf_value *slope_extreme(wf_emit *e, const parts *p)
{
    wf_value *hit = wf_emit_binary(e, "Equal", p->x, p->y);
    wf_value *ties = sum_back(e, p, wf_emit_cast(e, hit, p->x->dtype));

    return wf_emit_where(e, hit, wf_emit_div(e, p->dy, ties), zero_of(e, p));
}

/* The product of the others: with zeros counted apart, the product of what is not 0, over x itself
 * if that is not 0; and 0 as soon as another one is. */
static wf_value *slope_prod(wf_emit *e, const parts *p)
{
    wf_value *zero = zero_of(e, p), *one = wf_emit_scalar(e, p->x->dtype, 1);
    wf_value *is_zero = wf_emit_binary(e, "Equal", p->x, zero);
    wf_value *count = wf_emit_cast(e, is_zero, p->x->dtype);
    wf_value *others = wf_emit_sub(e, sum_back(e, p, count), count);
    wf_value *usable = wf_emit_where(e, is_zero, one, p->x), *product = usable;
    wf_value *list = p->n_axes ? wf_emit_ints(e, p->n_axes, p->axes) : NULL;

    if (list)
        product = wf_emit_binary(e, "ReduceProd", usable, list);
    product = wf_emit_where(e, wf_emit_binary(e, "Equal", others, zero),
                            wf_emit_div(e, product, usable), zero);
    return wf_emit_mul(e, p->dy, product);
}

#define ROW_BY(id, name_, infer_, slope_)                                                          \
    static wf_status grad_##id(wf_grads *g, const wf_node *n, wf_err *err)                         \
    {                                                                                              \
        return pass_back(g, n, slope_, err);                                                       \
    }                                                                                              \
    const wf_op wf_op_reduce_##id =                                                                \
        WF_FOLDABLE(WF_DOMAIN_ONNX, name_, 18, 1, 2, infer_, .no_grad_in = 1u << 1,                \
                    .attrs = attrs, .grad = grad_##id, .upgrade = upgrade);
#define ROW(id, name) ROW_BY(id, name, wf_infer_reduce, slope_##id)

ROW(l1, "ReduceL1")
ROW(l2, "ReduceL2")
ROW(log_sum, "ReduceLogSum")
ROW(log_sum_exp, "ReduceLogSumExp")
ROW_BY(max, "ReduceMax", wf_infer_reduce_any, slope_extreme)
ROW_BY(min, "ReduceMin", wf_infer_reduce_any, slope_extreme)
ROW(prod, "ReduceProd")
ROW(sum_square, "ReduceSumSquare")

/* ReduceMean over the axes of input 1; without one, over all. Below opset 18 the axes are an
 * attribute. */

/* dy divided by the number of elements that were averaged. */
static wf_value *shared_out(wf_emit *e, wf_value *dy, wf_value *x, uint32_t mask)
{
    wf_axis count = wf_axis_of(1);
    wf_value *product = NULL;

    for (int32_t i = 0; i < x->rank; i++)
        if (mask >> i & 1u)
            count = wf_axis_mul(&count, &x->axes[i]);
    if (count.size >= 0)
        return wf_emit_scale(e, dy, count.size ? 1.0 / (double)count.size : 0.0);
    for (int32_t i = 0; i < x->rank; i++) {
        wf_value *size;

        if (!(mask >> i & 1u))
            continue;
        size = wf_emit_dim_of(e, x, (uint32_t)i);
        product = product ? wf_emit_mul(e, product, size) : size;
    }
    product = wf_emit_cast(e, product, x->dtype);
    /* [1] to []: a scalar dy must stay one. */
    return wf_emit_div(e, dy, product ? wf_emit_reshape(e, product, 0, NULL) : NULL);
}

static wf_status grad_reduce_mean(wf_grads *g, const wf_node *n, wf_err *err)
{
    wf_emit *e = wf_grads_emit(g);
    uint32_t mask;
    wf_value *dy = unreduce(g, n, wf_grads_upstream(g, n, 0), &mask, err);

    if (!dy)
        return wf_emit_end(e);
    dy = shared_out(e, dy, n->in[0], mask);
    return wf_grads_add(g, n, 0, wf_emit_expand_like(e, dy, n->in[0]));
}

const wf_op wf_op_reduce_mean =
    WF_FOLDABLE(WF_DOMAIN_ONNX, "ReduceMean", 18, 1, 2, wf_infer_reduce, .no_grad_in = 1u << 1,
                .attrs = attrs, .grad = grad_reduce_mean, .upgrade = upgrade);

/* ReduceSum over the axes of input 1; without one, over all (or, with noop_with_empty_axes, over
 * none). */

static wf_status grad_reduce_sum(wf_grads *g, const wf_node *n, wf_err *err)
{
    uint32_t mask;
    wf_value *dy = unreduce(g, n, wf_grads_upstream(g, n, 0), &mask, err);

    return wf_grads_add(g, n, 0, wf_emit_expand_like(wf_grads_emit(g), dy, n->in[0]));
}

const wf_op wf_op_reduce_sum =
    WF_FOLDABLE(WF_DOMAIN_ONNX, "ReduceSum", 13, 1, 2, wf_infer_reduce, .no_grad_in = 1u << 1,
                .attrs = attrs, .grad = grad_reduce_sum, .upgrade = wf_upgrade_axes);
