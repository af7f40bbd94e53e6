/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/compile_prune.c - an unused branch goes, and its variables never reach a ps; what no
 * gradient reaches is frozen. */
#include "tests/unit/compile_util.h"

/* x [batch, 4] -> used [4, 3] -> out; x -> unused [4, 5] -> aux; and class weights in the loss. */
static wf_graph *branching(void)
{
    wf_err err = {0};
    wf_graph *g = NULL;
    wf_emit e;
    wf_value *x, *y, *out, *aux, *weights, *in[3];

    must(wf_graph_new("branching", &g, &err), &err);
    e = wf_emit_begin(g, "net", &err);
    x = add_input(g, "x", WF_F32, 2, (const int64_t[]){-1, 4});
    y = add_input(g, "y", WF_I64, 1, (const int64_t[]){-1});
    out = wf_emit_matmul(&e, x, add_variable(g, "used", 2, (const int64_t[]){4, 3}));
    aux = wf_emit_matmul(&e, x, add_variable(g, "unused", 2, (const int64_t[]){4, 5}));
    weights = add_variable(g, "weights", 1, (const int64_t[]){3});
    in[0] = out;
    in[1] = y;
    in[2] = weights;
    must(wf_graph_add_output(g, aux, &err), &err);
    must(wf_graph_add_output(g, out, &err), &err);
    must(wf_graph_rename_value(g, out, "out", &err), &err);
    must(wf_graph_rename_value(g, aux, "aux", &err), &err);
    out = wf_emit_op(&e, "SoftmaxCrossEntropyLoss", 3, in, 0, NULL);
    must(wf_emit_end(&e), &err);
    must(wf_graph_rename_value(g, out, "loss", &err), &err);
    must(wf_graph_add_output(g, out, &err), &err);
    return g;
}

static bool pulls(const wf_graph *g, const char *op, const char *variable)
{
    for (size_t i = 0; i < g->n_nodes; i++)
        if (!strcmp(g->nodes[i]->op->name, op) &&
            !strcmp(wf_node_string(g->nodes[i], "variable", ""), variable))
            return true;
    return false;
}

static void an_unused_branch_never_reaches_a_ps(void **state)
{
    wf_graph *g = branching();
    wf_compile_spec spec = {.graph = g,
                            .mode = WF_COMPILE_TRAIN,
                            .strategy = wf_strategy_find("parameter_server"),
                            .n_ps = 2,
                            .batch = 8};
    wf_compiled *c = compile(&spec);

    (void)state;
    assert_true(pulls(c->graph, "Pull", "used") && pulls(c->graph, "Push", "used"));
    assert_false(pulls(c->graph, "Pull", "unused") || pulls(c->graph, "Push", "unused"));
    assert_int_equal(wf_compiled_find(c, "unused"), -1);
    assert_null(wf_graph_value(c->graph, "unused"));
    assert_true(warned(c, "\"unused\""));
    for (size_t i = 0; i < c->n_slices; i++)
        assert_string_equal(c->variables[c->slices[i].variable].name, "used");
    wf_compiled_free(&c);
    wf_graph_free(&g);
}

static void what_no_gradient_reaches_stays_in_the_graph(void **state)
{
    wf_graph *g = branching();
    wf_compile_spec spec = {.graph = g,
                            .mode = WF_COMPILE_TRAIN,
                            .strategy = wf_strategy_find("parameter_server"),
                            .n_ps = 2,
                            .batch = 8};
    static const wf_compile_mode modes[] = {WF_COMPILE_TRAIN, WF_COMPILE_EVAL};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        wf_compiled *c;
        int64_t at;

        spec.mode = modes[i];
        c = compile(&spec);
        at = wf_compiled_find(c, "weights");
        assert_true(at >= 0);
        assert_int_equal(c->variables[at].kind, WF_VAR_FROZEN);
        assert_false(c->variables[at].on_ps);
        assert_false(pulls(c->graph, "Pull", "weights"));
        assert_non_null(wf_graph_value(c->graph, "weights")->known);
        assert_true(pulls(c->graph, "Pull", "used"));
        assert_int_equal(pulls(c->graph, "Push", "used"), modes[i] == WF_COMPILE_TRAIN);
        wf_compiled_free(&c);
    }
    wf_graph_free(&g);
}

static void inference_has_no_loss_and_no_labels(void **state)
{
    wf_graph *g = branching();
    wf_compile_spec spec = {.graph = g, .mode = WF_COMPILE_INFER};
    wf_compiled *c = compile(&spec);

    (void)state;
    assert_int_equal(c->n_outputs, 2);
    assert_int_equal(c->n_feeds, 1);
    assert_string_equal(c->feeds[0].name, "x");
    assert_int_equal(wf_compiled_find(c, "weights"), -1);
    assert_int_equal(count_op(c->graph, "SoftmaxCrossEntropyLoss"), 0);
    wf_compiled_free(&c);
    wf_graph_free(&g);
}

static void grad_lists_every_trainable_variable(void **state)
{
    wf_graph *g = branching();
    wf_compile_spec spec = {.graph = g, .mode = WF_COMPILE_GRAD};
    wf_compiled *c = compile(&spec);
    size_t zero = 0, gradients = 0;

    (void)state;
    for (size_t i = 0; i < c->n_outputs; i++) {
        if (c->outputs[i].meaning != WF_MEANS_GRADIENT)
            continue;
        gradients++;
        zero += c->outputs[i].name == NULL;
        assert_string_equal(c->outputs[i].label, c->variables[c->outputs[i].variable].name);
    }
    assert_int_equal(gradients, 3);
    assert_int_equal(zero, 2); /* unused, and the class weights */
    wf_compiled_free(&c);
    wf_graph_free(&g);
}

static void weights_go_into_the_exported_form(void **state)
{
    wf_graph *g = branching(), *out = NULL;
    wf_compile_spec spec = {.graph = g, .mode = WF_COMPILE_TRAIN};
    float data[12] = {1, 2, 3};
    wf_tensor *t = NULL, *wrong = NULL;
    wf_named_tensor w = {.name = "used"};
    wf_err err = {0};

    (void)state;
    must(wf_tensor_over(WF_F32, 2, (const int64_t[]){4, 3}, data, &t, &err), &err);
    must(wf_tensor_over(WF_F32, 2, (const int64_t[]){3, 4}, data, &wrong, &err), &err);
    w.tensor = t;
    must(wf_compile_export(&spec, 1, &w, &out, &err), &err);
    assert_memory_equal(wf_graph_value(out, "used")->known->data, data, sizeof(data));
    wf_graph_free(&out);
    w.tensor = wrong;
    assert_int_equal(wf_compile_export(&spec, 1, &w, &out, &err), WF_SHAPE);
    assert_says(err, "[3, 4]");
    assert_null(out);
    wf_tensor_free(&t);
    wf_tensor_free(&wrong);
    wf_graph_free(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_unused_branch_never_reaches_a_ps),
        cmocka_unit_test(what_no_gradient_reaches_stays_in_the_graph),
        cmocka_unit_test(inference_has_no_loss_and_no_labels),
        cmocka_unit_test(grad_lists_every_trainable_variable),
        cmocka_unit_test(weights_go_into_the_exported_form),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
