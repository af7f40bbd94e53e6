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
    wf_err err;

    (void)state;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_and_shapes_are_kerass),
        cmocka_unit_test(first_weights_depend_on_seed_and_name_alone),
        cmocka_unit_test(all_layers_go_together),
        cmocka_unit_test(bad_layers_are_named_with_their_line),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
