/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/compile_stages.c - every stage is a whole graph that can be written and read; Pull and
 * Push stand where a step wants them. */
#include "common/base/bytes.h"
#include "common/onnx/onnx.h"
#include "tests/unit/compile_util.h"

static void every_stage_is_a_whole_graph(void **state)
{
    static const wf_compile_mode modes[] = {WF_COMPILE_TRAIN, WF_COMPILE_EVAL, WF_COMPILE_INFER};
    static const wf_conf_term metrics[] = {{.item = {.type = "accuracy"}}};
    wf_model m = mlp();
    const char *name, *help;

    (void)state;
    for (size_t k = 0; k < WF_COUNT(modes); k++)
        for (size_t i = 0; wf_compile_pass_at(i, &name, &help); i++) {
            wf_compile_spec spec = train_spec(&m, 2);
            wf_compiled *c;
            wf_err err = {0};
            wf_bytes bytes = {0};
            wf_graph *back = NULL;

            spec.mode = modes[k];
            spec.metrics = metrics;
            spec.n_metrics = 1;
            spec.stop_after = name;
            c = compile(&spec);
            assert_string_equal(c->stage, name);
            must(wf_graph_check(c->graph, &err), &err);
            must(wf_onnx_encode(c->graph, &bytes, &err), &err);
            must(wf_onnx_decode(bytes.data, bytes.size, NULL, &back, &err), &err);
            assert_int_equal(back->n_nodes, c->graph->n_nodes);
            wf_bytes_close(&bytes);
            wf_graph_free(&back);
            wf_compiled_free(&c);
        }
}

static size_t position(const wf_graph *g, const char *op, const char *variable)
{
    for (size_t i = 0; i < g->n_nodes; i++)
        if (!strcmp(g->nodes[i]->op->name, op) &&
            !strcmp(wf_node_string(g->nodes[i], "variable", ""), variable))
            return i;
    fail_msg("no %s of %s", op, variable);
    return 0;
}

static void the_last_layer_is_pushed_first_and_pulled_last(void **state)
{
    wf_model m = mlp();
    wf_compile_spec spec = train_spec(&m, 2);
    wf_compiled *c = compile(&spec);
    const wf_graph *g = c->graph;

    (void)state;
    assert_int_equal(count_op(g, "Pull"), 4);
    assert_int_equal(count_op(g, "Push"), 4);
    assert_true(position(g, "Pull", "dense/kernel") < position(g, "Pull", "dense_1/kernel"));
    assert_true(position(g, "Push", "dense_1/kernel") < position(g, "Push", "dense/kernel"));
    assert_true(position(g, "Push", "dense_1/bias") < position(g, "Push", "dense/kernel"));
    for (size_t i = 0; i < g->n_nodes; i++)
        if (!strcmp(g->nodes[i]->op->name, "Push")) {
            const wf_node *maker = g->nodes[i]->in[0]->producer;
            size_t at = i - 1;

            /* At once; one product makes the gradients of both variables of a layer. */
            while (!strcmp(g->nodes[at]->op->name, "Push") &&
                   g->nodes[at]->in[0]->producer == maker)
                at--;
            assert_ptr_equal(maker, g->nodes[at]);
        }
    for (size_t i = 0; i < c->n_variables; i++)
        assert_true(c->variables[i].on_ps && c->variables[i].pushed);
    wf_compiled_free(&c);
}

static void the_eval_graph_pulls_the_same_and_pushes_nothing(void **state)
{
    static const wf_conf_term metrics[] = {{.item = {.type = "accuracy"}}};
    wf_model m = mlp();
    wf_compile_spec spec = train_spec(&m, 2);
    wf_compiled *c;

    (void)state;
    spec.mode = WF_COMPILE_EVAL;
    spec.metrics = metrics;
    spec.n_metrics = 1;
    c = compile(&spec);
    assert_int_equal(count_op(c->graph, "Pull"), 4);
    assert_int_equal(count_op(c->graph, "Push"), 0);
    assert_int_equal(c->n_slices, 0);
    assert_int_equal(c->n_outputs, 2);
    assert_string_equal(c->outputs[0].label, "loss");
    assert_string_equal(c->outputs[1].label, "accuracy");
    assert_int_equal(c->n_feeds, 2);
    assert_true(c->feeds[1].is_label);
    assert_string_equal(c->feeds[1].name, "y");
    assert_int_equal(c->feeds[1].dtype, WF_I64);
    wf_compiled_free(&c);
}

