/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/infer_ops.c - infer functions that many operations have in common. */
#include "common/base/size.h"
#include "common/graph/infer.h"

wf_status wf_infer_like_input(wf_graph *g, wf_node *n, wf_err *err)
{
    (void)g, (void)err;
    wf_out_like(n, 0, n->in[0]->dtype, n->in[0]);
    return WF_OK;
}

wf_status wf_carry_input(wf_graph *g, wf_node *n, wf_err *err)
{
    wf_elem elems[WF_MAX_CARRIED];
    uint32_t count;

    return wf_value_elems(n->in[0], elems, &count) ? wf_out_carry(g, n, 0, count, elems, err)
                                                   : WF_OK;
}

wf_status wf_infer_like_float(wf_graph *g, wf_node *n, wf_err *err)
{
    (void)g;
    WF_TRY(wf_need_float(n, 0, "X", err));
    wf_out_like(n, 0, n->in[0]->dtype, n->in[0]);
    return WF_OK;
}

wf_status wf_infer_along_axis(wf_graph *g, wf_node *n, wf_err *err)
{
    uint32_t axis;

    if (n->in[0]->rank >= 0)
        WF_TRY(wf_axis_number(wf_node_int(n, "axis", -1), (uint32_t)n->in[0]->rank, &axis, err));
    return wf_infer_like_float(g, n, err);
}

wf_status wf_infer_grad_like(wf_graph *g, wf_node *n, wf_err *err)
{
    const wf_value *dy = n->in[0], *y = n->in[1];

    (void)g;
    WF_TRY(wf_need_float(n, 0, "dy", err));
    WF_TRY(wf_need_same_dtype(n, 0, 1, err));
    if (dy->rank >= 0 && y->rank >= 0) {
        char a[WF_VALUE_STR], b[WF_VALUE_STR];
        bool fits = dy->rank == y->rank;

        for (int32_t i = 0; fits && i < y->rank; i++)
            fits = !wf_axes_clash(&dy->axes[i], &y->axes[i]);
        if (!fits)
            return wf_fail(err, WF_SHAPE, NULL, "dy is %s and y is %s, which must agree",
                           wf_value_str(dy, a, sizeof a), wf_value_str(y, b, sizeof b));
    }
    wf_out_like(n, 0, dy->dtype, y);
    return WF_OK;
}

wf_status wf_infer_grad_of_1(wf_graph *g, wf_node *n, wf_err *err)
{
    (void)g;
    WF_TRY(wf_need_float(n, 0, "dy", err));
    WF_TRY(wf_need_same_dtype(n, 0, 1, err));
    wf_out_like(n, 0, n->in[0]->dtype, n->in[1]);
    return WF_OK;
}

wf_status wf_infer_grad_of_2(wf_graph *g, wf_node *n, wf_err *err)
{
    (void)g;
    WF_TRY(wf_need_float(n, 0, "dy", err));
    WF_TRY(wf_need_same_dtype(n, 0, 1, err));
    wf_out_like(n, 0, n->in[0]->dtype, n->in[2]);
    return WF_OK;
}

wf_status wf_infer_grad_by_ids(wf_graph *g, wf_node *n, wf_err *err)
{
    (void)g;
    WF_TRY(wf_need_float(n, 0, "dy", err));
    WF_TRY(wf_need_int(n, 1, "indices", err));
    wf_out_like(n, 0, n->in[0]->dtype, n->in[2]);
    return WF_OK;
}

/* Follows small integers through fn, which broadcasts over at most one axis. */
static wf_status carry_two(wf_graph *g, wf_node *n, wf_elem_fn *fn, wf_err *err)
{
    wf_elem a[WF_MAX_CARRIED], b[WF_MAX_CARRIED], c[WF_MAX_CARRIED];
    uint32_t n_a, n_b, count;

    if (!wf_value_elems(n->in[0], a, &n_a) || !wf_value_elems(n->in[1], b, &n_b) ||
        (n_a != n_b && n_a != 1 && n_b != 1))
        return WF_OK;
    count = n_a == 1 ? n_b : n_a;
    for (uint32_t i = 0; i < count; i++)
        c[i] = fn(&a[n_a == 1 ? 0 : i], &b[n_b == 1 ? 0 : i]);
    return wf_out_carry(g, n, 0, count, c, err);
}

