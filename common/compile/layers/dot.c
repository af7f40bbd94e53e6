/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/layers/dot.c - dot: the sum of products along an axis of each of two inputs, with
 * the axes that remain side by side. */
#include "common/compile/layers/layer.h"

/* v / sqrt(max(sum v^2, 1e-12)) along an axis. */
static wf_value *of_length_one(wf_layer *l, wf_value *v, int64_t axis)
{
    wf_value *sum = wf_emit_reduce_sum(&l->e, wf_emit_mul(&l->e, v, v), 1, &axis, true);

    sum = wf_emit_binary(&l->e, "Max", sum, wf_layer_number(l, 1e-12));
    return wf_emit_div(&l->e, v, wf_emit_unary(&l->e, "Sqrt", sum));
}

/* v as [batch, rest, summed], or [batch, summed, rest] when `second`. */
static wf_value *as_matrix(wf_layer *l, wf_value *v, int64_t axis, bool second)
{
    static const int64_t turn[] = {0, 2, 1};
    int64_t one = second ? 2 : 1;

    if (v && v->rank == 2)
        return wf_emit_unsqueeze(&l->e, v, 1, &one);
    return (axis == 1) != second ? wf_emit_transpose(&l->e, v, turn) : v;
}

static wf_flow build(wf_layer *l)
{
    wf_value *x = wf_layer_in(l, 0), *y = wf_layer_in(l, 1);
    int64_t axes[2], a, b, flat[2] = {0, 1};
    char s[128], t[128];
    int32_t ranks[2];

    if (!x || !y || !wf_layer_ints(l, "axes", 2, -1, axes))
        return (wf_flow){0};
    if (x->rank > 3 || y->rank > 3)
        return wf_layer_refuse(l, WF_UNSUPPORTED, "put a reshape before it",
                               "it takes records of one or two axes; what comes is %s and %s",
                               wf_layer_shape(wf_layer_give(x), s, sizeof(s)),
                               wf_layer_shape(wf_layer_give(y), t, sizeof(t)));
    a = wf_layer_axis(l, wf_layer_give(x), axes[0]);
    b = a < 0 ? -1 : wf_layer_axis(l, wf_layer_give(y), axes[1]);
    if (b < 0)
        return (wf_flow){0};
    if (x->axes[a].size != y->axes[b].size)
        return wf_layer_refuse(l, WF_USAGE, "choose other axes",
                               "axis %lld of %s and axis %lld of %s differ", (long long)a,
                               wf_layer_shape(wf_layer_give(x), s, sizeof(s)), (long long)b,
                               wf_layer_shape(wf_layer_give(y), t, sizeof(t)));
    ranks[0] = x->rank;
    ranks[1] = y->rank;
    if (wf_layer_flag(l, "normalize", false)) {
        x = of_length_one(l, x, a);
        y = of_length_one(l, y, b);
    }
    x = wf_emit_matmul(&l->e, as_matrix(l, x, a, false), as_matrix(l, y, b, true));
    if (!x || (ranks[0] == 3 && ranks[1] == 3))
        return wf_layer_give(x);
    /* The axes of size 1 that vectors were given go again; of two vectors one stays. */
    if (ranks[0] == 3 || ranks[1] == 3)
        flat[1] = x->axes[ranks[0] == 3 ? 1 : 2].size;
    return wf_layer_give(wf_emit_reshape(&l->e, x, 2, flat));
}

const wf_layer_row wf_layer_dot = {"dot", 2, 2, build};
