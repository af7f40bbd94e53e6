/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/compile_recognise.c - what exporters write out is seen for what it is, and what only
 * looks like it is not. */
#include "tests/unit/compile_fuse.h"

/* How LayerNormalization is written out; zero is as PyTorch does it. */
typedef struct norm_form {
    int64_t axis, second_axis;
    bool squares_by_mul, bias_first;
    float epsilon;
    const char *fetched; /* "d" or "variance": an output in the middle */
} norm_form;

static wf_value *written_out_norm(lab *l, wf_value *x, const norm_form *f)
{
    wf_emit *e = &l->e;
    const int64_t dims[] = {6};
    wf_value *d, *squared, *variance, *y, *scale, *bias;
    int64_t axis = f->axis ? f->axis : -1, second = f->second_axis ? f->second_axis : axis;

    d = wf_emit_sub(e, x, wf_emit_reduce_mean(e, x, 1, &axis, true));
    squared = f->squares_by_mul ? wf_emit_mul(e, d, d) : wf_emit_pow(e, d, lab_scalar(l, 2.0));
    variance = wf_emit_reduce_mean(e, squared, 1, &second, true);
    if (f->fetched)
        lab_output(l, strcmp(f->fetched, "d") ? variance : d, f->fetched);
    y = wf_emit_add(e, variance, lab_scalar(l, (double)(f->epsilon != 0 ? f->epsilon : 1e-5f)));
    y = wf_emit_div(e, d, wf_emit_unary(e, "Sqrt", y));
    scale = lab_variable(l, "scale", 1, dims);
    bias = lab_variable(l, "bias", 1, dims);
    y = wf_emit_mul(e, y, scale);
    return f->bias_first ? wf_emit_add(e, bias, y) : wf_emit_add(e, y, bias);
}

static void layer_norm_is_recognised(void **state)
{
    static const norm_form forms[] = {
        {0}, {.squares_by_mul = true, .bias_first = true}, {.axis = 2, .epsilon = 0.1f}};

    (void)state;
    for (size_t i = 0; i < WF_COUNT(forms); i++) {
        lab l;
        wf_compiled *c;

        lab_open(&l, 3, (const int64_t[]){-1, 4, 6});
        c = lab_close_grad(
            &l,
            written_out_norm(&l, wf_emit_mul(&l.e, l.x, lab_variable(&l, "w", 1, (int64_t[]){6})),
                             &forms[i]));
        assert_int_equal(count_op(c->graph, "LayerNormalization"), 1);
        assert_int_equal(count_op(c->graph, "LayerNormalizationGrad"), 1);
        assert_int_equal(count_op(c->graph, "ReduceMean"), 0);
        wf_compiled_free(&c);
    }
}

static void what_is_no_layer_norm_stays(void **state)
{
    static const norm_form forms[] = {{.axis = 1, .second_axis = 1},
                                      {.second_axis = 1},
                                      {.fetched = "d"},
                                      {.fetched = "variance"},
                                      {.epsilon = -0.01f}};

    (void)state;
    for (size_t i = 0; i < WF_COUNT(forms); i++) {
        lab l;
        wf_compiled *c;

        lab_open(&l, 3, (const int64_t[]){-1, 6, 6});
        lab_output(&l, written_out_norm(&l, l.x, &forms[i]), "y");
        c = lab_close(&l);
        assert_int_equal(count_op(c->graph, "LayerNormalization"), 0);
        wf_compiled_free(&c);
    }
}

/* x (1 + erf(x c)) k, and with tanh as the exporters have it. */
static wf_value *written_out_gelu(lab *l, wf_value *x, int form, double c, double k)
{
    wf_emit *e = &l->e;
    wf_value *half = lab_scalar(l, k), *one = lab_scalar(l, 1.0), *f;

    if (form == 0 || form == 1) {
        f = wf_emit_unary(e, "Erf",
                          form ? wf_emit_mul(e, lab_scalar(l, c), x)
                               : wf_emit_div(e, x, lab_scalar(l, 1 / c)));
        f = wf_emit_add(e, f, one);
        return form ? wf_emit_mul(e, wf_emit_mul(e, half, x), f)
                    : wf_emit_mul(e, wf_emit_mul(e, x, f), half);
    }
    f = form == 2 ? wf_emit_pow(e, x, lab_scalar(l, 3.0)) : wf_emit_mul(e, x, wf_emit_mul(e, x, x));
    f = wf_emit_add(e, x, wf_emit_mul(e, lab_scalar(l, 0.044715), f));
    f = wf_emit_unary(e, "Tanh", wf_emit_mul(e, f, lab_scalar(l, c)));
    return wf_emit_mul(e, half, wf_emit_mul(e, x, wf_emit_add(e, one, f)));
}

