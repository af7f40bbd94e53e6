/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/compile_fuse.c - several nodes as one kernel: where it is one pass over memory, and
 * where not.
 */
#include "tests/unit/compile_fuse.h"

static const int64_t three_axes[] = {-1, 2, 3};

/* x [batch, 2, 3] by w [4, 3] transposed, plus a bias, cut at 0. */
static void a_linear_layer_is_one_node(void **state)
{
    lab l;
    wf_value *v, *w;
    wf_compiled *c;

    (void)state;
    lab_open(&l, 3, three_axes);
    w = wf_emit_transpose(&l.e, lab_variable(&l, "w", 2, (const int64_t[]){4, 3}),
                          (const int64_t[]){1, 0});
    v = wf_emit_matmul(&l.e, l.x, w);
    v = wf_emit_add(&l.e, lab_variable(&l, "b", 1, (const int64_t[]){4}), v);
    lab_output(&l, wf_emit_unary(&l.e, "Relu", v), "y");
    c = lab_close(&l);
    assert_int_equal(c->graph->n_nodes, 1);
    assert_string_equal(c->graph->nodes[0]->op->name, "Linear");
    assert_string_equal(wf_node_string(c->graph->nodes[0], "activation", ""), "Relu");
    assert_string_equal(c->graph->outputs[0]->axes[0].symbol, "batch");
    wf_compiled_free(&c);
}

static void a_gemm_takes_its_relu_in(void **state)
{
    lab l;
    wf_value *v, *w, *b;
    wf_compiled *c;

    (void)state;
    lab_open(&l, 2, (const int64_t[]){-1, 70});
    w = lab_variable(&l, "w", 2, (const int64_t[]){33, 70});
    b = lab_variable(&l, "b", 1, (const int64_t[]){33});
    v = wf_emit_gemm(&l.e, l.x, w, b, 1, 1, false, true);
    v = wf_emit_unary(&l.e, "Relu", v);
    c = lab_close_grad(&l, v);
    assert_int_equal(count_op(c->graph, "Linear"), 1);
    assert_int_equal(count_op(c->graph, "Relu"), 0);
    wf_compiled_free(&c);
}

/* Relu between two layers: backward, the second one's product takes ReluGrad in. */
static void a_product_takes_the_gradient_of_relu_in(void **state)
{
    (void)state;
    for (uint32_t rank = 2; rank <= 3; rank++) {
        lab l;
        wf_value *v, *w;
        wf_compiled *c;
        size_t n = 0;

        lab_open(&l, rank, rank == 2 ? (const int64_t[]){-1, 3} : three_axes);
        v = wf_emit_matmul(&l.e, l.x, lab_variable(&l, "w", 2, (const int64_t[]){3, 4}));
        w = lab_variable(&l, "u", 2, (const int64_t[]){4, 5});
        v = wf_emit_matmul(&l.e, wf_emit_unary(&l.e, "Relu", v), w);
        c = lab_close_grad(&l, v);
        assert_int_equal(count_op(c->graph, "ReluGrad"), 0);
        for (size_t i = 0; i < c->graph->n_nodes; i++) {
            const wf_node *at = c->graph->nodes[i];

            if (strcmp(wf_node_string(at, "activation", ""), "ReluGrad") != 0)
                continue;
            n++;
            assert_string_equal(at->op->name, "Linear");
            assert_null(at->in[2]);
            assert_int_equal(at->in[3]->rank, 2);
            assert_int_equal(wf_node_int(at, "transB", 0), 1);
        }
        assert_int_equal(n, 1);
        wf_compiled_free(&c);
    }
}

/* What reads the gradient of the Relu's output beside ReluGrad. */
static void a_gradient_that_others_read_stays(void **state)
{
    lab l;
    wf_value *v, *w;
    wf_compiled *c;

    (void)state;
    lab_open(&l, 2, (const int64_t[]){-1, 3});
    v = wf_emit_matmul(&l.e, l.x, lab_variable(&l, "w", 2, (const int64_t[]){3, 4}));
    v = wf_emit_add(&l.e, wf_emit_unary(&l.e, "Relu", v),
                    lab_variable(&l, "b", 1, (const int64_t[]){4}));
    w = lab_variable(&l, "u", 2, (const int64_t[]){4, 5});
    c = lab_close_grad(&l, wf_emit_matmul(&l.e, v, w));
    assert_int_equal(count_op(c->graph, "ReluGrad"), 1);
    wf_compiled_free(&c);
}

