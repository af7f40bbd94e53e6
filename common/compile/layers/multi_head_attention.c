/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/layers/multi_head_attention.c - attention of several heads (Vaswani et al. 2017).
 *
 * Inputs are query, value and key, as Keras's call has them; the value is the query and the key the
 * value where they are left out. Variables are Keras's: "query/kernel" [features, heads, key_dim],
 * "query/bias" [heads, key_dim], likewise of key and value, "attention_output/kernel" [heads,
 * value_dim, out] and "attention_output/bias" [out]. */
#include "common/base/size.h"
#include "common/compile/layers/layer.h"
#include <math.h>
#include <stdio.h>

typedef struct heads {
    int64_t n, key, value, out;
    bool bias;
} heads;

/* x [batch, steps, features] by a kernel of its own: [batch, heads, steps, size], or with `last`
 * [batch, heads, size, steps]. */
static wf_value *project(wf_layer *l, const heads *h, const char *what, wf_value *x, int64_t size,
                         bool last)
{
    static const int64_t to_steps[] = {0, 2, 1, 3}, to_last[] = {0, 2, 3, 1};
    int64_t dims[3] = {x->axes[2].size, h->n, size}, flat[2] = {dims[0], h->n * size};
    int64_t split[4] = {0, x->axes[1].size, h->n, size};
    char part[40];
    wf_value *y;

    snprintf(part, sizeof(part), "%s/kernel", what);
    y = wf_layer_variable(l, part, 3, dims, "glorot_uniform", NULL);
    y = wf_emit_matmul(&l->e, x, wf_emit_reshape(&l->e, y, 2, flat));
    if (h->bias) {
        snprintf(part, sizeof(part), "%s/bias", what);
        y = wf_emit_add(&l->e, y,
                        wf_emit_reshape(&l->e,
                                        wf_layer_variable(l, part, 2, &dims[1], "zeros", NULL), 1,
                                        &flat[1]));
    }
    return wf_emit_transpose(&l->e, wf_emit_reshape(&l->e, y, 4, split), last ? to_last : to_steps);
}

/* 0 where a step may look, far below all scores where it may not: [steps, seen]. */
static wf_value *causal_mask(wf_layer *l, int64_t steps, int64_t seen)
{
    int64_t dims[2] = {steps, seen}, elems;
    wf_tensor *t = NULL;
    wf_status rc;

    if (!wf_mul_i64(steps, seen, &elems) || elems > (int64_t)1 << 26) {
        wf_layer_refuse(l, WF_UNSUPPORTED, "shorten the sequence",
                        "a mask of %lld x %lld steps is too large", (long long)steps,
                        (long long)seen);
        return NULL;
    }
    rc = wf_tensor_new(WF_F32, 2, dims, &t, l->e.err);
    if (rc != WF_OK) {
        wf_layer_stop(l, rc);
        return NULL;
    }
    for (int64_t i = 0; i < elems; i++)
        wf_f32_mut(t)[i] = i % seen <= i / seen ? 0.0f : -1e30f;
    return wf_emit_constant(&l->e, l->name, &t);
}

static wf_value *weights_of(wf_layer *l, wf_value *scores, int64_t steps, int64_t seen)
{
    double rate = wf_conf_number(l->item, "dropout", 0.0);
    wf_attr axis = wf_attr_int("axis", -1);
    wf_value *in[3] = {scores, NULL, NULL};

    if (wf_layer_flag(l, "use_causal_mask", false))
        in[0] = wf_emit_add(&l->e, scores, causal_mask(l, steps, seen));
    in[0] = wf_emit_op(&l->e, "Softmax", 1, in, 1, &axis);
    if (rate <= 0)
        return in[0];
    in[1] = wf_layer_number(l, rate);
    in[2] = wf_emit_scalar(&l->e, WF_BOOL, 0.0);
    return wf_emit_op(&l->e, "Dropout", 3, in, 0, NULL);
}

/* [batch, heads, steps, value] to [batch, steps, out]. */
static wf_value *output(wf_layer *l, const heads *h, wf_value *y, int64_t steps)
{
    static const int64_t back[] = {0, 2, 1, 3};
    int64_t joined[3] = {0, steps, h->n * h->value}, dims[3] = {h->n, h->value, h->out};
    int64_t flat[2] = {h->n * h->value, h->out};
    wf_value *kernel;

    y = wf_emit_reshape(&l->e, wf_emit_transpose(&l->e, y, back), 3, joined);
    kernel = wf_layer_variable(l, "attention_output/kernel", 3, dims, "glorot_uniform", NULL);
    y = wf_emit_matmul(&l->e, y, wf_emit_reshape(&l->e, kernel, 2, flat));
    if (h->bias)
        y = wf_emit_add(&l->e, y,
                        wf_layer_variable(l, "attention_output/bias", 1, &h->out, "zeros", NULL));
    return y;
}

static wf_flow build(wf_layer *l)
{
    wf_value *query = wf_layer_in(l, 0), *value = l->n_in > 1 ? wf_layer_in(l, 1) : query;
    wf_value *key = l->n_in > 2 ? wf_layer_in(l, 2) : value, *scores, *y;
    int64_t steps, seen;
    heads h = {.n = wf_conf_int(l->item, "num_heads", 1),
               .key = wf_conf_int(l->item, "key_dim", 1),
               .bias = wf_layer_flag(l, "use_bias", true)};
    char a[128], b[128], c[128];

    if (!query || !value || !key)
        return (wf_flow){0};
    if (query->rank != 3 || value->rank != 3 || key->rank != 3 ||
        key->axes[1].size != value->axes[1].size)
        return wf_layer_refuse(l, WF_USAGE,
                               "each is [steps, features], with the steps of value and key alike",
                               "the query is %s, the value %s and the key %s",
                               wf_layer_shape(wf_layer_give(query), a, sizeof(a)),
                               wf_layer_shape(wf_layer_give(value), b, sizeof(b)),
                               wf_layer_shape(wf_layer_give(key), c, sizeof(c)));
    h.value = wf_conf_int(l->item, "value_dim", h.key);
    h.out = wf_conf_int(l->item, "output_shape", query->axes[2].size);
    steps = query->axes[1].size;
    seen = key->axes[1].size;
    query = wf_emit_scale(&l->e, project(l, &h, "query", query, h.key, false),
                          1.0 / sqrt((double)h.key));
    scores = wf_emit_matmul(&l->e, query, project(l, &h, "key", key, h.key, true));
    value = project(l, &h, "value", value, h.value, false);
    y = wf_emit_matmul(&l->e, weights_of(l, scores, steps, seen), value);
    return wf_layer_give(output(l, &h, y, steps));
}

const wf_layer_row wf_layer_multi_head_attention = {"multi_head_attention", 1, 3, build};
