/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/compile_exporter.c - what exporters do to a model is found and said, once each, and a
 * model that is as it was written gets no warning. The small models have the names and the
 * structure of files of torch 2.15 and tf2onnx 1.17. */
#include "tests/unit/compile_util.h"

#define DIMS(...)                                                                                  \
    (uint32_t) WF_COUNT(((const int64_t[]){__VA_ARGS__})), (const int64_t[])                       \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#define ADD(g, op, name, ...)                                                                      \
    add_node((g), (op), (name), WF_COUNT(((wf_value *[]){__VA_ARGS__})),                           \
             (wf_value *[]){__VA_ARGS__})

/* A file of `producer`, with one input x. */
static wf_graph *new_file(const char *producer, wf_value **x, uint32_t rank, const int64_t dims[])
{
    wf_graph *g = NULL;
    wf_err err = {0};

    must(wf_graph_new("main_graph", &g, &err), &err);
    g->origin.producer = producer;
    g->origin.version = "2.15.0";
    g->origin.opset = 18;
    *x = add_input(g, "x", WF_F32, rank, dims);
    return g;
}

static wf_value *add_node(wf_graph *g, const char *op, const char *name, size_t n,
                          wf_value *const in[])
{
    wf_value *out = NULL;
    wf_node *node = NULL;
    wf_err err = {0};

    must(wf_graph_add_value_like(g, "y", &out, &err), &err);
    must(wf_graph_add_node(g, wf_op_find("", op), name, (uint32_t)n, in, 1, &out, &node, &err),
         &err);
    return out;
}

/* The graph with y for its output, compiled as `weft graph` does; the graph is freed. */
static wf_compiled *read_file(wf_graph *g, wf_value *y)
{
    wf_compile_spec spec = {.graph = g, .mode = WF_COMPILE_RUN, .warns_of_export = true};
    wf_compiled *c;
    wf_err err = {0};

    must(wf_graph_add_output(g, y, &err), &err);
    c = compile(&spec);
    wf_graph_free(&g);
    return c;
}

#define assert_warns(c, ...)                                                                       \
    check_warnings((c), WF_COUNT(((const char *[]){__VA_ARGS__})), (const char *[]){__VA_ARGS__})

/* Just these warnings, in this order. */
static void check_warnings(wf_compiled *c, size_t n, const char *const parts[])
{
    for (size_t i = 0; i < c->n_warnings; i++)
        if (i >= n || !strstr(c->warnings[i], parts[i]))
            fail_msg("unexpected: %s", c->warnings[i]);
    if (c->n_warnings != n)
        fail_msg("%zu warnings, %zu are wanted, among them: %s", c->n_warnings, n, parts[n - 1]);
    wf_compiled_free(&c);
}

static void assert_quiet(wf_compiled *c)
{
    if (c->n_warnings)
        fail_msg("unexpected: %s", c->warnings[0]);
    wf_compiled_free(&c);
}

/* x [batch, 1, 6, 6] -> Conv -> Relu, with weights of these names. */
static wf_compiled *conv(const char *producer, const char *node, const char *weight,
                         const char *bias)
{
    wf_value *x, *y;
    wf_graph *g = new_file(producer, &x, DIMS(-1, 1, 6, 6));
    wf_value *w = add_variable(g, weight, DIMS(2, 1, 3, 3)), *b = add_variable(g, bias, DIMS(2));

    y = ADD(g, "Conv", node, x, w, b);
    return read_file(g, ADD(g, "Relu", "relu", y));
}

static void a_convolution_of_the_model_is_no_folded_one(void **state)
{
    (void)state;
    assert_quiet(conv("pytorch", "node_conv2d", "c.weight", "c.bias"));
    assert_quiet(conv("pytorch", "/c/Conv", "c.weight", "c.bias"));
    assert_quiet(conv("someone", "c", "w", "b"));
}

static void folded_batch_normalization_is_said(void **state)
{
    (void)state;
    assert_warns(conv("pytorch", "node_Conv_12", "c.weight", "c.bias"),
                 "no BatchNormalization in the file: PyTorch's exporter (dynamo) seems to have "
                 "folded it into other layers (\"node_Conv_12\"), which trains another model; "
                 "export model.train() with optimize=False");
    assert_warns(conv("pytorch", "/c/Conv", "onnx::Conv_27", "onnx::Conv_28"),
                 "(TorchScript) seems to have folded it into other layers (\"/c/Conv\"), which "
                 "trains another model; export with training=TrainingMode.TRAINING and "
                 "do_constant_folding=False",
                 "2 weights have names that the exporter made up (\"onnx::Conv_27\")");
    assert_warns(conv("tf2onnx", "s/b1/batchnorm/mul_1", "s/c/ReadVariableOp:0", "const_fold__8"),
                 "no BatchNormalization in the file: tf2onnx seems to have folded it into other "
                 "layers (\"s/b1/batchnorm/mul_1\"), which trains another model; export the Keras "
                 "model with weft_export.py",
                 "a Dropout of the model is not in the file");
}