static void what_else_reads_a_product_keeps_it(void **state)
{
    lab l;
    wf_value *v, *y;
    wf_compiled *c;

    (void)state;
    lab_open(&l, 3, three_axes);
    v = wf_emit_matmul(&l.e, l.x, lab_variable(&l, "w", 2, (const int64_t[]){3, 4}));
    y = wf_emit_add(&l.e, v, lab_variable(&l, "b", 1, (const int64_t[]){4}));
    lab_output(&l, wf_emit_matmul(&l.e, v, wf_emit_transpose(&l.e, y, (int64_t[]){0, 2, 1})), "y");
    c = lab_close(&l);
    assert_int_equal(count_op(c->graph, "Linear"), 0);
    wf_compiled_free(&c);

    lab_open(&l, 3, three_axes); /* an output in the middle */
    v = wf_emit_matmul(&l.e, l.x, lab_variable(&l, "w", 2, (const int64_t[]){3, 4}));
    lab_output(&l, v, "middle");
    lab_output(&l, wf_emit_unary(&l.e, "Relu", v), "y");
    c = lab_close(&l);
    assert_int_equal(count_op(c->graph, "Linear"), 0);
    wf_compiled_free(&c);
}

static void other_sums_are_no_bias(void **state)
{
    lab l;
    wf_value *v;
    wf_compiled *c;

    (void)state;
    lab_open(&l, 3, three_axes); /* a column */
    v = wf_emit_matmul(&l.e, l.x, lab_variable(&l, "w", 2, (const int64_t[]){3, 2}));
    lab_output(&l, wf_emit_add(&l.e, v, lab_variable(&l, "b", 2, (const int64_t[]){2, 1})), "y");
    c = lab_close(&l);
    assert_int_equal(count_op(c->graph, "Linear"), 0);
    wf_compiled_free(&c);

    lab_open(&l, 2, (const int64_t[]){-1, 3}); /* a weighted one */
    v = lab_variable(&l, "w", 2, (const int64_t[]){3, 4});
    v = wf_emit_gemm(&l.e, l.x, v, lab_variable(&l, "b", 1, (const int64_t[]){4}), 1, 0.5f, false,
                     false);
    lab_output(&l, wf_emit_unary(&l.e, "Relu", v), "y");
    c = lab_close(&l);
    assert_int_equal(count_op(c->graph, "Linear"), 0);
    wf_compiled_free(&c);
}

static void an_export_has_onnx_operations_alone(void **state)
{
    lab l;
    wf_value *v;
    wf_compiled *c;
    wf_compile_spec spec = {.mode = WF_COMPILE_INFER, .is_portable = true};

    (void)state;
    lab_open(&l, 3, three_axes);
    v = wf_emit_matmul(&l.e, l.x, lab_variable(&l, "w", 2, (const int64_t[]){3, 4}));
    lab_output(&l, wf_emit_unary(&l.e, "Relu", v), "y");
    spec.graph = l.g;
    c = compile(&spec);
    for (size_t i = 0; i < c->graph->n_nodes; i++)
        assert_string_equal(c->graph->nodes[i]->op->domain, WF_DOMAIN_ONNX);
    wf_compiled_free(&c);
    wf_graph_free(&l.g);
}

static size_t steps_of(const wf_graph *g)
{
    size_t n = 0;

    for (size_t i = 0; i < g->n_nodes; i++)
        if (!strcmp(g->nodes[i]->op->name, "Chain"))
            n += wf_node_attr(g->nodes[i], "steps")->n;
    return n;
}

