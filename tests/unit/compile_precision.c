/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/compile_precision.c - which values a job in bfloat16 keeps in that type. */
#include "common/graph/narrow.h"
#include "common/onnx/onnx.h"
#include "tests/unit/compile_util.h"

enum { WIDTH = 256 };

typedef struct options {
    bool read_apart; /* by an operation that wants float32 */
    int64_t width;
} options;

static wf_value *weights(wf_graph *g, const char *name, int64_t rows, int64_t columns)
{
    return add_variable(g, name, 2, (const int64_t[]){rows, columns});
}

/* mean((concat(relu(x a), relu(x b)) c)^2), and if asked for the largest element of relu(x a). */
static wf_graph *make(options o)
{
    int64_t n = o.width;
    wf_err err = {0};
    wf_graph *g = NULL;
    wf_value *x, *half[2], *y;
    wf_attr axis = wf_attr_int("axis", 1);
    wf_emit e;

    must(wf_graph_new("m", &g, &err), &err);
    x = add_input(g, "x", WF_F32, 2, (const int64_t[]){-1, n});
    e = wf_emit_begin(g, "m", &err);
    half[0] = wf_emit_unary(&e, "Relu", wf_emit_matmul(&e, x, weights(g, "a", n, n)));
    half[1] = wf_emit_unary(&e, "Relu", wf_emit_matmul(&e, x, weights(g, "b", n, n)));
    y = wf_emit_matmul(&e, wf_emit_op(&e, "Concat", 2, half, 1, &axis), weights(g, "c", 2 * n, n));
    y = wf_emit_reduce_mean(&e, wf_emit_mul(&e, y, y), 0, NULL, false);
    if (o.read_apart)
        y = wf_emit_add(&e, y,
                        wf_emit_reduce_mean(&e, wf_emit_unary(&e, "Cos", half[0]), 0, NULL, false));
    must(wf_emit_end(&e), &err);
    must(wf_graph_rename_value(g, y, "loss", &err), &err);
    must(wf_graph_add_output(g, y, &err), &err);
    return g;
}

static wf_compiled *compiled(const wf_graph *g, wf_dtype narrow, int64_t batch)
{
    wf_compile_spec spec = {.graph = g,
                            .mode = WF_COMPILE_TRAIN,
                            .strategy = wf_strategy_find("parameter_server"),
                            .n_ps = 1,
                            .batch = batch,
                            .narrow = narrow};

    return compile(&spec);
}

/* Values of a type that nodes of the operation make. */
static int count(const wf_compiled *c, const char *op, wf_dtype dtype)
{
    int n = 0;

    for (size_t i = 0; i < c->graph->n_nodes; i++)
        for (uint32_t k = 0; k < c->graph->nodes[i]->n_out; k++)
            n += strcmp(c->graph->nodes[i]->op->name, op) == 0 && c->graph->nodes[i]->out[k] &&
                 c->graph->nodes[i]->out[k]->dtype == dtype;
    return n;
}

static int count_all(const wf_compiled *c, wf_dtype dtype)
{
    int n = 0;

    for (size_t i = 0; i < c->graph->n_values; i++)
        n += c->graph->values[i]->dtype == dtype;
    return n;
}

static void factors_are_kept_narrow_and_all_else_float32(void **state)
{
    wf_graph *g = make((options){.width = WIDTH});
    wf_compiled *c = compiled(g, WF_BF16, 64), *wide = compiled(g, WF_NONE, 64);

    (void)state;
    assert_int_equal(count(c, "Linear", WF_BF16), 2);
    assert_int_equal(count(c, "Concat", WF_BF16), 1);
    assert_int_equal(count(c, "MatMul", WF_F32), 1); /* the last, which nothing multiplies */
    assert_int_equal(count(c, "Split", WF_BF16), 0); /* of the gradient: only ReluGrad reads it */
    assert_int_equal(count(c, "ReluGrad", WF_BF16), 2);
    for (size_t i = 0; i < c->graph->n_nodes; i++) {
        const wf_node *n = c->graph->nodes[i];

        if (strcmp(n->op->name, "Push") == 0)
            assert_int_equal(n->in[0]->dtype, WF_F32);
        if (strcmp(n->op->name, "Concat") == 0) /* moves whatever it is given */
            assert_int_equal(wf_node_narrow(n), WF_NONE);
        if (strcmp(n->op->name, "ReluGrad") == 0)
            assert_int_equal(wf_node_narrow_out(n), 1);
    }
    for (size_t i = 0; i < c->graph->n_outputs; i++)
        assert_int_equal(c->graph->outputs[i]->dtype, WF_F32);
    assert_int_equal(count_all(wide, WF_BF16), 0);
    assert_int_equal(c->digest, wide->digest); /* the same model */
    wf_compiled_free(&wide);
    wf_compiled_free(&c);
    wf_graph_free(&g);
}

static void a_reader_that_wants_float32_keeps_all_that_is_moved_together_so(void **state)
{
    wf_graph *g = make((options){.width = WIDTH, .read_apart = true});
    wf_compiled *c = compiled(g, WF_BF16, 64);

    (void)state;
    assert_int_equal(count(c, "Linear", WF_BF16), 0);
    assert_int_equal(count(c, "Concat", WF_BF16), 0);
    assert_true(count_all(c, WF_BF16) > 0); /* of the gradients */
    wf_compiled_free(&c);
    wf_graph_free(&g);
}

static void products_that_round_nothing_ask_for_nothing(void **state)
{
    wf_graph *g = make((options){.width = 16});
    wf_compiled *c = compiled(g, WF_BF16, 64), *large = compiled(g, WF_BF16, 64 * 1024);

    (void)state;
    assert_int_equal(count_all(c, WF_BF16), 0);
    assert_true(count_all(large, WF_BF16) > 0);
    wf_compiled_free(&large);
    wf_compiled_free(&c);
    wf_graph_free(&g);
}

/* A graph that is written and read again has the same types. */
static void narrow_nodes_go_through_a_file(void **state)
{
    wf_graph *g = make((options){.width = WIDTH}), *read = NULL;
    wf_compiled *c = compiled(g, WF_BF16, 64), again = {0};
    wf_bytes bytes = {0};
    wf_err err;

    (void)state;
    must(wf_onnx_encode(c->graph, &bytes, &err), &err);
    must(wf_onnx_decode(bytes.data, bytes.size, NULL, &read, &err), &err);
    again.graph = read;
    assert_int_equal(count_all(&again, WF_BF16), count_all(c, WF_BF16));
    assert_int_equal(count(&again, "Concat", WF_BF16), 1);
    wf_bytes_close(&bytes);
    wf_graph_free(&read);
    wf_compiled_free(&c);
    wf_graph_free(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(factors_are_kept_narrow_and_all_else_float32),
        cmocka_unit_test(a_reader_that_wants_float32_keeps_all_that_is_moved_together_so),
        cmocka_unit_test(products_that_round_nothing_ask_for_nothing),
        cmocka_unit_test(narrow_nodes_go_through_a_file),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
