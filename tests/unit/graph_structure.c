/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/graph_structure.c - values, nodes, names, order: what a pass may count on. */
#include "tests/unit/graph_test.h"

static void names_stay_unique(void **state)
{
    wf_graph *g = new_graph();
    wf_value *a = NULL, *b = NULL;
    wf_err err;

    (void)state;
    assert_ok(wf_graph_add_value(g, "x", &a, &err), err);
    assert_int_equal(wf_graph_add_value(g, "x", &b, &err), WF_EXISTS);
    assert_says(err, "\"x\"");
    assert_ok(wf_graph_add_value_like(g, "x", &b, &err), err);
    assert_string_not_equal(b->name, "x");
    assert_ptr_equal(wf_graph_value(g, b->name), b);
    assert_int_equal(wf_graph_rename_value(g, b, "x", &err), WF_EXISTS);
    assert_ok(wf_graph_rename_value(g, a, "y", &err), err);
    assert_null(wf_graph_value(g, "x"));
    assert_ok(wf_graph_rename_value(g, b, "x", &err), err);
    assert_ptr_equal(wf_graph_value(g, "x"), b);
    wf_graph_free(&g);
}

static void many_names_are_found_and_forgotten(void **state)
{
    wf_graph *g = new_graph();
    wf_value *x = input(g, "x", DIMS(2));
    wf_emit e;
    bool keep[500];
    wf_err err;
    size_t kept = 0;

    (void)state;
    e = wf_emit_begin(g, "n", &err);
    for (int i = 0; i < 500; i++)
        wf_emit_neg(&e, x);
    assert_ok(wf_emit_end(&e), err);
    for (size_t i = 0; i < 500; i++) {
        keep[i] = i % 3 == 0;
        kept += keep[i];
    }
    wf_graph_keep_nodes(g, keep);
    assert_int_equal(g->n_nodes, kept);
    assert_int_equal(g->n_values, kept + 1);
    assert_ok(wf_graph_check(g, &err), err);
    assert_null(wf_graph_node(g, "n/Neg_1"));
    wf_graph_free(&g);
}

/* y = -(-x), built so that the second node comes first in the list. */
static wf_graph *backwards(wf_value **middle)
{
    wf_graph *g = new_graph();
    wf_value *x = input(g, "x", DIMS(2)), *y = NULL;
    const wf_op *neg = wf_op_find("", "Neg");
    wf_err err;

    assert_ok(wf_graph_add_value(g, "middle", middle, &err), err);
    assert_ok(wf_graph_add_value(g, "y", &y, &err), err);
    assert_ok(wf_graph_add_node(g, neg, "second", 1, middle, 1, &y, NULL, &err), err);
    assert_ok(wf_graph_add_node(g, neg, "first", 1, &x, 1, middle, NULL, &err), err);
    assert_ok(wf_graph_add_output(g, y, &err), err);
    return g;
}

static void sorting_puts_makers_before_users(void **state)
{
    wf_value *middle = NULL;
    wf_graph *g = backwards(&middle);
    wf_err err;

    (void)state;
    assert_int_equal(wf_graph_check(g, &err), WF_INVALID);
    assert_ok(wf_graph_sort(g, &err), err);
    assert_ok(wf_graph_check(g, &err), err);
    assert_string_equal(g->nodes[0]->name, "first");
    assert_ok(wf_infer(g, &err), err);
    assert_type(g->outputs[0], "float32[2]");
    wf_graph_free(&g);
}

static void a_cycle_is_named(void **state)
{
    wf_value *middle = NULL;
    wf_graph *g = backwards(&middle);
    wf_err err;

    (void)state;
    wf_node_set_in(wf_graph_node(g, "first"), 0, wf_graph_value(g, "y"));
    assert_int_equal(wf_graph_sort(g, &err), WF_INVALID);
    assert_says(err, "cycle");
    assert_says(err, "\"first\"");
    wf_graph_free(&g);
}