/* tanh(-(x * row + scalar) * x) + |x|: one Chain over more than a tile. */
static void elementwise_operations_make_a_chain(void **state)
{
    lab l;
    wf_value *v;
    wf_compiled *c;

    (void)state;
    lab_open(&l, 3, (const int64_t[]){-1, 7, 300});
    v = wf_emit_mul(&l.e, l.x, lab_variable(&l, "row", 1, (const int64_t[]){300}));
    v = wf_emit_add(&l.e, lab_scalar(&l, 0.25), v);
    v = wf_emit_mul(&l.e, wf_emit_neg(&l.e, v), l.x);
    v = wf_emit_add(&l.e, wf_emit_unary(&l.e, "Tanh", v), wf_emit_unary(&l.e, "Abs", l.x));
    lab_output(&l, v, "y");
    c = lab_close(&l);
    assert_int_equal(c->graph->n_nodes, 1);
    assert_int_equal(steps_of(c->graph), 7);
    wf_compiled_free(&c);
}

/* A block [7, 300] and one [1, 300] repeat; a tile crosses their ends. */
static void what_repeats_is_read_in_a_chain(void **state)
{
    lab l;
    wf_value *v;
    wf_compiled *c;

    (void)state;
    lab_open(&l, 3, (const int64_t[]){-1, 7, 300});
    v = wf_emit_sub(&l.e, lab_variable(&l, "block", 2, (const int64_t[]){7, 300}), l.x);
    v = wf_emit_div(
        &l.e, l.x,
        wf_emit_exp(&l.e,
                    wf_emit_mul(&l.e, v, lab_variable(&l, "r", 3, (const int64_t[]){1, 1, 300}))));
    c = lab_close_grad(&l, v);
    assert_true(count_op(c->graph, "Chain") >= 1);
    wf_compiled_free(&c);
}

/* Sums over the middle axis are spread along it again, as a chain reads them; the gradient of the
 * square is added twice. */
static void what_repeats_inside_is_read_in_a_chain(void **state)
{
    const int64_t middle = 1;
    lab l;
    wf_value *v, *sum;
    wf_compiled *c;

    (void)state;
    lab_open(&l, 3, (const int64_t[]){-1, 7, 300});
    v = wf_emit_mul(&l.e, l.x, lab_variable(&l, "row", 1, (const int64_t[]){300}));
    sum = wf_emit_reduce_sum(&l.e, v, 1, &middle, true);
    v = wf_emit_reduce_sum(&l.e, wf_emit_mul(&l.e, v, v), 1, &middle, true);
    c = lab_close_grad(&l, wf_emit_sub(&l.e, wf_emit_mul(&l.e, sum, sum), v));
    assert_int_equal(count_op(c->graph, "Expand"), 0);
    wf_compiled_free(&c);

    lab_open(&l, 3, (const int64_t[]){-1, 7, 300});
    sum = wf_emit_reduce_sum(&l.e, l.x, 1, &middle, true);
    v = wf_emit_neg(&l.e, wf_emit_mul(&l.e, sum, l.x));
    lab_output(&l, wf_emit_add(&l.e, wf_emit_add(&l.e, l.x, v), v), "y");
    c = lab_close(&l);
    assert_int_equal(count_op(c->graph, "Chain"), 1);
    assert_int_equal(steps_of(c->graph), 4);
    wf_compiled_free(&c);
}

/* Few elements that repeat, and what repeats along two axes with one between them. */
static void what_repeats_in_another_way_is_no_input(void **state)
{
    static const int64_t dims[][4] = {{1, 7, 1, 16}, {1, 1, 6, 1}, {1, 7, 1, 1}, {1, 7, 6, 1}};
    lab l;
    wf_value *v;
    wf_compiled *c;

    (void)state;
    for (size_t i = 0; i < WF_COUNT(dims); i++) {
        lab_open(&l, 4, (const int64_t[]){-1, 7, 6, 16});
        v = wf_emit_add(&l.e, l.x, lab_variable(&l, "w", 4, dims[i]));
        lab_output(&l, wf_emit_unary(&l.e, "Tanh", v), "y");
        c = lab_close(&l);
        assert_int_equal(count_op(c->graph, "Chain"), 0);
        wf_compiled_free(&c);
    }
}

