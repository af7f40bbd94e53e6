/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/simplify.c - nodes that do nothing, or less than they seem to, go.
 *
 * A rule looks at one node and either says which value everyone may read instead of its first
 * output or rewrites the node in place. Rules run until none finds anything; each one makes the
 * graph smaller or a node simpler, so that this ends. The result means the same: equal values, but
 * for the sign of a zero where 0 is added.
 */
#include "common/compile/pass.h"
#include "common/graph/emit.h"
#include <string.h>

typedef struct rewrite {
    wf_unit *u;
    wf_node *n;
    wf_value *instead; /* set: read this instead of the node's first output */
    bool changed;      /* set: the node was rewritten in place */
    wf_err *err;
} rewrite;

typedef struct rule {
    const char *domain, *op;
    wf_status (*run)(rewrite *r);
} rule;

/* The node that makes input i, if it is that operation. */
static wf_node *made_by(const wf_node *n, uint32_t i, const char *op)
{
    wf_node *p = wf_node_has_in(n, i) ? n->in[i]->producer : NULL;

    return wf_node_is(p, WF_DOMAIN_ONNX, op) ? p : NULL;
}

/* The number that all elements of v are, if that is known: a constant, or one filled at run time.
 */
static bool uniform(const wf_value *v, double *out)
{
    const wf_node *n = v->producer;
    const wf_attr *value;

    if (wf_scalar_of(v, out))
        return true;
    if (wf_node_is(n, WF_DOMAIN_ONNX, "Expand"))
        return wf_scalar_of(n->in[0], out);
    if (!wf_node_is(n, WF_DOMAIN_ONNX, "ConstantOfShape"))
        return false;
    value = wf_node_attr(n, "value");
    if (!value || !value->t) {
        *out = 0.0;
        return true;
    }
    if (value->t->dtype != WF_F32)
        return false;
    *out = *(const float *)value->t->data;
    return true;
}

static wf_status always(rewrite *r)
{
    r->instead = r->n->in[0];
    return WF_OK;
}

/* Reshape, Expand, SumToLike... to the shape that it has already. */
static wf_status same_shape(rewrite *r)
{
    if (wf_same_shape(r->n->in[0], r->n->out[0]))
        r->instead = r->n->in[0];
    return WF_OK;
}

/* The dims that Reshape's output has, with at most one unknown as -1; false when more are unknown
 * or one is 0, which Reshape would take for a copy. */
static bool fixed_target(const wf_value *y, int64_t dims[])
{
    int unknown = 0;

    if (y->rank < 0)
        return false;
    for (int32_t i = 0; i < y->rank; i++) {
        dims[i] = y->axes[i].size;
        unknown += dims[i] < 0;
        if (dims[i] == 0)
            return false;
    }
    return unknown <= 1;
}

/* A target computed by Shape, Gather and Concat becomes a constant; what moved the same elements
 * before is passed over. */
static wf_status reshape(rewrite *r)
{
    static const char *const movers[] = {"Reshape", "Flatten", "Squeeze", "Unsqueeze"};
    wf_emit e = wf_emit_begin(r->u->graph, r->n->name, r->err);
    int64_t dims[WF_MAX_RANK];
    wf_node *n = r->n;
    wf_value *target;

    WF_TRY(same_shape(r));
    if (r->instead || !fixed_target(n->out[0], dims))
        return WF_OK;
    if (!wf_value_is_constant(n->in[1])) {
        target = wf_emit_ints(&e, (uint32_t)n->out[0]->rank, dims);
        WF_TRY(wf_emit_end(&e));
        n->in[1] = target;
        r->changed = true;
    }
    for (size_t i = 0; i < WF_COUNT(movers); i++) {
        const wf_node *before = made_by(n, 0, movers[i]);

        if (!before)
            continue;
        /* A 0 in the old target would now copy another input's axis. */
        target = wf_emit_ints(&e, (uint32_t)n->out[0]->rank, dims);
        WF_TRY(wf_emit_end(&e));
        n->in[0] = before->in[0];
        n->in[1] = target;
        r->changed = true;
    }
    return WF_OK;
}

static wf_status transpose(rewrite *r)
{
    const wf_node *before = made_by(r->n, 0, "Transpose");
    wf_emit e = wf_emit_begin(r->u->graph, r->n->name, r->err);
    int64_t perm[WF_MAX_RANK];
    size_t n_outer, n_inner;
    const int64_t *outer = wf_node_ints(r->n, "perm", &n_outer), *inner;
    bool identity = true;

    if (!before)
        return WF_OK;
    inner = wf_node_ints(before, "perm", &n_inner);
    for (int32_t i = 0, rank = r->n->out[0]->rank; i < rank; i++) {
        int64_t mid = outer && (size_t)i < n_outer ? outer[i] : rank - 1 - i;

        perm[i] = inner && (size_t)mid < n_inner ? inner[mid] : rank - 1 - mid;
        identity = identity && perm[i] == i;
    }
    if (r->n->out[0]->rank < 0)
        return WF_OK;
    r->instead = identity ? before->in[0] : wf_emit_transpose(&e, before->in[0], perm);
    return wf_emit_end(&e);
}

/* Gemm reads a transposed matrix as it is: a transpose of a matrix is one of its attributes. */
static wf_status gemm(rewrite *r)
{
    static const char *const flags[] = {"transA", "transB"};

    for (uint32_t i = 0; i < 2; i++) {
        const wf_node *t = made_by(r->n, i, "Transpose");
        size_t n = 0;
        const int64_t *perm = t ? wf_node_ints(t, "perm", &n) : NULL;

        if (!t || t->out[0]->rank != 2 || (n == 2 && perm[0] == 0))
            continue;
        r->n->in[i] = t->in[0];
        r->changed = true;
        WF_TRY(
            wf_node_set_int(r->u->graph, r->n, flags[i], !wf_node_int(r->n, flags[i], 0), r->err));
    }
    return WF_OK;
}

