/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/compile_sums.c - a bias's gradient beside its weight's: where one product gives both,
 * and where two nodes stay.
 */
#include "tests/unit/compile_fuse.h"

/* Layers that exporters write: the weight as it lies or turned, the rows under one axis or two. */
typedef struct layer {
    uint32_t rank; /* of x */
    bool is_gemm, turned;
    const char *sums; /* of which operand of the product that is the weight's gradient */
} layer;

static wf_value *emit_layer(lab *l, const layer *f, wf_value *x, const char *w_name,
                            const char *b_name, int64_t in, int64_t units)
{
    const int64_t dims[] = {f->turned ? units : in, f->turned ? in : units};
    wf_value *w = lab_variable(l, w_name, 2, dims), *b = lab_variable(l, b_name, 1, &units);

    if (f->is_gemm)
        return wf_emit_gemm(&l->e, x, w, b, 1, 1, false, f->turned);
    if (f->turned)
        w = wf_emit_transpose(&l->e, w, (const int64_t[]){1, 0});
    return wf_emit_add(&l->e, wf_emit_matmul(&l->e, x, w), b);
}

static const wf_node *only(const wf_graph *g, const char *op)
{
    const wf_node *found = NULL;

    for (size_t i = 0; i < g->n_nodes; i++)
        if (!strcmp(g->nodes[i]->op->name, op)) {
            assert_null(found);
            found = g->nodes[i];
        }
    assert_non_null(found);
    return found;
}

/* Gradients of weights that are no Product; those of x, which GRAD asks for too, do not count. */
static size_t count_weight_gemms(const wf_graph *g)
{
    size_t n = 0;

    for (size_t i = 0; i < g->n_nodes; i++)
        n += !strcmp(g->nodes[i]->op->name, "Gemm") && wf_node_int(g->nodes[i], "transA", 0);
    return n;
}

static void a_layer_has_one_product_for_both_gradients(void **state)
{
    static const layer layers[] = {{2, true, false, "b"},
                                   {2, true, true, "a"},
                                   {2, false, false, "b"},
                                   {3, false, false, "b"},
                                   {3, false, true, "a"}};

    (void)state;
    for (size_t i = 0; i < WF_COUNT(layers); i++) {
        const layer *f = &layers[i];
        const wf_node *product;
        wf_compiled *c;
        lab l;

        lab_open(&l, f->rank,
                 f->rank == 2 ? (const int64_t[]){-1, 7} : (const int64_t[]){-1, 3, 7});
        c = lab_close_grad(&l, emit_layer(&l, f, l.x, "w", "b", 7, 4));
        product = only(c->graph, "Product");
        assert_int_equal(product->n_out, 2);
        assert_string_equal(wf_node_string(product, "sums", ""), f->sums);
        assert_int_equal(count_op(c->graph, "ReduceSum"), 1); /* the loss */
        assert_int_equal(count_weight_gemms(c->graph), 0);
        wf_compiled_free(&c);
    }
}

/* The gradient of the first layer comes through the second. */
static void each_layer_has_its_own(void **state)
{
    static const layer f = {2, true, true, "a"};
    wf_compiled *c;
    wf_value *v;
    lab l;

    (void)state;
    lab_open(&l, 2, (const int64_t[]){-1, 7});
    v = wf_emit_unary(&l.e, "Relu", emit_layer(&l, &f, l.x, "w1", "b1", 7, 6));
    v = wf_emit_unary(&l.e, "Tanh", emit_layer(&l, &f, v, "w2", "b2", 6, 5));
    c = lab_close_grad(&l, emit_layer(&l, &f, v, "w3", "b3", 5, 3));
    assert_int_equal(count_op(c->graph, "Product"), 3);
    assert_int_equal(count_op(c->graph, "ReduceSum"), 1);
    wf_compiled_free(&c);
}

/* Of two products over the same rows, one gives the sums. */
static void one_of_two_products_gives_them(void **state)
{
    wf_value *v, *other;
    wf_compiled *c;
    lab l;

    (void)state;
    lab_open(&l, 2, (const int64_t[]){-1, 7});
    v = wf_emit_gemm(&l.e, l.x, lab_variable(&l, "w", 2, (const int64_t[]){7, 4}),
                     lab_variable(&l, "b", 1, (const int64_t[]){4}), 1, 1, false, false);
    other =
        wf_emit_gemm(&l.e, wf_emit_unary(&l.e, "Abs", l.x),
                     lab_variable(&l, "v", 2, (const int64_t[]){7, 4}), NULL, 1, 1, false, false);
    c = lab_close_grad(&l, wf_emit_add(&l.e, v, other));
    (void)only(c->graph, "Product");
    assert_int_equal(count_weight_gemms(c->graph), 1);
    assert_int_equal(count_op(c->graph, "ReduceSum"), 1);
    wf_compiled_free(&c);
}