static void two_makers_of_one_value_are_refused(void **state)
{
    wf_value *middle = NULL;
    wf_graph *g = backwards(&middle);
    wf_value *x = wf_graph_value(g, "x");
    wf_err err;

    (void)state;
    assert_int_equal(
        wf_graph_add_node(g, wf_op_find("", "Exp"), "third", 1, &x, 1, &middle, NULL, &err),
        WF_INVALID);
    assert_says(err, "\"middle\"");
    wf_graph_free(&g);
}

static void a_missing_input_is_named(void **state)
{
    wf_graph *g = new_graph();
    wf_value *nobody = NULL, *y = NULL;
    wf_err err;

    (void)state;
    assert_ok(wf_graph_add_value(g, "nobody", &nobody, &err), err);
    assert_ok(wf_graph_add_value(g, "y", &y, &err), err);
    assert_ok(wf_graph_add_node(g, wf_op_find("", "Exp"), NULL, 1, &nobody, 1, &y, NULL, &err),
              err);
    assert_int_equal(wf_graph_check(g, &err), WF_INVALID);
    assert_says(err, "\"nobody\"");
    wf_graph_free(&g);
}

static void a_copy_outlives_its_original(void **state)
{
    wf_graph *g = new_graph(), *copy = NULL;
    wf_value *x = input(g, "x", DIMS(-1, 4)), *w = variable(g, "w", DIMS(4, 2)), *y;
    const wf_node *n;
    wf_err err;
    wf_emit e;

    (void)state;
    e = wf_emit_begin(g, "fc", &err);
    y = wf_emit_gemm(&e, x, w, NULL, 0.5f, 1, false, false);
    y = wf_emit_transpose(&e, y, (int64_t[]){1, 0});
    assert_ok(wf_emit_end(&e), err);
    assert_ok(wf_graph_add_output(g, y, &err), err);
    assert_ok(wf_graph_copy(g, &copy, &err), err);
    wf_graph_free(&g);
    assert_ok(wf_graph_check(copy, &err), err);
    assert_ok(wf_infer(copy, &err), err);
    assert_type(copy->outputs[0], "float32[2, batch]");
    n = wf_graph_node(copy, "fc/Gemm");
    assert_non_null(n);
    assert_true(wf_node_float(n, "alpha", 1) == 0.5f);
    assert_true(wf_f32(wf_graph_value(copy, "w")->known)[7] == 8.0f);
    assert_int_equal(wf_graph_value(copy, "w")->variable, WF_VAR_TRAINABLE);
    wf_graph_free(&copy);
}

static void an_attribute_is_replaced_and_dropped(void **state)
{
    wf_graph *g = new_graph();
    wf_value *x = input(g, "x", DIMS(2, 3)), *y = NULL;
    wf_node *n = NULL;
    size_t count;
    wf_err err;

    (void)state;
    assert_ok(wf_graph_add_value(g, "y", &y, &err), err);
    assert_ok(wf_graph_add_node(g, wf_op_find("", "Softmax"), "s", 1, &x, 1, &y, &n, &err), err);
    assert_ok(wf_node_set_int(g, n, "axis", 1, &err), err);
    assert_ok(wf_node_set_int(g, n, "axis", 0, &err), err);
    assert_int_equal(n->n_attrs, 1);
    assert_int_equal(wf_node_int(n, "axis", 7), 0);
    assert_null(wf_node_ints(n, "axis", &count));
    wf_node_drop_attr(n, "axis");
    wf_node_drop_attr(n, "axis");
    assert_int_equal(wf_node_int(n, "axis", 7), 7);
    wf_graph_free(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_stay_unique),
        cmocka_unit_test(many_names_are_found_and_forgotten),
        cmocka_unit_test(sorting_puts_makers_before_users),
        cmocka_unit_test(a_cycle_is_named),
        cmocka_unit_test(two_makers_of_one_value_are_refused),
        cmocka_unit_test(a_missing_input_is_named),
        cmocka_unit_test(a_copy_outlives_its_original),
        cmocka_unit_test(an_attribute_is_replaced_and_dropped),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