static void gelu_is_recognised(void **state)
{
    (void)state;
    for (int form = 0; form < 4; form++) {
        lab l;
        wf_value *x;
        wf_compiled *c;

        lab_open(&l, 3, (const int64_t[]){-1, 4, 6});
        x = wf_emit_mul(&l.e, l.x, lab_variable(&l, "w", 1, (int64_t[]){6}));
        c = lab_close_grad(
            &l,
            written_out_gelu(&l, x, form, form < 2 ? 0.7071067811865475 : 0.7978845608028654, 0.5));
        assert_int_equal(count_op(c->graph, "Gelu"), 1);
        assert_int_equal(count_op(c->graph, "GeluGrad"), 1);
        assert_int_equal(count_op(c->graph, "Erf") + count_op(c->graph, "Tanh"), 0);
        wf_compiled_free(&c);
    }
}

static void what_is_no_gelu_stays(void **state)
{
    static const struct {
        int form;
        double c, k;
    } forms[] = {{0, 0.8, 0.5}, {1, 0.70710678, 1.0}, {2, 0.7, 0.5}, {3, 0.79788456, 0.25}};

    (void)state;
    for (size_t i = 0; i < WF_COUNT(forms); i++) {
        lab l;
        wf_compiled *c;

        lab_open(&l, 3, (const int64_t[]){-1, 4, 6});
        lab_output(&l, written_out_gelu(&l, l.x, forms[i].form, forms[i].c, forms[i].k), "y");
        c = lab_close(&l);
        assert_int_equal(count_op(c->graph, "Gelu"), 0);
        wf_compiled_free(&c);
    }
}

enum { T = 70, D = 4 };

/* How attention is written out over [batch, 3, T, D]. */
typedef struct attention_form {
    enum { NO_MASK, CAUSAL, CAUSAL_FALSE, CAUSAL_ADDED, ADDED, PADDED, FED, SHAPED } mask;
    bool divides, takes_transposed, scales_factors, trains_mask, casts_like, small_fill;
    const char *fetched;
    int64_t axis;
} attention_form;

static void put_number(wf_tensor *t, int64_t i, double x)
{
    if (t->dtype == WF_F32)
        wf_f32_mut(t)[i] = (float)x;
    else
        ((double *)t->data)[i] = x;
}

/* [T, T]: true (or -inf) above the diagonal, and `below` times a few numbers elsewhere; upside down
 * for `negated`. */
static wf_value *causal(lab *l, wf_dtype dtype, bool negated, double below)
{
    const int64_t dims[] = {T, T};
    wf_tensor *t = NULL;

    must(wf_tensor_new(dtype, 2, dims, &t, &l->err), &l->err);
    for (int i = 0; i < T; i++)
        for (int k = 0; k < T; k++)
            if (dtype == WF_BOOL)
                ((uint8_t *)t->data)[i * T + k] = (k > i) != negated;
            else
                put_number(t, i * T + k, k > i ? -INFINITY : below * (i % 3));
    return wf_emit_constant(&l->e, "mask", &t);
}

/* [T] bool: the last three are padding. */
static wf_value *padding(lab *l)
{
    const int64_t dims[] = {T};
    wf_tensor *t = NULL;

    must(wf_tensor_new(WF_BOOL, 1, dims, &t, &l->err), &l->err);
    for (int k = 0; k < T; k++)
        ((uint8_t *)t->data)[k] = k >= T - 3;
    return wf_emit_constant(&l->e, "padding", &t);
}

/* [T] of zeros, as long as what variables are in. */
static wf_value *as_long_as(lab *l, wf_value *s)
{
    wf_attr start = wf_attr_int("start", -1);
    wf_value *shape = wf_emit_op(&l->e, "Shape", 1, (wf_value *[]){s}, 1, &start);

    return wf_emit_cast(&l->e, wf_emit_unary(&l->e, "ConstantOfShape", shape), lab_dtype);
}