static wf_status infer_broadcast(wf_node *n, wf_dtype dtype, wf_err *err)
{
    wf_axis axes[WF_MAX_RANK];
    uint32_t rank = 0;

    for (uint32_t i = 0; i < n->n_in; i++) {
        if (n->in[i]->rank < 0) {
            wf_out_unknown(n, 0, dtype);
            return WF_OK;
        }
    }
    for (uint32_t i = 0; i < n->n_in; i++) {
        char a[WF_VALUE_STR], b[WF_VALUE_STR];
        wf_status rc = wf_axes_broadcast(axes, &rank, n->in[i], err);

        WF_TRY(wf_err_wrap(err, rc, "\"%s\" is %s and \"%s\" is %s", n->in[0]->name,
                           wf_value_str(n->in[0], a, sizeof a), n->in[i]->name,
                           wf_value_str(n->in[i], b, sizeof b)));
    }
    wf_out_axes(n, 0, dtype, rank, axes);
    return WF_OK;
}

wf_status wf_infer_arithmetic(wf_graph *g, wf_node *n, wf_elem_fn *fn, wf_err *err)
{
    wf_dtype dtype = n->in[0]->dtype != WF_NONE ? n->in[0]->dtype : n->in[1]->dtype;

    WF_TRY(wf_need_same_dtype(n, 0, 1, err));
    if (dtype == WF_BOOL)
        return wf_fail(err, WF_SHAPE, "Cast it first", "there is no arithmetic on bool");
    WF_TRY(infer_broadcast(n, dtype, err));
    return fn ? carry_two(g, n, fn, err) : WF_OK;
}

wf_status wf_infer_compare(wf_graph *g, wf_node *n, wf_elem_fn *fn, wf_err *err)
{
    WF_TRY(wf_need_same_dtype(n, 0, 1, err));
    WF_TRY(infer_broadcast(n, WF_BOOL, err));
    return carry_two(g, n, fn, err);
}

wf_status wf_infer_variadic(wf_graph *g, wf_node *n, wf_elem_fn *fn, wf_err *err)
{
    for (uint32_t i = 1; i < n->n_in; i++)
        WF_TRY(wf_need_same_dtype(n, 0, i, err));
    WF_TRY(infer_broadcast(n, n->in[0]->dtype, err));
    return n->n_in == 2 ? carry_two(g, n, fn, err) : WF_OK;
}

/* The axes of x that remain when those of mask are reduced. */
static uint32_t reduced(const wf_value *x, uint32_t mask, bool keep, wf_axis axes[WF_MAX_RANK])
{
    uint32_t rank = 0;

    for (uint32_t i = 0; i < (uint32_t)x->rank; i++) {
        if (!(mask >> i & 1u))
            axes[rank++] = x->axes[i];
        else if (keep)
            axes[rank++] = wf_axis_of(1);
    }
    return rank;
}

wf_status wf_infer_reduce(wf_graph *g, wf_node *n, wf_err *err)
{
    wf_dtype dtype = n->in[0]->dtype;

    if (dtype == WF_BOOL || dtype == WF_U8)
        return wf_fail(err, WF_SHAPE, "Cast it first", "%s cannot be reduced",
                       wf_dtype_name(dtype));
    return wf_infer_reduce_any(g, n, err);
}

wf_status wf_infer_reduce_any(wf_graph *g, wf_node *n, wf_err *err)
{
    const wf_value *x = n->in[0];
    bool keep = wf_node_int(n, "keepdims", 1) != 0, known;
    wf_axis axes[WF_MAX_RANK];
    uint32_t mask, rank;
    int64_t n_axes;

    (void)g;
    wf_out_unknown(n, 0, x->dtype);
    if (x->rank < 0)
        return WF_OK;
    WF_TRY(wf_axes_input(n, 1, (uint32_t)x->rank, &known, &mask, &n_axes, err));
    if (!known) {
        for (uint32_t i = 0; i < (uint32_t)x->rank; i++)
            axes[i] = wf_axis_unknown(x->axes[i].bound);
        if (keep)
            wf_out_axes(n, 0, x->dtype, (uint32_t)x->rank, axes);
        return WF_OK;
    }
    if (n_axes == 0)
        mask = wf_node_int(n, "noop_with_empty_axes", 0) ? 0 : (1u << x->rank) - 1;
    rank = reduced(x, mask, keep, axes);
    wf_out_axes(n, 0, x->dtype, rank, axes);
    return WF_OK;
}
