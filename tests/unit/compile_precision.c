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

static void a_concat_rounds_what_another_reader_wants_in_float32(void **state)
{
    wf_graph *g = make((options){.width = WIDTH, .read_apart = true});
    wf_compiled *c = compiled(g, WF_BF16, 64);

    (void)state;
    assert_int_equal(count(c, "Linear", WF_BF16), 1); /* the other half */
    assert_int_equal(count(c, "Relu", WF_F32), 1);
    assert_int_equal(count(c, "Concat", WF_BF16), 1);
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

/* Channels of images that a network of two convolutions has. */
enum { CHANNELS = 16, IMAGE = 8 };

static wf_value *convolved(wf_graph *g, wf_emit *e, wf_value *x, const char *name, int64_t groups)
{
    const int64_t dims[] = {CHANNELS, CHANNELS / groups, 3, 3};
    const wf_attr attrs[] = {wf_attr_int("group", groups),
                             wf_attr_ints("pads", 4, (const int64_t[]){1, 1, 1, 1})};
    wf_value *in[] = {x, add_variable(g, name, 4, dims)};

    return wf_emit_op(e, "Conv", 2, in, 2, attrs);
}

static wf_value *normalised(wf_graph *g, wf_emit *e, wf_value *x)
{
    static const char *const names[] = {"scale", "bias", "mean", "variance"};
    const int64_t dims[] = {CHANNELS};
    wf_value *in[5] = {x};

    for (int i = 0; i < 4; i++)
        in[1 + i] = add_variable(g, names[i], 1, dims);
    return wf_emit_op(e, "BatchNormalization", 5, in, 0, NULL);
}

/* z = conv(relu(norm(conv(x)))); mean(z^2). The first convolution has groups. */
static wf_graph *make_convolved(int64_t groups)
{
    wf_err err = {0};
    wf_graph *g = NULL;
    wf_value *x;
    wf_emit e;

    must(wf_graph_new("m", &g, &err), &err);
    x = add_input(g, "x", WF_F32, 4, (const int64_t[]){-1, CHANNELS, IMAGE, IMAGE});
    e = wf_emit_begin(g, "m", &err);
    x = normalised(g, &e, convolved(g, &e, x, "a", groups));
    x = convolved(g, &e, wf_emit_unary(&e, "Relu", x), "b", 1);
    x = wf_emit_reduce_mean(&e, wf_emit_mul(&e, x, x), 0, NULL, false);
    must(wf_emit_end(&e), &err);
    must(wf_graph_rename_value(g, x, "loss", &err), &err);
    must(wf_graph_add_output(g, x, &err), &err);
    return g;
}

static void for_gpus(wf_compiled *c)
{
    wf_err err = {0};

    must(wf_narrow_for_gpus(c->graph, WF_BF16, &err), &err);
    must(wf_infer(c->graph, &err), &err);
}

static void gpus_keep_what_convolutions_make(void **state)
{
    wf_graph *g = make_convolved(1);
    wf_compiled *c = compiled(g, WF_BF16, 64);

    (void)state;
    assert_int_equal(count(c, "Conv", WF_F32), 2);
    assert_int_equal(count(c, "ConvDataGrad", WF_F32), 1);
    assert_int_equal(count(c, "BatchNormalizationTrain", WF_BF16), 0); /* Relu alone reads it */
    assert_int_equal(count(c, "Relu", WF_BF16), 1);
    assert_int_equal(count(c, "ReluGrad", WF_F32), 1);
    assert_int_equal(count(c, "BatchNormalizationGrad", WF_BF16), 1); /* a factor */
    for_gpus(c);
    assert_int_equal(count(c, "Conv", WF_BF16), 2);
    assert_int_equal(count(c, "ConvDataGrad", WF_BF16), 1);
    assert_int_equal(count(c, "ConvWeightGrad", WF_BF16), 0);
    assert_int_equal(count(c, "BatchNormalizationTrain", WF_BF16), 1); /* but not the moments */
    assert_int_equal(count(c, "Relu", WF_BF16), 1);
    assert_int_equal(count(c, "ReluGrad", WF_BF16), 1);
    assert_int_equal(count(c, "BatchNormalizationGrad", WF_BF16), 1);
    assert_int_equal(count(c, "Mul", WF_F32), 1);  /* the square, of which the loss is the mean */
    assert_int_equal(count(c, "Mul", WF_BF16), 1); /* of its gradient */
    for (size_t i = 0; i < c->graph->n_outputs; i++)
        assert_int_equal(c->graph->outputs[i]->dtype, WF_F32);
    wf_compiled_free(&c);
    wf_graph_free(&g);
}

/* A convolution that does not round its factors makes float32, and so do those behind it. */
static void gpus_keep_no_more_of_other_convolutions(void **state)
{
    wf_graph *g = make_convolved(CHANNELS);
    wf_compiled *c = compiled(g, WF_BF16, 64);

    (void)state;
    for_gpus(c);
    assert_int_equal(count(c, "Conv", WF_F32), 1);
    assert_int_equal(count(c, "Conv", WF_BF16), 1);
    assert_int_equal(count(c, "BatchNormalizationTrain", WF_BF16), 0);
    assert_int_equal(count(c, "Relu", WF_BF16), 1);
    wf_compiled_free(&c);
    wf_graph_free(&g);
}

static void gpus_keep_what_products_make(void **state)
{
    wf_graph *g = make((options){.width = WIDTH});
    wf_compiled *c = compiled(g, WF_BF16, 64);

    (void)state;
    assert_int_equal(count(c, "MatMul", WF_F32), 1);
    for_gpus(c);
    assert_int_equal(count(c, "MatMul", WF_BF16), 1);
    assert_int_equal(count(c, "Mul", WF_F32), 1);  /* the square, of which the loss is the mean */
    assert_int_equal(count(c, "Mul", WF_BF16), 1); /* of its gradient */
    assert_int_equal(count(c, "Gemm", WF_F32), 4); /* Slice wants float32, and variables do */
    assert_int_equal(count(c, "ReluGrad", WF_BF16), 2);
    for (size_t i = 0; i < c->graph->n_nodes; i++) /* gradients of variables stay float32 */
        if (strcmp(c->graph->nodes[i]->op->name, "Push") == 0)
            assert_int_equal(c->graph->nodes[i]->in[0]->dtype, WF_F32);
    for (size_t i = 0; i < c->graph->n_outputs; i++)
        assert_int_equal(c->graph->outputs[i]->dtype, WF_F32);
    wf_compiled_free(&c);
    wf_graph_free(&g);
}

/* A product that rounds no factors makes float32. */
static void gpus_keep_no_more_of_small_products(void **state)
{
    wf_graph *g = make((options){.width = 16});
    wf_compiled *c = compiled(g, WF_BF16, 64);

    (void)state;
    for_gpus(c);
    assert_int_equal(count_all(c, WF_BF16), 0);
    wf_compiled_free(&c);
    wf_graph_free(&g);
}

/* y = attention of x a, x b and x c; mean(norm(y + r)^2), where r is fed: a sum with what is
 * float32, and the norm of it, stay so, and the gradient that comes back through the norm does. */
static wf_graph *make_attentive(void)
{
    static const int64_t heads[] = {0, WIDTH, 4, WIDTH / 4}, to_front[] = {0, 2, 1, 3};
    const int64_t dims[] = {-1, WIDTH, WIDTH};
    const wf_attr axis = wf_attr_int("axis", -1);
    wf_err err = {0};
    wf_graph *g = NULL;
    wf_value *x, *r, *in[3], *y;
    wf_emit e;

    must(wf_graph_new("m", &g, &err), &err);
    x = add_input(g, "x", WF_F32, 3, dims);
    r = add_input(g, "r", WF_F32, 3, dims);
    e = wf_emit_begin(g, "m", &err);
    for (int i = 0; i < 3; i++) {
        const char name[] = {(char)('a' + i), 0};

        y = wf_emit_matmul(&e, x, weights(g, name, WIDTH, WIDTH));
        in[i] = wf_emit_transpose(&e, wf_emit_reshape(&e, y, 4, heads), to_front);
    }
    y = wf_emit_transpose(&e, wf_emit_op(&e, "DotAttention", 3, in, 0, NULL), to_front);
    y = wf_emit_reshape(&e, y, 3, (const int64_t[]){0, WIDTH, WIDTH});
    y = wf_emit_matmul(&e, y, weights(g, "o", WIDTH, WIDTH));
    in[0] = wf_emit_add(&e, y, r);
    in[1] = add_variable(g, "scale", 1, dims + 2);
    y = wf_emit_op(&e, "LayerNormalization", 2, in, 1, &axis);
    y = wf_emit_reduce_mean(&e, wf_emit_mul(&e, y, y), 0, NULL, false);
    must(wf_emit_end(&e), &err);
    must(wf_graph_rename_value(g, y, "loss", &err), &err);
    must(wf_graph_add_output(g, y, &err), &err);
    return g;
}

static const wf_node *node_of(const wf_compiled *c, const char *op)
{
    for (size_t i = 0; i < c->graph->n_nodes; i++)
        if (strcmp(c->graph->nodes[i]->op->name, op) == 0)
            return c->graph->nodes[i];
    fail_msg("there is no %s", op);
    return NULL;
}

/* In float32 no kernel would read them. */
static void the_gradient_of_attention_has_what_the_forward_pass_knew(void **state)
{
    wf_graph *g = make_attentive();
    wf_compiled *c = compiled(g, WF_BF16, 64), *wide = compiled(g, WF_NONE, 64);
    const wf_node *n = node_of(c, "DotAttention"), *grad = node_of(c, "DotAttentionGrad");

    (void)state;
    assert_true(wf_node_has_out(n, 1));
    assert_ptr_equal(grad->in[5], n->out[0]);
    assert_ptr_equal(grad->in[6], n->out[1]);
    assert_false(wf_node_has_out(node_of(wide, "DotAttention"), 1));
    assert_false(wf_node_has_in(node_of(wide, "DotAttentionGrad"), 5));
    wf_compiled_free(&wide);
    wf_compiled_free(&c);
    wf_graph_free(&g);
}

static void gpus_keep_attention_narrow_from_product_to_product(void **state)
{
    wf_graph *g = make_attentive();
    wf_compiled *c = compiled(g, WF_BF16, 64);

    (void)state;
    for_gpus(c);
    assert_int_equal(count(c, "MatMul", WF_BF16), 4);
    assert_int_equal(count(c, "DotAttention", WF_BF16), 1);
    assert_int_equal(count(c, "DotAttentionGrad", WF_BF16), 3);
    assert_int_equal(count(c, "Transpose", WF_F32), 0);
    assert_int_equal(count(c, "Add", WF_F32), 2); /* with the residual; of the square's gradient */
    assert_int_equal(count(c, "Add", WF_BF16), 0);
    assert_int_equal(count(c, "LayerNormalization", WF_F32), 1);
    assert_int_equal(count(c, "DotAttention", WF_F32), 1); /* the sums of its rows */
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

static void what_gpus_keep_goes_through_a_file_too(void **state)
{
    wf_graph *g = make_convolved(1), *read = NULL;
    wf_compiled *c = compiled(g, WF_BF16, 64), again = {0};
    wf_bytes bytes = {0};
    wf_err err;

    (void)state;
    must(wf_onnx_encode(c->graph, &bytes, &err), &err);
    must(wf_onnx_decode(bytes.data, bytes.size, NULL, &read, &err), &err);
    again.graph = read;
    assert_int_equal(count_all(&again, WF_BF16), count_all(c, WF_BF16));
    assert_int_equal(count(&again, "Relu", WF_BF16), 1);
    for_gpus(c);
    for_gpus(&again);
    assert_int_equal(count_all(&again, WF_BF16), count_all(c, WF_BF16));
    assert_int_equal(count(&again, "Conv", WF_BF16), 2);
    wf_bytes_close(&bytes);
    wf_graph_free(&read);
    wf_compiled_free(&c);
    wf_graph_free(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(factors_are_kept_narrow_and_all_else_float32),
        cmocka_unit_test(a_concat_rounds_what_another_reader_wants_in_float32),
        cmocka_unit_test(products_that_round_nothing_ask_for_nothing),
        cmocka_unit_test(gpus_keep_what_convolutions_make),
        cmocka_unit_test(gpus_keep_no_more_of_other_convolutions),
        cmocka_unit_test(gpus_keep_what_products_make),
        cmocka_unit_test(gpus_keep_no_more_of_small_products),
        cmocka_unit_test(gpus_keep_attention_narrow_from_product_to_product),
        cmocka_unit_test(the_gradient_of_attention_has_what_the_forward_pass_knew),
        cmocka_unit_test(narrow_nodes_go_through_a_file),
        cmocka_unit_test(what_gpus_keep_goes_through_a_file_too),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