/* As the heads of attention are: neither shape of dY comes from the other. */
static void rows_are_found_in_another_shape(void **state)
{
    static const layer f = {3, false, false, "b"};
    wf_compiled *c;
    wf_value *v;
    lab l;

    (void)state;
    lab_open(&l, 3, (const int64_t[]){-1, 3, 7});
    v = wf_emit_reshape(&l.e, emit_layer(&l, &f, l.x, "w", "b", 7, 6), 4,
                        (const int64_t[]){0, 0, 2, 3});
    v = wf_emit_transpose(&l.e, v, (const int64_t[]){0, 2, 1, 3});
    c = lab_close_grad(&l, wf_emit_unary(&l.e, "Tanh", v));
    assert_int_equal(only(c->graph, "Product")->n_out, 2);
    assert_int_equal(count_op(c->graph, "ReduceSum"), 1);
    wf_compiled_free(&c);
}

/* The same elements in rows of another length. */
static void rows_of_another_length_are_others(void **state)
{
    wf_value *x;
    wf_compiled *c;
    lab l;

    (void)state;
    lab_open(&l, 3, (const int64_t[]){-1, 4, 6});
    x = wf_emit_reshape(&l.e, l.x, 2, (const int64_t[]){-1, 4});
    lab_output(&l, wf_emit_reduce_sum(&l.e, l.x, 2, (const int64_t[]){0, 1}, false), "sums");
    lab_output(&l, wf_emit_gemm(&l.e, x, wf_emit_unary(&l.e, "Abs", x), NULL, 1, 1, true, false),
               "y");
    c = lab_close(&l);
    assert_int_equal(count_op(c->graph, "Product"), 0);
    wf_compiled_free(&c);
}

/* x [batch, 3, 7] as rows, and their product with |x|: W = x^T |x|, b = sums of x. */
static wf_compiled *close_sums(lab *l, float alpha, uint32_t n_axes, const int64_t axes[],
                               bool keep_dims, bool turned)
{
    const int64_t rows[] = {-1, 7};
    wf_value *x = wf_emit_reshape(&l->e, l->x, 2, rows), *y = wf_emit_unary(&l->e, "Abs", x);

    lab_output(l, wf_emit_reduce_sum(&l->e, l->x, n_axes, axes, keep_dims), "sums");
    lab_output(l,
               turned ? wf_emit_gemm(&l->e, x, y, NULL, alpha, 1, false, true)
                      : wf_emit_gemm(&l->e, x, y, NULL, alpha, 1, true, false),
               "product");
    return lab_close(l);
}

static void other_sums_stay(void **state)
{
    static const struct {
        float alpha;
        uint32_t n_axes;
        int64_t axes[3];
        bool keep_dims, turned, is_taken;
    } cases[] = {
        {1, 2, {0, 1}, false, false, true},  {1, 2, {-3, -2}, false, false, true},
        {2, 2, {0, 1}, false, false, false}, /* Product has no alpha */
        {1, 2, {0, 1}, true, false, false},  {1, 2, {0, 2}, false, false, false},
        {1, 1, {0}, false, false, false},    {1, 3, {0, 1, 2}, false, false, false},
        {1, 2, {0, 1}, false, true, false}, /* a product along the columns */
    };

    (void)state;
    for (size_t i = 0; i < WF_COUNT(cases); i++) {
        wf_compiled *c;
        lab l;

        lab_open(&l, 3, (const int64_t[]){-1, 3, 7});
        c = close_sums(&l, cases[i].alpha, cases[i].n_axes, cases[i].axes, cases[i].keep_dims,
                       cases[i].turned);
        assert_int_equal(count_op(c->graph, "Product"), cases[i].is_taken);
        assert_int_equal(count_op(c->graph, "ReduceSum"), !cases[i].is_taken);
        wf_compiled_free(&c);
    }
}

/* x^T (x * sums of x): one node for both would read its own result. */
static void a_product_of_the_sums_is_computed_behind_them(void **state)
{
    wf_value *sums;
    wf_compiled *c;
    lab l;

    (void)state;
    lab_open(&l, 2, (const int64_t[]){-1, 7});
    sums = wf_emit_reduce_sum(&l.e, l.x, 1, (const int64_t[]){0}, false);
    lab_output(&l, wf_emit_gemm(&l.e, l.x, wf_emit_mul(&l.e, l.x, sums), NULL, 1, 1, true, false),
               "y");
    c = lab_close(&l);
    assert_int_equal(count_op(c->graph, "Product"), 0);
    assert_int_equal(count_op(c->graph, "ReduceSum"), 1);
    wf_compiled_free(&c);
}