/* What a layer computes and its three gradients, and nothing else; ports are the host's. */
static void a_layer_and_its_gradients_are_marked_with_its_device(void **state)
{
    static const wf_conf_option options[] = {INT_OPTION("units", 10), TEXT_OPTION("device", "far")};
    wf_conf_item layers[2];
    wf_model m = mlp();
    wf_compile_spec spec;
    wf_compiled *c;
    size_t marked = 0;

    (void)state;
    memcpy(layers, m.layers, sizeof layers);
    layers[1].options = options;
    layers[1].n_options = 2;
    m.layers = layers;
    spec = train_spec(&m, 2);
    c = compile(&spec);
    for (size_t i = 0; i < c->graph->n_nodes; i++) {
        const wf_node *n = c->graph->nodes[i];
        bool port = !strcmp(n->op->name, "Pull") || !strcmp(n->op->name, "Push");

        assert_int_equal(n->device != NULL, !port && strstr(n->name, "dense_1/") != NULL);
        if (n->device)
            assert_string_equal(n->device, "far");
        marked += n->device != NULL;
    }
    assert_int_equal(marked, 4);
    wf_compiled_free(&c);
}

/* Two biases that are added have one gradient; each push still has a value of its own. */
static void a_shared_gradient_is_pushed_from_two_values(void **state)
{
    wf_err err = {0};
    wf_graph *g = NULL;
    wf_emit e;
    wf_value *x, *y;
    wf_compile_spec spec = {.mode = WF_COMPILE_TRAIN,
                            .strategy = wf_strategy_find("parameter_server"),
                            .loss = "mse",
                            .n_ps = 1};
    wf_compiled *c;

    (void)state;
    must(wf_graph_new("biases", &g, &err), &err);
    e = wf_emit_begin(g, "n", &err);
    x = add_input(g, "x", WF_F32, 2, (const int64_t[]){-1, 3});
    y = wf_emit_add(&e, x, add_variable(g, "a", 1, (const int64_t[]){3}));
    y = wf_emit_add(&e, y, add_variable(g, "b", 1, (const int64_t[]){3}));
    must(wf_emit_end(&e), &err);
    must(wf_graph_add_output(g, y, &err), &err);
    spec.graph = g;
    c = compile(&spec);
    assert_int_equal(count_op(c->graph, "Push"), 2);
    assert_ptr_not_equal(c->graph->nodes[position(c->graph, "Push", "a")]->in[0],
                         c->graph->nodes[position(c->graph, "Push", "b")]->in[0]);
    wf_compiled_free(&c);
    wf_graph_free(&g);
}

static void a_fixed_batch_is_refused_in_words(void **state)
{
    wf_err err = {0};
    wf_graph *g = NULL;
    wf_compile_spec spec = {.mode = WF_COMPILE_TRAIN, .loss = "mse", .batch = 32};

    (void)state;
    must(wf_graph_new("fixed", &g, &err), &err);
    must(wf_graph_add_output(g, add_input(g, "x", WF_F32, 2, (const int64_t[]){1, 3}), &err), &err);
    spec.graph = g;
    assert_int_equal(refused(&spec, &err), WF_SHAPE);
    assert_says(err, "its batch is fixed at 1");
    wf_graph_free(&g);
}

static void a_model_without_variables_is_refused(void **state)
{
    wf_err err = {0};
    wf_graph *g = NULL;
    wf_compile_spec spec = {.mode = WF_COMPILE_TRAIN, .loss = "mse", .batch = 32};

    (void)state;
    must(wf_graph_new("empty", &g, &err), &err);
    must(wf_graph_add_output(g, add_input(g, "x", WF_F32, 2, (const int64_t[]){-1, 3}), &err),
         &err);
    spec.graph = g;
    assert_int_equal(refused(&spec, &err), WF_INVALID);
    assert_says(err, "no trainable variable");
    wf_graph_free(&g);
}