/* Keras on PyTorch: x - mean, times what was 1 / sqrt(variance), both folded. */
static void a_written_out_normalization_is_said(void **state)
{
    wf_value *x, *y;
    wf_graph *g = new_file("pytorch", &x, DIMS(-1, 4));

    (void)state;
    y = ADD(g, "Sub", "/Sub", x, add_variable(g, "onnx::Sub_1", DIMS(1, 4)));
    y = ADD(g, "Mul", "/Mul", y, add_variable(g, "onnx::Mul_2", DIMS(1, 4)));
    assert_warns(read_file(g, y), "seems to have folded it into other layers (\"/Sub\")",
                 "2 weights have names");
}

/* BatchNormalization by running values, after it a Dropout if that is wanted. */
static wf_compiled *norm(const char *producer, const char *node, bool dropout)
{
    wf_value *x, *y;
    wf_graph *g = new_file(producer, &x, DIMS(-1, 4));
    wf_value *mean = add_variable(g, "n.running_mean", DIMS(4));
    wf_value *var = add_variable(g, "n.running_var", DIMS(4));

    mean->variable = var->variable = WF_VAR_NOT;
    for (int i = 0; i < 4; i++)
        wf_f32_mut(var->known)[i] = 1;
    y = ADD(g, "BatchNormalization", node, x, add_variable(g, "n.weight", DIMS(4)),
            add_variable(g, "n.bias", DIMS(4)), mean, var);
    if (dropout)
        y = ADD(g, "Dropout", "drop", y);
    return read_file(g, y);
}

static void an_export_for_inference_is_said(void **state)
{
    wf_compiled *c;

    (void)state;
    assert_warns(norm("pytorch", "/n/BatchNormalization", false),
                 "BatchNormalization is frozen and Dropout is absent: exported for inference?");
    assert_warns(norm("pytorch", "node__native_batch_norm_legit_no_training__0", false),
                 "exported for inference?");
    assert_quiet(norm("pytorch", "/n/BatchNormalization", true));
    /* dynamo writes this of a model in train mode. */
    assert_quiet(norm("pytorch", "node__native_batch_norm_legit_functional__0", false));
    c = norm("pytorch", "/n/BatchNormalization", true);
    assert_int_equal(c->source.batch_norm, WF_NORM_INFERENCE);
    assert_string_equal(c->source.inputs, "x[batch,4]");
    assert_int_equal(c->source.n_variables, 2);
    assert_int_equal(c->source.elems, 8);
    assert_int_equal(c->source.bytes, 32);
    wf_compiled_free(&c);
}

static void merged_initializers_are_said(void **state)
{
    wf_value *x, *y, *scale, *shift, *w;
    wf_graph *g = new_file("pytorch", &x, DIMS(-1, 4));

    (void)state;
    scale = add_variable(g, "n1.weight", DIMS(4));
    shift = add_variable(g, "n1.bias", DIMS(4));
    w = add_variable(g, "fc.weight", DIMS(4, 4));
    y = ADD(g, "LayerNormalization", "node_layer_norm", x, scale, shift);
    /* Through a copy, as TorchScript merges. */
    y = ADD(g, "LayerNormalization", "node_layer_norm_1", y, ADD(g, "Identity", "copy", scale),
            shift);
    y = ADD(g, "MatMul", "node_matmul", y, w);
    assert_warns(read_file(g, y),
                 "2 initializers belong to several layers and are trained as one (\"n1.weight\": "
                 "layers \"node_layer_norm\", \"node_layer_norm_1\"): right if the model shares "
                 "them; otherwise PyTorch's exporter (dynamo) merged equal ones; export");
}

/* ids [batch] -> rows of a table -> scores of all rows, by `head` or the table itself. */
static wf_compiled *embedding(const char *head)
{
    wf_value *x, *y, *ids, *table, *w;
    wf_graph *g = new_file("pytorch", &x, DIMS(-1));
    const int64_t perm[] = {1, 0};
    wf_err err = {0};
    wf_emit e;

    ids = ADD(g, "Cast", "/Cast", x);
    must(wf_node_set_int(g, ids->producer, "to", WF_I64, &err), &err);
    table = add_variable(g, "e.weight", DIMS(5, 3));
    y = ADD(g, "Gather", "/e/Gather", table, ids);
    e = wf_emit_begin(g, "t", &err);
    w = head ? add_variable(g, head, DIMS(3, 5)) : wf_emit_transpose(&e, table, perm);
    must(wf_emit_end(&e), &err);
    for (int i = 0; head && i < 5; i++)
        for (int k = 0; k < 3; k++)
            wf_f32_mut(w->known)[k * 5 + i] = wf_f32(table->known)[i * 3 + k];
    return read_file(g, ADD(g, "MatMul", "/h/MatMul", y, w));
}

static void a_tied_table_that_became_two_is_said(void **state)
{
    (void)state;
    assert_quiet(embedding(NULL));
    assert_quiet(embedding("h.weight")); /* equal, and of a name of its own: the model's affair */
    assert_warns(embedding("onnx::MatMul_11"),
                 "\"onnx::MatMul_11\" is a transposed copy of \"e.weight\": one parameter of the "
                 "model is trained as two; export",
                 "1 weight has a name");
}