/* Rows of enough numbers for sums and products in several pieces. */
static void the_cpu_has_the_bits_of_two_nodes(void **state)
{
    enum { ROWS = 700, COLUMNS = 45 };
    static float data[EVAL_BATCH * ROWS * COLUMNS];
    static double doubles[EVAL_BATCH * ROWS * COLUMNS];
    const fed feeds[] = {{"x", lab_dtype == WF_F32 ? (void *)data : doubles}, {NULL, NULL}};
    static const char *const names[] = {"sums", "product"};
    wf_compile_spec spec = {.mode = WF_COMPILE_RUN};
    evaluated before, after;
    wf_value *y;
    wf_compiled *c;
    lab l;

    (void)state;
    fill(data, WF_COUNT(data), 3);
    for (size_t i = 0; i < WF_COUNT(data); i++)
        doubles[i] = (double)data[i] / 3;
    lab_open(&l, 3, (const int64_t[]){-1, ROWS, COLUMNS});
    y = wf_emit_reshape(&l.e, l.x, 2, (const int64_t[]){-1, COLUMNS});
    lab_output(&l, wf_emit_reduce_sum(&l.e, l.x, 2, (const int64_t[]){0, 1}, false), "sums");
    lab_output(&l, wf_emit_gemm(&l.e, wf_emit_unary(&l.e, "Tanh", y), y, NULL, 1, 1, true, false),
               "product");
    spec.graph = l.g;
    c = compile(&spec);
    assert_int_equal(count_op(c->graph, "Product"), 1);
    before = eval_graph(l.g, feeds);
    after = eval_graph(c->graph, feeds);
    for (size_t i = 0; i < WF_COUNT(names); i++) {
        const wf_tensor *was = output_of(&before, names[i]), *is = output_of(&after, names[i]);

        assert_int_equal(wf_tensor_bytes(was), wf_tensor_bytes(is));
        assert_memory_equal(was->data, is->data, wf_tensor_bytes(was));
    }
    eval_free(&before);
    eval_free(&after);
    wf_compiled_free(&c);
    wf_graph_free(&l.g);
}

/* Squares that are summed are never in memory; those that another reads, and products, are. */
static void squares_are_summed_as_they_are_made(void **state)
{
    static const struct {
        bool square, shared, keep;
    } cases[] = {
        {true, false, false}, {true, false, true}, {true, true, false}, {false, false, false}};
    const int64_t middle = 1;

    (void)state;
    for (size_t i = 0; i < WF_COUNT(cases); i++) {
        wf_compiled *c;
        wf_value *v, *other;
        lab l;

        lab_open(&l, 3, (const int64_t[]){-1, 5, 30});
        other = cases[i].square ? l.x : lab_variable(&l, "row", 1, (const int64_t[]){30});
        v = wf_emit_mul(&l.e, l.x, other);
        lab_output(&l, wf_emit_reduce_sum(&l.e, v, 1, &middle, cases[i].keep), "y");
        if (cases[i].shared)
            lab_output(&l, wf_emit_unary(&l.e, "Sin", v), "z");
        c = lab_close(&l);
        assert_int_equal(count_op(c->graph, "ReduceSumSquare"),
                         cases[i].square && !cases[i].shared);
        wf_compiled_free(&c);
    }
}

/* What a file may ask of the operation, and what is wrong with the rest. */
static void a_product_says_which_sums_it_has(void **state)
{
    static const struct {
        const char *sums;
        int64_t trans_a, trans_b;
        uint32_t rank;
        const char *says;
    } cases[] = {
        {"a", 1, 0, 2, NULL},
        {"b", 1, 0, 2, NULL},
        {"", 1, 0, 2, "the sums of the rows of \"\""},
        {"both", 1, 0, 2, "the sums of the rows of \"both\""},
        {"a", 0, 0, 2, "does not add up over the rows of a"},
        {"b", 1, 1, 2, "does not add up over the rows of b"},
        {"b", 1, 0, 3, "must be a matrix where rows are summed"},
    };

    (void)state;
    for (size_t i = 0; i < WF_COUNT(cases); i++) {
        const wf_attr attrs[] = {wf_attr_string("sums", cases[i].sums),
                                 wf_attr_int("transA", cases[i].trans_a),
                                 wf_attr_int("transB", cases[i].trans_b)};
        wf_value *out[2];
        lab l;

        lab_open(&l, cases[i].rank, (const int64_t[]){4, 4, 4});
        (void)wf_emit_node(&l.e, "Product", 2, (wf_value *[]){l.x, l.x}, 3, attrs, 2, out);
        assert_int_equal(wf_emit_end(&l.e) == WF_OK, !cases[i].says);
        if (cases[i].says)
            assert_says(l.err, cases[i].says);
        else
            assert_int_equal(out[1]->rank, 1);
        wf_graph_free(&l.g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_layer_has_one_product_for_both_gradients),
        cmocka_unit_test(each_layer_has_its_own),
        cmocka_unit_test(one_of_two_products_gives_them),
        cmocka_unit_test(rows_are_found_in_another_shape),
        cmocka_unit_test(rows_of_another_length_are_others),
        cmocka_unit_test(other_sums_stay),
        cmocka_unit_test(a_product_of_the_sums_is_computed_behind_them),
        cmocka_unit_test(the_cpu_has_the_bits_of_two_nodes),
        cmocka_unit_test(squares_are_summed_as_they_are_made),
        cmocka_unit_test(a_product_says_which_sums_it_has),
    };

    return lab_run(tests);
}
