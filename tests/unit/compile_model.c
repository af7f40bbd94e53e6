/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/compile_model.c - layers become the graph, the names and the first weights of Keras.
 */
#include "tests/unit/compile_util.h"
#include <math.h>

static void names_and_shapes_are_kerass(void **state)
{
    wf_model m = mlp();
    wf_compile_spec spec = {.model = &m, .mode = WF_COMPILE_INFER, .batch = 8, .seed = 1};
    wf_compiled *c = compile(&spec);
    static const char *const names[] = {"dense/kernel", "dense/bias", "dense_1/kernel",
                                        "dense_1/bias"};
    static const int64_t dims[][2] = {{784, 128}, {128, 0}, {128, 10}, {10, 0}};

    (void)state;
    assert_int_equal(c->n_variables, 4);
    for (size_t i = 0; i < 4; i++) {
        assert_string_equal(c->variables[i].name, names[i]);
        assert_int_equal(c->variables[i].rank, dims[i][1] ? 2 : 1);
        assert_int_equal(c->variables[i].dims[0], dims[i][0]);
    }
    assert_int_equal(c->n_outputs, 1);
    assert_string_equal(c->outputs[0].name, "output");
    assert_int_equal(c->outputs[0].meaning, WF_MEANS_OUTPUT);
    assert_int_equal(c->n_feeds, 1);
    assert_string_equal(c->feeds[0].name, "x");
    assert_string_equal(c->feeds[0].axes[0].symbol, "batch");
    assert_int_equal(c->feeds[0].axes[0].bound, 8);
    wf_compiled_free(&c);
}

static void first_weights_depend_on_seed_and_name_alone(void **state)
{
    wf_model m = mlp();
    wf_compile_spec spec = {.model = &m, .mode = WF_COMPILE_INFER, .seed = 1};
    wf_compile_spec train = train_spec(&m, 2);
    wf_compiled *a = compile(&spec), *b = compile(&train), *other;
    const wf_tensor *w = a->variables[0].initial;
    float limit = sqrtf(6.0f / (784.0f + 128.0f)), largest = 0.0f;
    double sum = 0.0;

    (void)state;
    for (int64_t i = 0; i < wf_elems(w); i++) {
        largest = fmaxf(largest, fabsf(wf_f32(w)[i]));
        sum += wf_f32(w)[i];
    }
    assert_true(largest <= limit && largest > 0.999f * limit);
    assert_true(fabs(sum / (double)wf_elems(w)) < 0.001);
    for (int64_t i = 0; i < 128; i++)
        assert_true(wf_f32(a->variables[1].initial)[i] == 0.0f);
    assert_memory_equal(w->data, b->variables[wf_compiled_find(b, "dense/kernel")].initial->data,
                        wf_tensor_bytes(w));
    spec.seed = 2;
    other = compile(&spec);
    assert_memory_not_equal(w->data, other->variables[0].initial->data, wf_tensor_bytes(w));
    wf_compiled_free(&a);
    wf_compiled_free(&b);
    wf_compiled_free(&other);
}