static wf_value *masked(lab *l, wf_value *s, wf_value *like, const attention_form *f)
{
    wf_value *fill = lab_scalar(l, f->small_fill ? -1e3 : f->mask == PADDED ? -1e9 : -INFINITY);

    if (f->casts_like) /* the dynamo exporter asks the scores for their dtype */
        fill = wf_emit_binary(&l->e, "CastLike", fill, s);

    switch (f->mask) {
    case CAUSAL:
        return wf_emit_where(&l->e, causal(l, WF_BOOL, false, 0), fill, s);
    case CAUSAL_FALSE:
        return wf_emit_where(&l->e, causal(l, WF_BOOL, true, 0), s, fill);
    case PADDED:
        return wf_emit_where(&l->e, padding(l), fill, s);
    case ADDED:
        return wf_emit_add(&l->e, s, causal(l, lab_dtype, false, 0.25));
    case CAUSAL_ADDED:
        return wf_emit_add(&l->e, s, causal(l, lab_dtype, false, 0));
    case FED: /* of what is fed, through arithmetic, as BERT's exporters have it */
        return wf_emit_add(
            &l->e, s,
            wf_emit_unary(&l->e, "Sin",
                          wf_emit_reduce_mean(&l->e, l->x, 1, (int64_t[]){-1}, true)));
    case SHAPED:
        return wf_emit_add(&l->e, s, as_long_as(l, like));
    case NO_MASK:
        break;
    }
    return f->trains_mask
               ? wf_emit_add(&l->e, s, lab_variable(l, "bias", 2, (const int64_t[]){T, T}))
               : s;
}

static wf_value *written_out_attention(lab *l, const attention_form *f)
{
    wf_emit *e = &l->e;
    const int64_t row[] = {D};
    wf_value *q = wf_emit_mul(e, l->x, lab_variable(l, "wq", 1, row));
    wf_value *k = wf_emit_mul(e, l->x, lab_variable(l, "wk", 1, row));
    wf_value *v = wf_emit_mul(e, l->x, lab_variable(l, "wv", 1, row)), *s;
    wf_attr axis = wf_attr_int("axis", f->axis ? f->axis : -1);

    k = wf_emit_transpose(e, k, (const int64_t[]){0, 1, 3, 2});
    if (f->takes_transposed)
        k = wf_emit_unary(e, "Neg", k);
    if (f->scales_factors) {
        q = wf_emit_scale(e, q, 0.25);
        k = wf_emit_scale(e, k, 3);
    }
    s = wf_emit_matmul(e, q, k);
    s = f->divides ? wf_emit_div(e, s, lab_scalar(l, 2.0)) : wf_emit_scale(e, s, 0.5);
    s = wf_emit_op(e, "Softmax", 1, (wf_value *[]){masked(l, s, k, f)}, 1, &axis);
    if (f->fetched)
        lab_output(l, s, f->fetched);
    return wf_emit_matmul(e, s, v);
}

static void attention_is_recognised(void **state)
{
    static const attention_form forms[] = {
        {NO_MASK}, {CAUSAL, .divides = true},          {CAUSAL_FALSE}, {ADDED},
        {PADDED},  {CAUSAL, .takes_transposed = true}, {FED},          {CAUSAL, .casts_like = true},
        {SHAPED},  {NO_MASK, .scales_factors = true}};

    (void)state;
    for (size_t i = 0; i < WF_COUNT(forms); i++) {
        lab l;
        wf_compiled *c;

        lab_open(&l, 4, (const int64_t[]){-1, 3, T, D});
        c = lab_close_grad(&l, written_out_attention(&l, &forms[i]));
        assert_int_equal(count_op(c->graph, "DotAttention"), 1);
        assert_int_equal(count_op(c->graph, "DotAttentionGrad"), 1);
        assert_int_equal(count_op(c->graph, "Softmax"), 0);
        wf_compiled_free(&c);
    }
}

static const wf_node *node_of(const wf_compiled *c, const char *op)
{
    for (size_t i = 0; i < c->graph->n_nodes; i++)
        if (strcmp(c->graph->nodes[i]->op->name, op) == 0)
            return c->graph->nodes[i];
    fail_msg("there is no %s", op);
    return NULL;
}

/* Of the scores, of queries and of keys: nothing else multiplies any of them. */
static void every_scale_is_the_scale_of_the_scores(void **state)
{
    const attention_form form = {NO_MASK, .scales_factors = true};
    wf_compiled *c;
    lab l;

    (void)state;
    lab_open(&l, 4, (const int64_t[]){-1, 3, T, D});
    c = lab_close_grad(&l, written_out_attention(&l, &form));
    assert_float_equal(wf_node_float(node_of(c, "DotAttention"), "scale", 1), 0.5 * 0.25 * 3, 1e-7);
    assert_float_equal(wf_node_float(node_of(c, "DotAttentionGrad"), "scale", 1), 0.5 * 0.25 * 3,
                       1e-7);
    assert_int_equal(wf_node_int(node_of(c, "DotAttention"), "transK", 0), 0);
    wf_compiled_free(&c);
}

