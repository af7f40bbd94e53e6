/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/exec_blame.c - which node is named when a step's numbers are none. */
#include "common/exec/exec.h"
#include "tests/kit/remote_device.h"
#include "tests/unit/graph_test.h"

#include <math.h>

static const int64_t four[] = {4};

/* A graph that is being built from its one input x [4]. */
typedef struct fixture {
    wf_graph *g;
    wf_value *x;
    wf_emit e;
    wf_err err;
} fixture;

static fixture *begin(void)
{
    static fixture f;

    f.g = new_graph();
    f.x = input(f.g, "x", 1, four);
    f.e = wf_emit_begin(f.g, "m", &f.err);
    return &f;
}

/* What is said of y, with x = `fed` [4]. */
static void assert_blames(fixture *f, wf_value *y, const float fed[4], const char *says)
{
    wf_plan *p = NULL;
    wf_blame blame;
    char text[400];

    assert_ok(wf_emit_end(&f->e), f->err);
    assert_ok(wf_graph_add_output(f->g, y, &f->err), f->err);
    assert_ok(wf_plan_new(f->g, &(wf_plan_options){.device = test_device()}, &p, &f->err), f->err);
    wf_graph_free(&f->g);
    wf_plan_bind_input(p, 0, fed);
    assert_ok(wf_plan_blame(p, &(wf_step_key){.seed = 1}, 0, &blame, &f->err), f->err);
    wf_blame_text(&blame, text, sizeof text);
    assert_string_equal(text, says);
    wf_plan_free(&p);
}

static void the_first_node_that_makes_an_infinity_is_blamed(void **state)
{
    fixture *f = begin();
    wf_value *y = wf_emit_unary(&f->e, "Log", wf_emit_unary(&f->e, "Relu", f->x));

    (void)state;
    y = wf_emit_reduce_mean(&f->e, wf_emit_unary(&f->e, "Neg", y), 0, NULL, false);
    assert_blames(f, y, (const float[]){1, 2, -1, 3},
                  "first bad value: Log \"m/Log\", input min 0 max 3");
}

/* A mask's infinities end in a softmax, and a root of a negative number is what went wrong. */
static void a_mask_is_not_blamed(void **state)
{
    fixture *f = begin();
    wf_value *masked, *y;
    wf_tensor *t = NULL;

    (void)state;
    assert_ok(wf_tensor_new(WF_F32, 1, four, &t, &f->err), f->err);
    for (int i = 0; i < 4; i++)
        wf_f32_mut(t)[i] = i == 3 ? -INFINITY : 0;
    masked = wf_emit_unary(&f->e, "Softmax",
                           wf_emit_add(&f->e, f->x, wf_emit_constant(&f->e, "mask", &t)));
    y = wf_emit_unary(&f->e, "Sqrt",
                      wf_emit_sub(&f->e, masked, wf_emit_scalar(&f->e, WF_F32, 0.125)));
    assert_blames(f, y, (const float[]){0, 0, 0, 0},
                  "first bad value: Sqrt \"m/Sqrt\", input min -0.125 max 0.208333");
}

static void a_nan_of_infinities_names_both_nodes(void **state)
{
    fixture *f = begin();
    wf_value *y;

    (void)state;
    y = wf_emit_unary(&f->e, "Exp", f->x);
    y = wf_emit_op(&f->e, "Div", 2,
                   (wf_value *[]){y, wf_emit_op(&f->e, "ReduceSum", 1, &y, 0, NULL)}, 0, NULL);
    assert_blames(f, y, (const float[]){1000, 0, 0, 0},
                  "first bad value: Div \"m/Div\", input 0 min 1 max inf, input 1 min inf max inf; "
                  "infinite since \"m/Exp\"");
}

static void fused_operations_are_named(void **state)
{
    fixture *f = begin();
    wf_value *y;
    wf_attr attrs[2] = {
        {.name = "steps", .kind = WF_ATTR_STRINGS, .strings = (const char *const[]){"Neg", "Sqrt"}},
        {.name = "args", .kind = WF_ATTR_INTS, .ints = (int64_t[]){0, -1, 1, -1}}};

    (void)state;
    attrs[0].n = 2;
    attrs[1].n = 4;
    y = wf_emit_op(&f->e, "Chain", 1, &f->x, 2, attrs);
    assert_blames(f, y, (const float[]){-1, 2, -3, -4},
                  "first bad value: Chain \"m/Chain\" of Neg, then Sqrt, input min -4 max 2");
}

static void what_was_fed_is_blamed_before_any_node(void **state)
{
    fixture *f = begin();
    wf_value *y;

    (void)state;
    y = wf_emit_unary(&f->e, "Exp", f->x);
    assert_blames(f, y, (const float[]){1, NAN, 0, 0}, "the input \"x\" holds NaN already");
}

static void nothing_is_blamed_for_numbers(void **state)
{
    fixture *f = begin();
    wf_value *y;

    (void)state;
    y = wf_emit_unary(&f->e, "Exp", f->x);
    assert_blames(f, y, (const float[]){1, 2, 3, 4}, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_node_that_makes_an_infinity_is_blamed),
        cmocka_unit_test(a_mask_is_not_blamed),
        cmocka_unit_test(a_nan_of_infinities_names_both_nodes),
        cmocka_unit_test(fused_operations_are_named),
        cmocka_unit_test(what_was_fed_is_blamed_before_any_node),
        cmocka_unit_test(nothing_is_blamed_for_numbers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