static void a_value_that_is_read_twice_ends_a_chain(void **state)
{
    lab l;
    wf_value *v;
    wf_compiled *c;

    (void)state;
    lab_open(&l, 3, three_axes);
    v = wf_emit_exp(&l.e, wf_emit_neg(&l.e, l.x));
    lab_output(&l, v, "middle");
    lab_output(&l, wf_emit_unary(&l.e, "Tanh", wf_emit_neg(&l.e, v)), "y");
    c = lab_close(&l);
    assert_int_equal(count_op(c->graph, "Chain"), 2);
    assert_int_equal(steps_of(c->graph), 4);
    wf_compiled_free(&c);

    lab_open(&l, 3, three_axes); /* a column is spread along the inner axis: no step of it */
    v = wf_emit_add(&l.e, l.x, lab_variable(&l, "column", 2, (const int64_t[]){2, 1}));
    lab_output(&l, wf_emit_unary(&l.e, "Tanh", v), "y");
    c = lab_close(&l);
    assert_int_equal(count_op(c->graph, "Chain"), 0);
    wf_compiled_free(&c);
}

/* More steps than one chain holds, and more inputs. */
static void long_chains_are_cut(void **state)
{
    lab l;
    wf_value *v;
    wf_compiled *c;
    char name[16];

    (void)state;
    lab_open(&l, 3, three_axes);
    v = l.x;
    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof name, "row%d", i);
        v = wf_emit_add(&l.e, v, lab_variable(&l, name, 1, (const int64_t[]){3}));
        v = wf_emit_unary(&l.e, "Tanh", v);
    }
    lab_output(&l, v, "y");
    c = lab_close(&l);
    assert_int_equal(steps_of(c->graph), 40);
    assert_int_equal(count_op(c->graph, "Chain"), c->graph->n_nodes);
    wf_compiled_free(&c);
}

static wf_compiled *compile_recurrent(const char *op, int64_t gates, float clip)
{
    lab l;
    wf_value *v;
    wf_attr attrs[2] = {wf_attr_int("hidden_size", 4), wf_attr_float("clip", clip)};

    lab_open(&l, 3, three_axes);
    v = wf_emit_op(&l.e, op, 3,
                   (wf_value *[]){l.x, lab_variable(&l, "w", 3, (const int64_t[]){1, 4 * gates, 3}),
                                  lab_variable(&l, "r", 3, (const int64_t[]){1, 4 * gates, 4})},
                   clip > 0 ? 2 : 1, attrs);
    return lab_close_grad(&l, v);
}

/* Its gradient takes what it kept; with clip it would not tell what was cut. */
static void a_recurrence_in_training_keeps_its_activations(void **state)
{
    static const struct {
        const char *op, *keep, *grad;
        int64_t gates;
    } of[] = {{"LSTM", "LSTMKeep", "LSTMGrad", 4}, {"GRU", "GRUKeep", "GRUGrad", 3}};

    (void)state;
    for (size_t i = 0; i < WF_COUNT(of); i++) {
        wf_compiled *c = compile_recurrent(of[i].op, of[i].gates, 0);

        assert_int_equal(count_op(c->graph, of[i].keep), 1);
        assert_int_equal(count_op(c->graph, of[i].op), 0);
        assert_int_equal(count_op(c->graph, of[i].grad), 1);
        wf_compiled_free(&c);
        c = compile_recurrent(of[i].op, of[i].gates, 0.5f);
        assert_int_equal(count_op(c->graph, of[i].keep), 0);
        assert_int_equal(count_op(c->graph, of[i].op), 1);
        wf_compiled_free(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_linear_layer_is_one_node),
        cmocka_unit_test(a_gemm_takes_its_relu_in),
        cmocka_unit_test(a_product_takes_the_gradient_of_relu_in),
        cmocka_unit_test(a_gradient_that_others_read_stays),
        cmocka_unit_test(what_else_reads_a_product_keeps_it),
        cmocka_unit_test(other_sums_are_no_bias),
        cmocka_unit_test(elementwise_operations_make_a_chain),
        cmocka_unit_test(what_repeats_is_read_in_a_chain),
        cmocka_unit_test(what_repeats_inside_is_read_in_a_chain),
        cmocka_unit_test(what_repeats_in_another_way_is_no_input),
        cmocka_unit_test(a_value_that_is_read_twice_ends_a_chain),
        cmocka_unit_test(long_chains_are_cut),
        cmocka_unit_test(a_recurrence_in_training_keeps_its_activations),
        cmocka_unit_test(an_export_has_onnx_operations_alone),
    };

    return lab_run(tests);
}
