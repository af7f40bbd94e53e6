/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/rules/layer_norm.c - LayerNormalization, as files of opsets below 17 write it out:
 *
 *     d = x - mean(x);  y = d / sqrt(mean(d^2) + epsilon) * scale + bias
 *
 * by ReduceMean over the last axes, Sub, Pow (or Mul), ReduceMean, Add, Sqrt, Div, Mul, Add. One
 * kernel instead of nine, and a gradient of one instead of some twenty.
 */
#include "common/compile/rules/rules.h"
#include <string.h>

/* The first of the axes that a ReduceMean with keepdims takes, when those are the last ones; -1
 * when they are others. */
static int32_t last_axes(const wf_node *mean)
{
    wf_elem axes[WF_MAX_CARRIED];
    int32_t rank = mean->in[0]->rank;
    uint32_t n, mask = 0;

    if (rank < 1 || !wf_node_int(mean, "keepdims", 1) || !wf_node_has_in(mean, 1) ||
        !wf_value_elems(mean->in[1], axes, &n) || n < 1)
        return -1;
    for (uint32_t i = 0; i < n; i++) {
        int64_t axis = axes[i].value < 0 ? axes[i].value + rank : axes[i].value;

        if (!axes[i].is_known || axis < 0 || axis >= rank)
            return -1;
        mask |= 1u << axis;
    }
    for (int32_t first = 0; first < rank; first++)
        if (mask == (((1u << rank) - 1) & ~((1u << first) - 1)))
            return first;
    return -1;
}

/* What v is the square of, or NULL. */
static wf_value *root_of(const wf_value *v)
{
    const wf_node *pow = wf_rewrite_maker(v, "Pow"), *mul = wf_rewrite_maker(v, "Mul");

    if (pow && wf_rewrite_is(pow->in[1], 2.0))
        return pow->in[0];
    return mul && mul->in[0] == mul->in[1] ? mul->in[0] : NULL;
}

/* mean(d^2) + epsilon, over which axes. */
static bool is_variance(const wf_value *v, const wf_value *d, int32_t axis, double *epsilon)
{
    const wf_node *add = wf_rewrite_maker(v, "Add"), *mean;

    if (!add ||
        (!wf_rewrite_uniform(add->in[1], epsilon) && !wf_rewrite_uniform(add->in[0], epsilon)))
        return false;
    mean = wf_rewrite_made_by(add, wf_rewrite_uniform(add->in[1], epsilon) ? 0 : 1, "ReduceMean");
    return mean && last_axes(mean) == axis && root_of(mean->in[0]) == d;
}

/* How many of a chain's inner values nodes outside of it read: d is read by the square and the
 * quotient, what else there is by one node each. */
static bool is_private(const wf_rewrite *r, const wf_node *div, const wf_value *d)
{
    const wf_node *root = div->in[1]->producer, *add = root->in[0]->producer;
    const wf_value *squared;
    const wf_node *mean;

    mean = wf_rewrite_made_by(add, 0, "ReduceMean");
    mean = mean ? mean : wf_rewrite_made_by(add, 1, "ReduceMean");
    squared = mean->in[0];
    return wf_uses(r->u->graph, d) == (wf_rewrite_maker(squared, "Mul") ? 3u : 2u) &&
           !wf_is_output(r->u->graph, d) && wf_rewrite_sole(r, squared) &&
           wf_rewrite_sole(r, mean->out[0]) && wf_rewrite_sole(r, add->out[0]) &&
           wf_rewrite_sole(r, root->out[0]);
}

/* x, when div is (x - mean(x)) / sqrt(variance + epsilon). */
static wf_value *normalised(const wf_rewrite *r, const wf_node *div, int32_t *axis, double *epsilon)
{
    wf_value *d = div->in[0];
    const wf_node *sub = wf_rewrite_maker(d, "Sub"),
                  *mean = sub ? wf_rewrite_made_by(sub, 1, "ReduceMean") : NULL;
    const wf_node *root = wf_rewrite_made_by(div, 1, "Sqrt");

    if (!mean || !root || mean->in[0] != sub->in[0] || !wf_dtype_is_float(d->dtype))
        return NULL;
    *axis = last_axes(mean);
    if (*axis < 0 || !is_variance(root->in[0], d, *axis, epsilon) || !(*epsilon >= 0) ||
        *epsilon > 1 || !is_private(r, div, d))
        return NULL;
    return sub->in[0];
}

/* Whether v has just the axes of x from `axis` on, with the same known sizes. */
static bool is_scale(const wf_value *v, const wf_value *x, int32_t axis)
{
    if (v->rank != x->rank - axis || v->dtype != x->dtype)
        return false;
    for (int32_t i = 0; i < v->rank; i++)
        if (v->axes[i].size < 1 || v->axes[i].size != x->axes[axis + i].size)
            return false;
    return true;
}

/* Looks at the last node, Add of the bias. */
static wf_status layer_norm(wf_rewrite *r)
{
    wf_emit e = wf_emit_begin(r->u->graph, r->n->name, r->err);

    for (uint32_t i = 0; i < 2; i++) {
        wf_node *mul = wf_rewrite_made_by(r->n, i, "Mul");

        for (uint32_t k = 0; mul && k < 2 && !r->instead; k++) {
            const wf_node *div = wf_rewrite_made_by(mul, k, "Div");
            wf_value *in[3] = {NULL, mul->in[1 - k], r->n->in[1 - i]};
            int32_t axis;
            double epsilon;

            if (!div || !wf_rewrite_sole(r, mul->out[0]) || !wf_rewrite_sole(r, div->out[0]))
                continue;
            in[0] = normalised(r, div, &axis, &epsilon);
            if (in[0] && is_scale(in[1], in[0], axis) && is_scale(in[2], in[0], axis))
                r->instead = wf_emit_op(&e, "LayerNormalization", 3, in, 2,
                                        (wf_attr[]){wf_attr_int("axis", axis - in[0]->rank),
                                                    wf_attr_float("epsilon", (float)epsilon)});
        }
    }
    return wf_emit_end(&e);
}

const wf_rewrite_rule wf_rules_layer_norm[] = {
    {WF_DOMAIN_ONNX, "Add", layer_norm},
    {0},
};