/* x w, then `cut` to something no gradient goes through, and its mean as the loss. */
static wf_graph *cut_by(const char *cut)
{
    wf_err err = {0};
    wf_graph *g = NULL;
    wf_emit e;
    wf_value *y, *x;

    must(wf_graph_new("cut", &g, &err), &err);
    e = wf_emit_begin(g, "n", &err);
    x = add_input(g, "x", WF_F32, 2, (const int64_t[]){-1, 3});
    y = wf_emit_matmul(&e, x, add_variable(g, "w", 2, (const int64_t[]){3, 2}));
    if (!strcmp(cut, "Cast"))
        y = wf_emit_cast(&e, wf_emit_cast(&e, y, WF_I64), WF_F32);
    else if (!strcmp(cut, "NonZero"))
        y = wf_emit_cast(&e, wf_emit_unary(&e, cut, y), WF_F32);
    else
        y = wf_emit_unary(&e, cut, y);
    if (!strcmp(cut, "NonZero")) /* and a way that a gradient does go */
        y = wf_emit_mul(&e, wf_emit_reduce_mean(&e, y, 0, NULL, false),
                        wf_emit_matmul(&e, x, wf_graph_value(g, "w")));
    y = wf_emit_reduce_mean(&e, y, 0, NULL, false);
    must(wf_emit_end(&e), &err);
    must(wf_graph_rename_value(g, y, "loss", &err), &err);
    must(wf_graph_add_output(g, y, &err), &err);
    return g;
}

static void what_cuts_a_gradient_is_named(void **state)
{
    static const struct {
        const char *cut, *says;
    } rows[] = {
        {"Cast", "the way from the loss \"loss\" to \"w\" ends at Cast \"n/Cast_"},
        {"Cast", "which takes int64[batch, 2]"},
        {"Hardmax", "to \"w\" ends at Hardmax \"n/Hardmax\", which has no gradient"},
    };

    (void)state;
    for (size_t i = 0; i < WF_COUNT(rows); i++) {
        wf_graph *g = cut_by(rows[i].cut);
        wf_compile_spec spec = {.graph = g, .mode = WF_COMPILE_TRAIN, .batch = 8};
        wf_err err = {0};

        wf_graph_value(g, "w")->variable = WF_VAR_NOT; /* as import leaves it */
        assert_int_equal(refused(&spec, &err), WF_INVALID);
        assert_says(err, rows[i].says);
        wf_graph_value(g, "w")->variable = WF_VAR_TRAINABLE; /* as metadata may have it */
        assert_int_not_equal(refused(&spec, &err), WF_OK);
        assert_says(err, rows[i].cut);
        wf_graph_free(&g);
    }
}

static void a_shape_that_depends_on_data_is_refused_by_name(void **state)
{
    wf_graph *g = cut_by("NonZero");
    wf_compile_spec spec = {.graph = g, .mode = WF_COMPILE_TRAIN, .batch = 8};
    wf_compiled *c;
    wf_err err = {0};

    (void)state;
    assert_int_equal(refused(&spec, &err), WF_UNSUPPORTED);
    assert_says(err,
                "NonZero \"n/NonZero\": axis 1 of its result \"n/NonZero\", which is int64[2, ?]");
    spec.mode = WF_COMPILE_RUN; /* one evaluation looks at the data */
    c = compile(&spec);
    wf_compiled_free(&c);
    wf_graph_free(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_stage_is_a_whole_graph),
        cmocka_unit_test(the_last_layer_is_pushed_first_and_pulled_last),
        cmocka_unit_test(the_eval_graph_pulls_the_same_and_pushes_nothing),
        cmocka_unit_test(a_layer_and_its_gradients_are_marked_with_its_device),
        cmocka_unit_test(a_shared_gradient_is_pushed_from_two_values),
        cmocka_unit_test(a_fixed_batch_is_refused_in_words),
        cmocka_unit_test(a_model_without_variables_is_refused),
        cmocka_unit_test(what_cuts_a_gradient_is_named),
        cmocka_unit_test(a_shape_that_depends_on_data_is_refused_by_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
