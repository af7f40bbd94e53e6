/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/layers/embedding.c - embedding: a row of a table for each id, or with `combiner`
 * one row for all ids of a bag. A table without bounds has rows for any ids: it is to be one of the
 * job's `tables` (tables.c).
 *
 * Combiners are those of TensorFlow's safe_embedding_lookup_sparse: with weights w, mean divides by
 * the sum of w, and sqrtn by the root of the sum of w^2; ids below 0 are left out, and a bag
 * without ids gives zeros. `max` is that of torch.nn.EmbeddingBag, and has no weights. mean and
 * sqrtn are sums by other weights, so that one operation computes all. */
#include "common/compile/layers/layer.h"

#include <string.h>

/* The table, made last: the order of the nodes is that of the inputs. */
static wf_value *table(wf_layer *l)
{
    int64_t dims[2] = {wf_conf_int(l->item, "input_dim", 1), wf_conf_int(l->item, "output_dim", 1)};

    if (wf_conf_text(l->item, "input_dim", NULL))
        return wf_layer_unbounded(l, "embeddings", dims[1], "uniform");
    return wf_layer_variable(l, "embeddings", 2, dims, "uniform", NULL);
}

static wf_value *sum_last(wf_layer *l, wf_value *x)
{
    static const int64_t last = -1;

    return wf_emit_reduce_sum(&l->e, x, 1, &last, true);
}

/* w over what its bag comes to, and 0 where that is 0. */
static wf_value *divided(wf_layer *l, wf_value *w, wf_value *by)
{
    wf_value *zero = wf_layer_number(l, 0), *one = wf_layer_number(l, 1), *none;

    none = wf_emit_binary(&l->e, "Equal", by, zero);
    w = wf_emit_div(&l->e, w, wf_emit_where(&l->e, none, one, by));
    return wf_emit_where(&l->e, none, zero, w);
}

/* The weights by which a combiner sums up; NULL: all are 1. */
static wf_value *weights_of(wf_layer *l, const char *combiner, wf_value *ids)
{
    wf_value *w = l->n_in > 1 ? wf_layer_in(l, 1) : NULL, *has;

    if (strcmp(combiner, "sum") == 0 || strcmp(combiner, "max") == 0)
        return w;
    has = wf_emit_binary(&l->e, "GreaterOrEqual", ids, wf_emit_scalar(&l->e, ids->dtype, 0));
    has = wf_emit_cast(&l->e, has, WF_F32);
    w = w ? wf_emit_mul(&l->e, w, has) : has;
    if (strcmp(combiner, "mean") == 0)
        return divided(l, w, sum_last(l, w));
    return divided(l, w, wf_emit_unary(&l->e, "Sqrt", sum_last(l, wf_emit_mul(&l->e, w, w))));
}

/* Whether the inputs are bags: ids [batch, ..., most], and weights of the same shape. */
static bool are_bags(wf_layer *l, const char *combiner, const wf_value *ids)
{
    wf_flow weights = l->n_in > 1 ? l->in[1] : (wf_flow){0};
    char a[128], b[128];
    bool same = true;

    wf_layer_shape(l->in[0], a, sizeof(a));
    if (ids->rank < 2)
        wf_layer_refuse(l, WF_USAGE, "give the input the shape [most ids of a record]",
                        "combiner: %s takes bags of ids, and what comes is %s", combiner, a);
    else if (weights.value && strcmp(combiner, "max") == 0)
        wf_layer_refuse(l, WF_USAGE, "leave the weights out, or take sum, mean or sqrtn",
                        "combiner: max takes ids alone, and there are weights too");
    if (l->e.rc != WF_OK || !weights.value)
        return l->e.rc == WF_OK;
    for (int32_t i = 0; i < ids->rank; i++)
        same = same && weights.value->rank == ids->rank &&
               weights.value->axes[i].size == ids->axes[i].size;
    if (!same)
        wf_layer_refuse(l, WF_USAGE, "give both inputs one shape",
                        "ids are %s and their weights %s", a,
                        wf_layer_shape(weights, b, sizeof(b)));
    return same;
}

static wf_flow build_bags(wf_layer *l, const char *combiner, wf_value *ids)
{
    wf_attr mode = wf_attr_string("mode", strcmp(combiner, "max") == 0 ? "max" : "sum");
    wf_value *in[3] = {NULL, ids, NULL};

    if (!are_bags(l, combiner, ids))
        return (wf_flow){0};
    in[2] = weights_of(l, combiner, ids);
    in[0] = table(l);
    return wf_layer_give(wf_emit_op(&l->e, "EmbeddingBag", in[2] ? 3 : 2, in, 1, &mode));
}

static wf_flow build(wf_layer *l)
{
    const char *combiner = wf_conf_text(l->item, "combiner", NULL);
    wf_value *in[2] = {NULL, wf_layer_plain(l, l->in[0])};
    wf_attr axis = wf_attr_int("axis", 0);
    char text[128];

    if (!in[1])
        return (wf_flow){0};
    if (!combiner && l->n_in > 1)
        return wf_layer_refuse(l, WF_USAGE, "add combiner: sum, mean or sqrtn",
                               "two inputs are ids and their weights, and without a combiner each "
                               "id has a row of its own");
    if (!combiner && in[1]->rank + 1 > WF_MAX_RANK)
        return wf_layer_refuse(l, WF_USAGE, NULL,
                               "what comes is %s, and there is no room for one "
                               "axis more",
                               wf_layer_shape(wf_layer_give(in[1]), text, sizeof(text)));
    if (in[1]->dtype != WF_I32 && in[1]->dtype != WF_I64)
        in[1] = wf_emit_cast(&l->e, in[1], WF_I64);
    if (!in[1])
        return (wf_flow){0};
    if (combiner)
        return build_bags(l, combiner, in[1]);
    in[0] = table(l);
    return wf_layer_give(wf_emit_op(&l->e, "Gather", 2, in, 1, &axis));
}

const wf_layer_row wf_layer_embedding = {"embedding", 1, 2, build};