static void all_layers_go_together(void **state)
{
    static const int64_t target[] = {4, -1};
    static const wf_conf_input x[] = {{.name = "image", .dims = {4, 6}, .rank = 2, .line = 3}};
    static const wf_conf_option rate[] = {
        {.name = "rate", .kind = WF_CONF_NUMBER, .number = 0.25, .line = 7}};
    static const wf_conf_option shape[] = {
        {.name = "target_shape", .kind = WF_CONF_INTS, .ints = target, .n = 2, .line = 7}};
    static const wf_conf_option wide[] = {
        INT_OPTION("units", 5), {.name = "use_bias", .kind = WF_CONF_BOOL, .i = 0, .line = 7}};
    static const wf_conf_option named[] = {INT_OPTION("units", 3), TEXT_OPTION("name", "head"),
                                           TEXT_OPTION("kernel_initializer", "he_normal")};
    static const wf_conf_option soft[] = {TEXT_OPTION("activation", "softmax")};
    static const wf_conf_item layers[] = {
        {.type = "reshape", .options = shape, .n_options = 1, .line = 5},
        {.type = "dense", .options = wide, .n_options = 2, .line = 5},
        {.type = "flatten", .line = 6},
        {.type = "dropout", .options = rate, .n_options = 1, .line = 6},
        {.type = "dense", .options = named, .n_options = 3, .line = 6},
        {.type = "activation", .options = soft, .n_options = 1, .line = 6},
    };
    wf_model m = {.inputs = x, .n_inputs = 1, .layers = layers, .n_layers = WF_COUNT(layers)};
    wf_compile_spec spec = {.model = &m, .mode = WF_COMPILE_INFER, .seed = 1};
    wf_compiled *c = compile(&spec);
    const wf_value *y = c->graph->outputs[0];

    (void)state;
    assert_int_equal(c->n_variables, 3);
    assert_true(wf_compiled_find(c, "dense/kernel") >= 0);
    assert_true(wf_compiled_find(c, "head/kernel") >= 0);
    assert_true(wf_compiled_find(c, "head/bias") >= 0);
    assert_int_equal(y->rank, 2);
    assert_int_equal(y->axes[1].size, 3);
    assert_int_equal(count_op(c->graph, "Dropout"), 0); /* inference */
    wf_compiled_free(&c);
    spec.mode = WF_COMPILE_TRAIN;
    spec.loss = "sparse_categorical_crossentropy";
    c = compile(&spec);
    assert_int_equal(count_op(c->graph, "Dropout"), 1);
    assert_int_equal(count_op(c->graph, "Softmax"), 0); /* the loss cut in front of it */
    wf_compiled_free(&c);
}

static wf_err refused_layer(const wf_conf_item *layer, wf_status status)
{
    static const wf_conf_input x[] = {{.name = "x", .dims = {6}, .rank = 1, .line = 3}};
    wf_model m = {.file = "j.yaml", .inputs = x, .n_inputs = 1, .layers = layer, .n_layers = 1};
    wf_compile_spec spec = {.model = &m, .mode = WF_COMPILE_INFER};
    wf_err err = {0};

    assert_int_equal(refused(&spec, &err), status);
    assert_says(err, "j.yaml:6");
    return err;
}

static void bad_layers_are_named_with_their_line(void **state)
{
    static const int64_t seven[] = {7};
    const wf_conf_item misspelt =
        LAYER("dense", INT_OPTION("units", 4), TEXT_OPTION("activation", "rellu"));
    const wf_conf_item unknown = LAYER("denze", INT_OPTION("units", 4));
    const wf_conf_item uneven =
        LAYER("reshape",
              {.name = "target_shape", .kind = WF_CONF_INTS, .ints = seven, .n = 1, .line = 7});
    const wf_conf_item huge = LAYER("dense", INT_OPTION("units", 2147483647));
    const wf_conf_item strange =
        LAYER("dense", INT_OPTION("units", 4), TEXT_OPTION("kernel_initializer", "glorot_unifrom"));
    const wf_conf_item lonely = {.type = "dot_interaction", .line = 6};
    wf_err err;

    (void)state;
    err = refused_layer(&lonely, WF_USAGE);
    assert_says(err, "1 features; 2 to 4096");
    err = refused_layer(&misspelt, WF_USAGE);
    assert_says(err, "did you mean \"relu\"");
    err = refused_layer(&unknown, WF_USAGE);
    assert_says(err, "did you mean \"dense\"");
    err = refused_layer(&uneven, WF_USAGE);
    assert_says(err, "holds 7 elements, a record before it 6");
    err = refused_layer(&huge, WF_UNSUPPORTED);
    assert_says(err, "larger than 2 GiB");
    err = refused_layer(&strange, WF_USAGE);
    assert_says(err, "did you mean \"glorot_uniform\"");
}

static wf_compiled *compile_layers(const wf_conf_input *inputs, size_t n_inputs,
                                   const wf_conf_item *layers, size_t n, wf_compile_mode mode)
{
    wf_model m = {.inputs = inputs, .n_inputs = n_inputs, .layers = layers, .n_layers = n};
    wf_compile_spec spec = {.model = &m, .mode = mode, .seed = 1, .loss = "mse"};

    return compile(&spec);
}