static wf_compiled *two_layers(const char *producer, bool bias)
{
    wf_value *x, *y;
    wf_graph *g = new_file(producer, &x, DIMS(-1, 4));

    y = ADD(g, "MatMul", "d/MatMul", x, add_variable(g, "d/ReadVariableOp:0", DIMS(4, 4)));
    y = ADD(g, "Relu", "d/Relu", y);
    y = ADD(g, "MatMul", "e/MatMul", y, add_variable(g, "e/ReadVariableOp:0", DIMS(4, 4)));
    if (bias)
        y = ADD(g, "Add", "e/Add", y, add_variable(g, "e/bias/ReadVariableOp:0", DIMS(4)));
    return read_file(g, y);
}

static void a_file_without_biases_is_said(void **state)
{
    (void)state;
    assert_warns(
        two_layers("tf2onnx", false),
        "no layer has a bias (2 with weights): tf2onnx leaves out biases that are zero, as "
        "in a model that was not trained; export the Keras model with weft_export.py",
        "2 weights have names that the exporter made up (\"d/ReadVariableOp:0\")");
    assert_warns(two_layers("tf2onnx", true), "3 weights have names");
    assert_quiet(two_layers("pytorch", false));
}

static void a_file_that_lists_its_variables_is_believed(void **state)
{
    wf_value *x, *w;
    wf_graph *g = new_file("pytorch", &x, DIMS(-1, 4));

    (void)state;
    g->origin.names_variables = true;
    w = add_variable(g, "onnx::MatMul_1", DIMS(4, 4));
    assert_quiet(
        read_file(g, ADD(g, "MatMul", "/b/MatMul", ADD(g, "MatMul", "/a/MatMul", x, w), w)));
}

/* x * number, summed with x w: the loss. */
static wf_graph *scaled(const char *number)
{
    static const char *numbers[1];
    wf_value *x, *y, *scale;
    wf_graph *g = new_file("pytorch", &x, DIMS(-1, 4));
    wf_err err = {0};
    wf_emit e = wf_emit_begin(g, "loss", &err);

    scale = add_variable(g, number, DIMS(1));
    scale->variable = WF_VAR_NOT;
    numbers[0] = number;
    g->origin.numbers = numbers;
    g->origin.n_numbers = 1;
    y = ADD(g, "MatMul", "node_matmul", x, add_variable(g, "fc.weight", DIMS(4, 4)));
    y = wf_emit_reduce_mean(&e, ADD(g, "Mul", "node_mul", y, scale), 0, NULL, false);
    must(wf_emit_end(&e), &err);
    must(wf_graph_rename_value(g, y, "loss", &err), &err);
    must(wf_graph_add_output(g, y, &err), &err);
    return g;
}

static void a_number_is_trained_when_the_job_names_it(void **state)
{
    static const char *const patterns[] = {"val_*"};
    wf_graph *g = scaled("val_69");
    wf_compile_spec spec = {.graph = g,
                            .mode = WF_COMPILE_TRAIN,
                            .strategy = wf_strategy_find("parameter_server"),
                            .n_ps = 1};
    wf_compiled *c = compile(&spec);
    uint64_t digest = c->digest;
    wf_err err = {0};

    (void)state;
    assert_int_equal(count_op(c->graph, "Push"), 1);
    assert_warns(c, "\"val_69\" has one element and a name that the exporter made up: it is a "
                    "constant; if it is to be trained, name it under \"trainable\"");
    spec.trainable = patterns;
    spec.n_trainable = 1;
    c = compile(&spec);
    assert_int_equal(count_op(c->graph, "Push"), 2);
    assert_true(wf_compiled_find(c, "val_69") >= 0);
    assert_true(c->digest != digest);
    digest = c->digest;
    wf_compiled_free(&c);
    spec.mode = WF_COMPILE_EVAL;
    c = compile(&spec);
    assert_true(c->digest == digest);
    wf_compiled_free(&c);
    spec.freeze = patterns; /* has the last word */
    spec.n_freeze = 1;
    spec.mode = WF_COMPILE_TRAIN;
    c = compile(&spec);
    assert_int_equal(count_op(c->graph, "Push"), 1);
    wf_compiled_free(&c);
    spec.trainable = (const char *const[]){"vall_*"};
    spec.trainable_line = 7;
    spec.file = "job.yaml";
    assert_int_equal(refused(&spec, &err), WF_USAGE);
    assert_says(err, "job.yaml:7: trainable: \"vall_*\" matches no constant or variable of floats; "
                     "there is \"val_69\"");
    wf_graph_free(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_convolution_of_the_model_is_no_folded_one),
        cmocka_unit_test(folded_batch_normalization_is_said),
        cmocka_unit_test(a_written_out_normalization_is_said),
        cmocka_unit_test(an_export_for_inference_is_said),
        cmocka_unit_test(merged_initializers_are_said),
        cmocka_unit_test(a_tied_table_that_became_two_is_said),
        cmocka_unit_test(a_file_without_biases_is_said),
        cmocka_unit_test(a_file_that_lists_its_variables_is_believed),
        cmocka_unit_test(a_number_is_trained_when_the_job_names_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
