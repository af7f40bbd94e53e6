/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/compile_weights.c - what training starts from, and what it leaves as it is. */
#include "tests/unit/compile_util.h"

static const char *given[4];
static int64_t given_dims[4][2];
static size_t n_given;

/* Stands in for the file: what the test has given, each element its index in the list. */
static wf_status read_given(const char *path, wf_named_list *out, wf_err *err)
{
    assert_string_equal(path, "/w.safetensors");
    for (size_t i = 0; i < n_given; i++) {
        uint32_t rank = given_dims[i][1] ? 2 : 1;
        wf_tensor *t = NULL;

        WF_TRY(wf_tensor_new(WF_F32, rank, given_dims[i], &t, err));
        for (int64_t k = 0; k < wf_elems(t); k++)
            wf_f32_mut(t)[k] = (float)i;
        WF_TRY(wf_named_add(out, given[i], &t, true, err));
    }
    return WF_OK;
}

static void give(size_t i, const char *name, int64_t rows, int64_t columns)
{
    given[i] = name;
    given_dims[i][0] = rows;
    given_dims[i][1] = columns;
    n_given = i + 1;
}

static void give_all(void)
{
    give(0, "dense/kernel", 784, 128);
    give(1, "dense/bias", 128, 0);
    give(2, "dense_1/kernel", 128, 10);
    give(3, "dense_1/bias", 10, 0);
}

static const wf_compiled_variable *variable_of(const wf_compiled *c, const char *name)
{
    int64_t at = wf_compiled_find(c, name);

    if (at < 0)
        fail_msg("there is no variable %s", name);
    return &c->variables[at];
}

static void a_frozen_variable_is_never_pushed(void **state)
{
    static const char *const patterns[] = {"dense/*"};
    wf_model m = mlp();
    wf_compile_spec spec = train_spec(&m, 2);
    uint64_t digest;
    wf_compiled *c;

    (void)state;
    c = compile(&spec);
    digest = c->digest;
    wf_compiled_free(&c);
    spec.freeze = patterns;
    spec.n_freeze = 1;
    c = compile(&spec);
    assert_int_equal(count_op(c->graph, "Push"), 2);
    assert_int_equal(count_op(c->graph, "Pull"), 3);
    assert_true(variable_of(c, "dense/kernel")->on_ps);
    assert_false(variable_of(c, "dense/kernel")->pushed);
    assert_int_equal(variable_of(c, "dense/bias")->kind, WF_VAR_FROZEN);
    assert_false(variable_of(c, "dense/bias")->on_ps); /* 512 bytes stay in the graph */
    assert_true(variable_of(c, "dense_1/bias")->pushed);
    assert_true(c->digest != digest); /* its checkpoints hold other variables */
    digest = c->digest;
    wf_compiled_free(&c);
    spec.mode = WF_COMPILE_EVAL;
    c = compile(&spec);
    assert_true(c->digest == digest);
    wf_compiled_free(&c);
}

static void a_pattern_that_matches_nothing_is_refused(void **state)
{
    static const char *const wrong[] = {"*/kernle"}, *const all[] = {"*"};
    wf_model m = mlp();
    wf_compile_spec spec = train_spec(&m, 1);
    wf_err err = {0};

    (void)state;
    spec.file = "job.yaml";
    spec.freeze_line = 9;
    spec.freeze = wrong;
    spec.n_freeze = 1;
    assert_int_equal(refused(&spec, &err), WF_USAGE);
    assert_says(err, "job.yaml:9: freeze: \"*/kernle\" matches no variable; there is \"dense");
    spec.freeze = all;
    assert_int_equal(refused(&spec, &err), WF_USAGE);
    assert_says(err, "job.yaml:9: \"freeze\" leaves no variable to train");
}

static void weights_of_a_file_are_the_first_ones(void **state)
{
    const struct wf_conf_rename map[] = {{"dense/bias", "fc1.bias", 8}};
    wf_conf_weights w = {.file = "/w.safetensors", .map = map, .n_map = 1, .strict = true};
    wf_model m = mlp();
    wf_compile_spec spec = train_spec(&m, 1);
    wf_compiled *c;

    (void)state;
    spec.weights = &w;
    spec.read_weights = read_given;
    give_all();
    given[1] = "fc1.bias";
    c = compile(&spec);
    assert_true(wf_f32(variable_of(c, "dense/kernel")->initial)[5] == 0.0f);
    assert_true(wf_f32(variable_of(c, "dense/bias")->initial)[5] == 1.0f);
    assert_true(wf_f32(variable_of(c, "dense_1/kernel")->initial)[5] == 2.0f);
    wf_compiled_free(&c);
}

static void weights_that_do_not_fit_are_told(void **state)
{
    const struct wf_conf_rename map[] = {{"dense/bais", "b", 8}};
    wf_conf_weights w = {.file = "/w.safetensors", .strict = true, .line = 7};
    wf_model m = mlp();
    wf_compile_spec spec = train_spec(&m, 1);
    wf_err err = {0};
    wf_compiled *c;

    (void)state;
    spec.weights = &w;
    spec.read_weights = read_given;
    spec.file = "job.yaml";
    give_all();
    give(2, "dense_1/kernel", 10, 128);
    give(3, "dense_1/bias", 10, 0);
    assert_int_equal(refused(&spec, &err), WF_SHAPE);
    assert_says(err, "job.yaml:7: weights: variable \"dense_1/kernel\" is float32[128, 10], in "
                     "/w.safetensors it is float32[10, 128]");
    assert_non_null(strstr(err.hint, "transpose"));
    give(2, "dense_1/kernel", 128, 10);
    give(3, "dense_1/biass", 10, 0);
    assert_int_equal(refused(&spec, &err), WF_SHAPE);
    assert_says(err, "has no \"dense_1/bias\" for variable \"dense_1/bias\"; did you mean "
                     "\"dense_1/biass\"? (and 1 more do not fit)");
    w.strict = false;
    c = compile(&spec);
    assert_true(warned(c, "has no \"dense_1/bias\"") && warned(c, "no variable for"));
    assert_true(wf_f32(variable_of(c, "dense_1/kernel")->initial)[5] == 2.0f);
    wf_compiled_free(&c);
    w.map = map;
    w.n_map = 1;
    assert_int_equal(refused(&spec, &err), WF_USAGE);
    assert_says(err, "job.yaml:8: weights: the model has no variable \"dense/bais\"; did you mean");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_frozen_variable_is_never_pushed),
        cmocka_unit_test(a_pattern_that_matches_nothing_is_refused),
        cmocka_unit_test(weights_of_a_file_are_the_first_ones),
        cmocka_unit_test(weights_that_do_not_fit_are_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