#define INTS_OPTION(key, ...)                                                                      \
    {                                                                                              \
        .name = (key), .kind = WF_CONF_INTS, .ints = (const int64_t[]){__VA_ARGS__},               \
        .n = WF_COUNT(((const int64_t[]){__VA_ARGS__})), .line = 7                                 \
    }
#define INPUTS(...)                                                                                \
    {                                                                                              \
        .name = "inputs", .kind = WF_CONF_WORDS, .words = (const char *const[]){__VA_ARGS__},      \
        .n = WF_COUNT(((const char *const[]){__VA_ARGS__})), .line = 7                             \
    }

static void an_image_is_turned_once(void **state)
{
    static const wf_conf_input x[] = {{.name = "x", .dims = {9, 9, 2}, .rank = 3, .line = 3}};
    const wf_conf_item layers[] = {
        LAYER("conv2d", INT_OPTION("filters", 4), INTS_OPTION("kernel_size", 3)),
        {.type = "batch_normalization", .line = 6},
        LAYER("activation", TEXT_OPTION("activation", "relu")),
        {.type = "max_pooling2d", .line = 6},
        LAYER("conv2d", INT_OPTION("filters", 5), INTS_OPTION("kernel_size", 2)),
        {.type = "global_average_pooling2d", .line = 6},
        LAYER("dense", INT_OPTION("units", 2)),
    };
    wf_compiled *c = compile_layers(x, 1, layers, WF_COUNT(layers), WF_COMPILE_INFER);
    int64_t i = wf_compiled_find(c, "conv2d/kernel");

    (void)state;
    assert_int_equal(count_op(c->graph, "Transpose"), 1);
    assert_int_equal(c->variables[i].dims[0], 4); /* as ONNX has it */
    assert_int_equal(c->variables[i].dims[1], 2);
    i = wf_compiled_find(c, "batch_normalization/moving_variance");
    assert_int_equal(c->variables[i].kind, WF_VAR_STATISTIC);
    assert_true(wf_f32(c->variables[i].initial)[0] == 1.0f);
    wf_compiled_free(&c);
}

/* 0.99 of Keras where nothing is said; whoever holds the running values moves them by it. */
static void running_values_move_by_the_momentum_of_their_layer(void **state)
{
    static const wf_conf_input x[] = {{.name = "x", .dims = {4}, .rank = 1, .line = 3}};
    static const wf_conf_option momentum[] = {
        {.name = "momentum", .kind = WF_CONF_NUMBER, .number = 0.75, .line = 7}};
    const wf_conf_item layers[] = {
        LAYER("dense", INT_OPTION("units", 3)),
        {.type = "batch_normalization", .line = 6},
        {.type = "batch_normalization", .options = momentum, .n_options = 1, .line = 7},
    };
    wf_model m = {.inputs = x, .n_inputs = 1, .layers = layers, .n_layers = WF_COUNT(layers)};
    wf_compile_spec spec = {.model = &m,
                            .mode = WF_COMPILE_TRAIN,
                            .strategy = wf_strategy_find("parameter_server"),
                            .n_ps = 1,
                            .seed = 1,
                            .loss = "mse"};
    wf_compiled *c = compile(&spec);
    static const char *const names[] = {"batch_normalization", "batch_normalization_1"};
    static const double wanted[] = {0.99, 0.75};
    char name[64];

    (void)state;
    for (size_t i = 0; i < 2; i++)
        for (int k = 0; k < 2; k++) {
            int64_t at;

            snprintf(name, sizeof name, "%s/%s", names[i], k ? "moving_variance" : "moving_mean");
            at = wf_compiled_find(c, name);
            assert_true(at >= 0 && c->variables[at].pushed);
            assert_float_equal(c->variables[at].momentum, wanted[i], 1e-6);
        }
    wf_compiled_free(&c);
}

/* Glorot's limit of a convolution counts window and channels, of a gru's state its rows are
 * orthonormal, and an lstm forgets nothing at first. */
