/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/layers/interaction.c - what recommenders make of the vectors of a record's
 * features: factorization_machine and dot_interaction.
 *
 * An input is one vector, [batch, dim], or several, [batch, features, dim], as an embedding of
 * several ids gives them. */
#include "common/base/size.h"
#include "common/compile/layers/layer.h"

#include <stdlib.h>

enum { MOST_INPUTS = 64, MOST_FEATURES = 4096 };

/* The vectors of all inputs, [batch, features, dim]; NULL after a failure. */
static wf_value *features(wf_layer *l)
{
    static const int64_t second = 1;
    wf_value *in[MOST_INPUTS];
    wf_attr axis = wf_attr_int("axis", 1);
    char a[128], b[128];

    for (size_t i = 0; i < l->n_in; i++) {
        in[i] = wf_layer_in(l, i);
        if (in[i] && in[i]->rank == 2)
            in[i] = wf_emit_unsqueeze(&l->e, in[i], 1, &second);
        if (!in[i])
            return NULL;
        if (in[i]->rank == 3 && in[i]->axes[2].size == in[0]->axes[2].size)
            continue;
        wf_layer_refuse(l, WF_USAGE, "give it vectors of one length, [dim] or [features, dim]",
                        "input 1 is %s and input %zu %s",
                        wf_layer_shape(wf_layer_give(in[0]), a, sizeof(a)), i + 1,
                        wf_layer_shape(wf_layer_give(in[i]), b, sizeof(b)));
        return NULL;
    }
    return l->n_in == 1 ? in[0] : wf_emit_op(&l->e, "Concat", (uint32_t)l->n_in, in, 1, &axis);
}

/* The sum of the products of all pairs, sum_{i<j} <v_i, v_j>, [batch, 1]. It is linear in the
 * number of features: 1/2 sum_d ((sum_i v_id)^2 - sum_i v_id^2) (Rendle 2010, "Factorization
 * Machines", lemma 3.1). */
static wf_flow factorization_machine(wf_layer *l)
{
    static const int64_t axis = 1;
    wf_value *v = features(l), *sum, *squares;

    sum = wf_emit_reduce_sum(&l->e, v, 1, &axis, false);
    squares = wf_emit_reduce_sum(&l->e, wf_emit_mul(&l->e, v, v), 1, &axis, false);
    sum = wf_emit_sub(&l->e, wf_emit_mul(&l->e, sum, sum), squares);
    return wf_layer_give(wf_emit_scale(&l->e, wf_emit_reduce_sum(&l->e, sum, 1, &axis, true), 0.5));
}

/* Where the pairs j <= i, or j < i, are in an n x n matrix, row by row. */
static wf_value *pairs(wf_layer *l, int64_t n, bool self)
{
    int64_t count = n * (n - 1) / 2 + (self ? n : 0), at = 0;
    int64_t *places = malloc((size_t)count * sizeof *places);
    wf_value *v;

    if (!places) {
        wf_layer_stop(l, wf_fail_nomem(l->e.err, (size_t)count * sizeof *places));
        return NULL;
    }
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < i + self; j++)
            places[at++] = i * n + j;
    v = wf_emit_ints(&l->e, (uint32_t)count, places);
    free(places);
    return v;
}

/* The product of each pair of vectors, [batch, pairs]: those below the diagonal of V V^T, row by
 * row, as the keras_rs layer DotInteraction has them (Naumov et al. 2019, "Deep Learning
 * Recommendation Model", section 2.1). */
static wf_flow dot_interaction(wf_layer *l)
{
    static const int64_t turn[] = {0, 2, 1};
    bool self = wf_layer_flag(l, "self_interaction", false);
    wf_value *v = features(l), *in[2];
    wf_attr axis = wf_attr_int("axis", 1);
    int64_t n = v ? v->axes[1].size : 0, flat[2] = {0};

    if (!v)
        return (wf_flow){0};
    if (n > MOST_FEATURES || (n < 2 && !self))
        return wf_layer_refuse(l, WF_USAGE, "give it the vectors of several features",
                               "%lld features; 2 to %d", (long long)n, MOST_FEATURES);
    flat[1] = n * n;
    in[0] = wf_emit_matmul(&l->e, v, wf_emit_transpose(&l->e, v, turn));
    in[0] = wf_emit_reshape(&l->e, in[0], 2, flat);
    in[1] = pairs(l, n, self);
    return wf_layer_give(wf_emit_op(&l->e, "Gather", 2, in, 1, &axis));
}

const wf_layer_row wf_layer_factorization_machine = {"factorization_machine", 1, MOST_INPUTS,
                                                     factorization_machine};
const wf_layer_row wf_layer_dot_interaction = {"dot_interaction", 1, MOST_INPUTS, dot_interaction};