/* Whether every value of `from` is one of `to`, so that a cast there and onwards loses nothing. */
static bool widens(wf_dtype from, wf_dtype to)
{
    if (wf_dtype_is_float(from) && wf_dtype_is_float(to))
        return from == to || to == WF_F64 || (to == WF_F32 && from != WF_F64);
    if (from == WF_BOOL)
        return true;
    return wf_dtype_is_int(from) && wf_dtype_is_int(to) && wf_dtype_size(from) <= wf_dtype_size(to);
}

static wf_status cast(rewrite *r)
{
    const wf_node *before = made_by(r->n, 0, "Cast");
    wf_emit e = wf_emit_begin(r->u->graph, r->n->name, r->err);

    if (r->n->in[0]->dtype == r->n->out[0]->dtype)
        r->instead = r->n->in[0];
    else if (before && widens(before->in[0]->dtype, before->out[0]->dtype))
        r->instead = wf_emit_cast(&e, before->in[0], r->n->out[0]->dtype);
    return wf_emit_end(&e);
}

static wf_status cast_like(rewrite *r)
{
    wf_emit e = wf_emit_begin(r->u->graph, r->n->name, r->err);

    r->instead = wf_emit_cast(&e, r->n->in[0], r->n->out[0]->dtype);
    return wf_emit_end(&e);
}

/* Out of training it is its input; the mask is true everywhere, and here nobody wants it. */
static wf_status dropout(rewrite *r)
{
    double training = 0.0, ratio = -1.0;
    bool off = !wf_node_has_in(r->n, 2) ||
               (wf_scalar_of(r->n->in[2], &training) && training == 0.0) ||
               (wf_node_has_in(r->n, 1) && wf_scalar_of(r->n->in[1], &ratio) && ratio == 0.0);
    bool masked = wf_node_has_out(r->n, 1) && wf_uses(r->u->graph, r->n->out[1]);

    if (off && !masked)
        r->instead = r->n->in[0];
    return WF_OK;
}

/* x op neutral, on either side where the operation commutes. */
static wf_status neutral(rewrite *r, double element, bool commutes)
{
    for (uint32_t i = 0; i < 2; i++) {
        wf_value *x = r->n->in[i];
        double other;

        if (i == 1 && !commutes)
            break;
        if (uniform(r->n->in[1 - i], &other) && other == element &&
            wf_same_shape(x, r->n->out[0]) && x->dtype == r->n->out[0]->dtype)
            r->instead = x;
    }
    return WF_OK;
}

static wf_status add(rewrite *r)
{
    return neutral(r, 0.0, true);
}

static wf_status sub(rewrite *r)
{
    return neutral(r, 0.0, false);
}

static wf_status mul(rewrite *r)
{
    return neutral(r, 1.0, true);
}

static wf_status divide(rewrite *r)
{
    return neutral(r, 1.0, false);
}

static wf_status neg(rewrite *r)
{
    const wf_node *before = made_by(r->n, 0, "Neg");

    if (before)
        r->instead = before->in[0];
    return WF_OK;
}

static const rule rules[] = {
    {WF_DOMAIN_ONNX, "Identity", always},
    {WF_DOMAIN_ONNX, "Reshape", reshape},
    {WF_DOMAIN_ONNX, "Flatten", same_shape},
    {WF_DOMAIN_ONNX, "Expand", same_shape},
    {WF_DOMAIN_WEFT, "SumToLike", same_shape},
    {WF_DOMAIN_ONNX, "Transpose", transpose},
    {WF_DOMAIN_ONNX, "Gemm", gemm},
    {WF_DOMAIN_ONNX, "Cast", cast},
    {WF_DOMAIN_ONNX, "CastLike", cast_like},
    {WF_DOMAIN_ONNX, "Dropout", dropout},
    {WF_DOMAIN_ONNX, "Add", add},
    {WF_DOMAIN_ONNX, "Sub", sub},
    {WF_DOMAIN_ONNX, "Mul", mul},
    {WF_DOMAIN_ONNX, "Div", divide},
    {WF_DOMAIN_ONNX, "Pow", divide},
    {WF_DOMAIN_ONNX, "Neg", neg},
};

static wf_status simplify_node(wf_unit *u, wf_node *n, bool *changed, wf_err *err)
{
    for (size_t i = 0; i < WF_COUNT(rules); i++) {
        rewrite r = {.u = u, .n = n, .err = err};

        if (!wf_node_is(n, rules[i].domain, rules[i].op))
            continue;
        if (!wf_node_has_out(n, 0) || !wf_uses(u->graph, n->out[0]))
            return WF_OK; /* bypassed before: pruning takes it */
        WF_TRY(rules[i].run(&r));
        *changed = *changed || r.changed;
        if (r.instead && wf_may_hand_over(u->graph, n->out[0], r.instead)) {
            WF_TRY(wf_hand_over(u, n->out[0], r.instead, err));
            *changed = true;
        }
    }
    return WF_OK;
}

wf_status wf_pass_simplify(wf_unit *u, wf_err *err)
{
    bool changed = true;

    while (changed) {
        size_t n_nodes = u->graph->n_nodes;

        changed = false;
        for (size_t i = 0; i < n_nodes; i++)
            WF_TRY(simplify_node(u, u->graph->nodes[i], &changed, err));
        WF_TRY(wf_pass_prune(u, err));
    }
    return wf_infer(u->graph, err);
}