static void first_values_are_of_kerass_kind(void **state)
{
    static const wf_conf_input x[] = {{.name = "x", .dims = {6, 10}, .rank = 2, .line = 3}};
    const wf_conf_item layers[] = {
        LAYER("conv1d", INT_OPTION("filters", 20), INTS_OPTION("kernel_size", 3)),
        LAYER("lstm", INT_OPTION("units", 4)),
    };
    wf_compiled *c = compile_layers(x, 1, layers, WF_COUNT(layers), WF_COMPILE_INFER);
    const wf_tensor *w = c->variables[wf_compiled_find(c, "conv1d/kernel")].initial;
    const float *r = wf_f32(c->variables[wf_compiled_find(c, "lstm/recurrent_kernel")].initial);
    const float *b = wf_f32(c->variables[wf_compiled_find(c, "lstm/bias")].initial);
    float limit = sqrtf(6.0f / (30.0f + 60.0f)), largest = 0.0f;

    (void)state;
    for (int64_t i = 0; i < wf_elems(w); i++)
        largest = fmaxf(largest, fabsf(wf_f32(w)[i]));
    assert_true(largest <= limit && largest > 0.98f * limit);
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 4; k++) {
            float dot = 0.0f;

            for (int j = 0; j < 16; j++)
                dot += r[i * 16 + j] * r[k * 16 + j];
            assert_true(fabsf(dot - (i == k ? 1.0f : 0.0f)) < 1e-5f);
        }
    for (int i = 0; i < 16; i++)
        assert_true(b[i] == (i / 4 == 1 ? 1.0f : 0.0f));
    wf_compiled_free(&c);
}

static void initializers_have_options(void **state)
{
    static const wf_conf_input x[] = {{.name = "x", .dims = {200}, .rank = 1, .line = 3}};
    static const wf_conf_option stddev[] = {
        {.name = "stddev", .kind = WF_CONF_NUMBER, .number = 3.0}};
    static const wf_conf_option value[] = {
        {.name = "value", .kind = WF_CONF_NUMBER, .number = 0.25}};
    static const wf_conf_item bell = {
        .type = "random_normal", .options = stddev, .n_options = 1, .line = 7};
    static const wf_conf_item fixed = {
        .type = "constant", .options = value, .n_options = 1, .line = 7};
    const wf_conf_item layer = LAYER(
        "dense", INT_OPTION("units", 100),
        {.name = "kernel_initializer",
         .kind = WF_CONF_ITEM,
         .text = "random_normal",
         .item = &bell},
        {.name = "bias_initializer", .kind = WF_CONF_ITEM, .text = "constant", .item = &fixed});
    wf_compiled *c = compile_layers(x, 1, &layer, 1, WF_COMPILE_INFER);
    const wf_tensor *w = c->variables[wf_compiled_find(c, "dense/kernel")].initial;
    double squares = 0.0;

    (void)state;
    for (int64_t i = 0; i < wf_elems(w); i++)
        squares += (double)wf_f32(w)[i] * (double)wf_f32(w)[i];
    assert_true(fabs(sqrt(squares / (double)wf_elems(w)) - 3.0) < 0.1);
    assert_true(wf_f32(c->variables[wf_compiled_find(c, "dense/bias")].initial)[99] == 0.25f);
    wf_compiled_free(&c);
}

static void layers_name_what_they_take(void **state)
{
    static const wf_conf_input in[] = {
        {.name = "user", .dims = {1}, .rank = 1, .dtype = "int64", .line = 3},
        {.name = "x", .dims = {4}, .rank = 1, .line = 3}};
    static const char *const outputs[] = {"both", "side"};
    const wf_conf_item layers[] = {
        LAYER("embedding", INT_OPTION("input_dim", 9), INT_OPTION("output_dim", 3), INPUTS("user")),
        {.type = "flatten", .line = 6},
        LAYER("concatenate", INPUTS("flatten", "x"), TEXT_OPTION("name", "both")),
        LAYER("dense", INT_OPTION("units", 2), INPUTS("x"), TEXT_OPTION("name", "side")),
    };
    wf_model m = {.inputs = in,
                  .n_inputs = 2,
                  .layers = layers,
                  .n_layers = WF_COUNT(layers),
                  .outputs = outputs,
                  .n_outputs = 2};
    wf_compile_spec spec = {.model = &m, .mode = WF_COMPILE_INFER, .batch = 4};
    wf_compiled *c = compile(&spec);

    (void)state;
    assert_int_equal(c->n_feeds, 2);
    assert_int_equal(c->feeds[0].dtype, WF_I64);
    assert_int_equal(c->n_outputs, 2);
    assert_string_equal(c->outputs[0].name, "both");
    assert_int_equal(c->graph->outputs[0]->axes[1].size, 7);
    assert_string_equal(c->outputs[1].name, "side");
    assert_int_equal(count_op(c->graph, "Gather"), 1);
    wf_compiled_free(&c);
}

