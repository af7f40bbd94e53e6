/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/shares.c - predictions whose last axis sums to 1 by the way in which they are
 * made, as exporters write them: a loss takes them for probabilities. */
#include "common/compile/pass.h"

#include <string.h>

static const wf_node *maker(const wf_value *v, const char *op)
{
    return v && v->producer && wf_node_is(v->producer, WF_DOMAIN_ONNX, op) ? v->producer : NULL;
}

/* Whether a Reshape leaves the last axis as it is. */
static bool keeps_last(const wf_value *from, const wf_value *to)
{
    return from->rank > 0 && to->rank > 0 && from->axes[from->rank - 1].size > 0 &&
           from->axes[from->rank - 1].size == to->axes[to->rank - 1].size;
}

/* What v is but for its dtype and its other axes. */
static const wf_value *bare(const wf_value *v)
{
    while (maker(v, "Identity") ||
           (maker(v, "Cast") && wf_dtype_is_float(v->producer->in[0]->dtype)) ||
           (maker(v, "Reshape") && keeps_last(v->producer->in[0], v)))
        v = v->producer->in[0];
    return v;
}

/* 1 - x */
static bool is_rest(const wf_value *v, const wf_value *x)
{
    const wf_node *n = maker(v, "Sub");
    double one;

    return n && bare(n->in[1]) == x && wf_scalar_of(n->in[0], &one) && one == 1;
}

static bool is_pair(const wf_node *n)
{
    return n->n_in == 2 &&
           (is_rest(bare(n->in[0]), bare(n->in[1])) || is_rest(bare(n->in[1]), bare(n->in[0])));
}

static bool is_sum(const wf_value *v, const wf_value *x)
{
    const wf_node *n = v->producer;
    double axis;

    return (maker(v, "ReduceL1") || maker(v, "ReduceSum")) && bare(n->in[0]) == x && n->n_in > 1 &&
           n->in[1] && wf_scalar_of(n->in[1], &axis) && (axis == -1 || axis == x->rank - 1);
}

/* The sum of x along its last axis, or what keeps it from 0. */
static bool divides(const wf_value *v, const wf_value *x)
{
    const wf_node *n = v->producer;

    if (maker(v, "Where"))
        return is_sum(n->in[1], x) || is_sum(n->in[2], x);
    if (maker(v, "Max") || maker(v, "Clip"))
        return is_sum(n->in[0], x);
    return is_sum(v, x);
}

static bool last_axis(const wf_node *n, const wf_value *v, int64_t otherwise)
{
    int64_t axis = wf_node_int(n, "axis", otherwise);

    return axis == -1 || axis == v->rank - 1;
}

bool wf_makes_shares(const wf_value *v)
{
    const wf_node *n;

    v = bare(v);
    n = v->producer;
    if (maker(v, "Softmax"))
        return last_axis(n, v, -1);
    if (maker(v, "Concat"))
        return last_axis(n, v, 0) && is_pair(n);
    return maker(v, "Div") && divides(n->in[1], bare(n->in[0]));
}