static void a_constant_causal_mask_is_an_attribute(void **state)
{
    static const struct {
        attention_form form;
        bool causal;
    } cases[] = {{{CAUSAL}, true}, {{CAUSAL_FALSE}, true}, {{CAUSAL_ADDED}, true},
                 {{ADDED}, false}, {{PADDED}, false},      {{CAUSAL, .small_fill = true}, false},
                 {{FED}, false}};

    (void)state;
    for (size_t i = 0; i < WF_COUNT(cases); i++) {
        const wf_node *n, *grad;
        wf_compiled *c;
        lab l;

        lab_open(&l, 4, (const int64_t[]){-1, 3, T, D});
        c = lab_close_grad(&l, written_out_attention(&l, &cases[i].form));
        n = node_of(c, "DotAttention");
        grad = node_of(c, "DotAttentionGrad");
        assert_int_equal(wf_node_int(n, "causal", 0), cases[i].causal);
        assert_int_equal(wf_node_has_in(n, 3), !cases[i].causal);
        assert_int_equal(wf_node_int(grad, "causal", 0), cases[i].causal);
        assert_int_equal(wf_node_has_in(grad, 4), !cases[i].causal);
        wf_compiled_free(&c);
    }
}

/* Of [batch, T, heads, D], where one Transpose makes k^T of it: attention reads all as it lies. */
static void heads_that_lie_side_by_side_are_not_transposed(void **state)
{
    const int64_t row[] = {D}, heads_first[] = {0, 2, 1, 3}, features_first[] = {0, 2, 3, 1};
    wf_value *q, *k, *v, *s;
    const wf_node *n, *grad;
    wf_compiled *c;
    wf_emit *e;
    lab l;

    (void)state;
    lab_open(&l, 4, (const int64_t[]){-1, T, 3, D});
    e = &l.e;
    q = wf_emit_transpose(e, wf_emit_mul(e, l.x, lab_variable(&l, "wq", 1, row)), heads_first);
    k = wf_emit_transpose(e, wf_emit_mul(e, l.x, lab_variable(&l, "wk", 1, row)), features_first);
    v = wf_emit_transpose(e, wf_emit_mul(e, l.x, lab_variable(&l, "wv", 1, row)), heads_first);
    s = wf_emit_op(e, "Softmax", 1, (wf_value *[]){wf_emit_matmul(e, q, k)}, 0, NULL);
    c = lab_close_grad(&l, wf_emit_transpose(e, wf_emit_matmul(e, s, v), heads_first));
    n = node_of(c, "DotAttention");
    grad = node_of(c, "DotAttentionGrad");
    assert_int_equal(count_op(c->graph, "Transpose"), 0);
    assert_int_equal(wf_node_int(n, "headsLast", 0), 1);
    assert_int_equal(wf_node_int(grad, "headsLast", 0), 1);
    assert_int_equal(n->in[1]->axes[1].size, T);
    assert_int_equal(n->out[0]->axes[2].size, 3);
    assert_int_equal(grad->out[1]->axes[1].size, T);
    wf_compiled_free(&c);
}

static void what_is_no_attention_stays(void **state)
{
    static const attention_form forms[] = {{NO_MASK, .trains_mask = true},
                                           {NO_MASK, .fetched = "probabilities"},
                                           {NO_MASK, .axis = 1}};

    (void)state;
    for (size_t i = 0; i < WF_COUNT(forms); i++) {
        lab l;
        wf_compiled *c;

        lab_open(&l, 4, (const int64_t[]){-1, 3, T, D});
        lab_output(&l, written_out_attention(&l, &forms[i]), "y");
        c = lab_close(&l);
        assert_int_equal(count_op(c->graph, "DotAttention"), 0);
        wf_compiled_free(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layer_norm_is_recognised),
        cmocka_unit_test(what_is_no_layer_norm_stays),
        cmocka_unit_test(gelu_is_recognised),
        cmocka_unit_test(what_is_no_gelu_stays),
        cmocka_unit_test(heads_that_lie_side_by_side_are_not_transposed),
        cmocka_unit_test(attention_is_recognised),
        cmocka_unit_test(every_scale_is_the_scale_of_the_scores),
        cmocka_unit_test(a_constant_causal_mask_is_an_attribute),
        cmocka_unit_test(what_is_no_attention_stays),
    };

    return lab_run(tests);
}