static void regularizers_are_part_of_the_loss_alone(void **state)
{
    static const wf_conf_input x[] = {{.name = "x", .dims = {4}, .rank = 1, .line = 3}};
    const wf_conf_item plain = LAYER("dense", INT_OPTION("units", 2));
    const wf_conf_item held =
        LAYER("dense", INT_OPTION("units", 2),
              {.name = "kernel_regularizer", .kind = WF_CONF_ITEM, .text = "l1"});
    wf_compiled *a = compile_layers(x, 1, &plain, 1, WF_COMPILE_TRAIN);
    wf_compiled *b = compile_layers(x, 1, &held, 1, WF_COMPILE_TRAIN);

    (void)state;
    assert_int_equal(count_op(a->graph, "Abs"), 0);
    assert_int_equal(count_op(b->graph, "Abs"), 1);
    wf_compiled_free(&a);
    wf_compiled_free(&b);
    b = compile_layers(x, 1, &held, 1, WF_COMPILE_INFER);
    assert_int_equal(count_op(b->graph, "Abs"), 0);
    wf_compiled_free(&b);
}

static wf_err refused_graph(const wf_conf_item *layers, size_t n, const char *output)
{
    static const wf_conf_input in[] = {{.name = "x", .dims = {6}, .rank = 1, .line = 3},
                                       {.name = "image", .dims = {5, 5, 4}, .rank = 3, .line = 4}};
    const char *const outputs[] = {output};
    wf_model m = {.file = "j.yaml",
                  .inputs = in,
                  .n_inputs = 2,
                  .layers = layers,
                  .n_layers = n,
                  .outputs = outputs,
                  .n_outputs = output != NULL,
                  .outputs_line = 9};
    wf_compile_spec spec = {.model = &m, .mode = WF_COMPILE_INFER};
    wf_err err = {0};

    assert_int_equal(refused(&spec, &err), WF_USAGE);
    return err;
}

typedef struct unfit {
    wf_conf_item layers[3];
    size_t n;
    const char *output, *place, *says;
} unfit;

static const unfit unfits[] = {
    {{LAYER("dense", INT_OPTION("units", 2))}, 1, NULL, "j.yaml:6", "2 inputs"},
    {{LAYER("dense", INT_OPTION("units", 2), INPUTS("imagee"))},
     1,
     NULL,
     "j.yaml:6",
     "did you mean \"image\"?"},
    {{LAYER("dense", INT_OPTION("units", 2), INPUTS("x"))},
     1,
     NULL,
     "j.yaml:4",
     "nobody uses input \"image\""},
    {{LAYER("flatten", INPUTS("image")), LAYER("dense", INT_OPTION("units", 2), INPUTS("x"))},
     2,
     NULL,
     "j.yaml:6",
     "nobody uses the output of layer \"flatten\""},
    {{LAYER("flatten", INPUTS("image")), LAYER("add", INPUTS("x", "flatten"))},
     2,
     NULL,
     "j.yaml:6",
     "input 1 is [batch, 6] and input 2 [batch, 100]"},
    {{LAYER("add", INPUTS("x", "image"))},
     1,
     NULL,
     "j.yaml:6",
     "input 1 is [batch, 6] and input 2 [batch, 5, 5, 4]"},
    {{LAYER("add", INPUTS("x"))}, 1, NULL, "j.yaml:6", "it takes 2 or more inputs, not 1"},
    {{LAYER("dense", INT_OPTION("units", 2), INPUTS("x"), TEXT_OPTION("name", "image"))},
     1,
     NULL,
     "j.yaml:6",
     "there are two \"image\""},
    {{LAYER("conv2d", INT_OPTION("filters", 2), INTS_OPTION("kernel_size", 3), INPUTS("x"))},
     1,
     NULL,
     "j.yaml:6",
     "it takes records of 3 axes, channels included; what comes is "
     "[batch, 6]"},
    {{LAYER("conv2d", INT_OPTION("filters", 2), INTS_OPTION("kernel_size", 7), INPUTS("image"))},
     1,
     NULL,
     "j.yaml:6",
     "its window covers 7 along axis 1, which has 5"},
    {{LAYER("conv2d", INT_OPTION("filters", 3), INTS_OPTION("kernel_size", 3),
            INT_OPTION("groups", 2), INPUTS("image"))},
     1,
     NULL,
     "j.yaml:6",
     "4 channels and 3 filters do not divide into 2 groups"},
    {{LAYER("conv2d", INT_OPTION("filters", 3), INTS_OPTION("kernel_size", 1, 2, 3),
            INPUTS("image"))},
     1,
     NULL,
     "j.yaml:6",
     "\"kernel_size\" has 3 numbers, and may have 1 or 2"},
    {{LAYER("cropping2d", INTS_OPTION("cropping", 3), INPUTS("image"))},
     1,
     NULL,
     "j.yaml:6",
     "it crops 6 along axis 1, which has 5"},
    {{LAYER("group_normalization", INPUTS("image"))},
     1,
     NULL,
     "j.yaml:6",
     "4 channels do not divide into 32 groups"},
    {{LAYER("lstm", INT_OPTION("units", 2), INPUTS("image"))},
     1,
     NULL,
     "j.yaml:6",
     "it takes records of [steps, features]; what comes is [batch, 5, 5, 4]"},
    {{LAYER("multi_head_attention", INT_OPTION("num_heads", 2), INT_OPTION("key_dim", 2),
            INPUTS("x"))},
     1,
     NULL,
     "j.yaml:6",
     "the query is [batch, 6]"},
    {{LAYER("permute", INTS_OPTION("dims", 1, 1, 2), INPUTS("image"))},
     1,
     NULL,
     "j.yaml:6",
     "does not put the axes of [batch, 5, 5, 4] in an order"},
    {{LAYER("softmax", INT_OPTION("axis", 3), INPUTS("x"))},
     1,
     NULL,
     "j.yaml:6",
     "\"axis\" is 3, and what comes is [batch, 6]"},
    {{LAYER("flatten", INPUTS("image")), LAYER("concatenate", INPUTS("flatten", "x"))},
     2,
     "concat",
     "j.yaml:9",
     "there is no layer or input \"concat\""},
    {{LAYER("flatten", INPUTS("image")), LAYER("concatenate", INPUTS("flatten", "x"))},
     2,
     "x",
     "j.yaml:9",
     "\"x\" is an input, and no layer"},
};

static void bad_graphs_are_named_with_their_line(void **state)
{
    (void)state;
    for (size_t i = 0; i < WF_COUNT(unfits); i++) {
        wf_err err = refused_graph(unfits[i].layers, unfits[i].n, unfits[i].output);

        assert_says(err, unfits[i].place);
        assert_says(err, unfits[i].says);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_and_shapes_are_kerass),
        cmocka_unit_test(first_weights_depend_on_seed_and_name_alone),
        cmocka_unit_test(all_layers_go_together),
        cmocka_unit_test(an_image_is_turned_once),
        cmocka_unit_test(running_values_move_by_the_momentum_of_their_layer),
        cmocka_unit_test(first_values_are_of_kerass_kind),
        cmocka_unit_test(initializers_have_options),
        cmocka_unit_test(layers_name_what_they_take),
        cmocka_unit_test(regularizers_are_part_of_the_loss_alone),
        cmocka_unit_test(bad_graphs_are_named_with_their_line),
        cmocka_unit_test(bad_layers_are_named_with_their_line),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
