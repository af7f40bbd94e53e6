/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/graph_grads.c - which nodes differentiation makes, and what it refuses. That the
 * numbers are right is shown in tests/parity. */
#include "tests/unit/graph_test.h"

static size_t count(const wf_graph *g, const char *op)
{
    size_t n = 0;

    for (size_t i = 0; i < g->n_nodes; i++)
        n += strcmp(g->nodes[i]->op->name, op) == 0;
    return n;
}

/* The seed model: two layers and the loss. */
typedef struct mlp {
    wf_graph *g;
    wf_value *x, *y, *w[4], *loss;
} mlp;

static mlp new_mlp(void)
{
    mlp m = {.g = new_graph()};
    wf_value *h, *in[2];
    wf_err err;
    wf_emit e = wf_emit_begin(m.g, "m", &err);

    m.x = input(m.g, "x", DIMS(-1, 784));
    m.y = input(m.g, "y", DIMS(-1));
    m.y->dtype = WF_I64;
    m.w[0] = variable(m.g, "w0", DIMS(784, 128));
    m.w[1] = variable(m.g, "b0", DIMS(128));
    m.w[2] = variable(m.g, "w1", DIMS(10, 128));
    m.w[3] = variable(m.g, "b1", DIMS(10));
    h = wf_emit_unary(&e, "Relu", wf_emit_gemm(&e, m.x, m.w[0], m.w[1], 1, 1, false, false));
    in[0] = wf_emit_gemm(&e, h, m.w[2], m.w[3], 1, 1, false, true);
    in[1] = m.y;
    m.loss = wf_emit_op(&e, "SoftmaxCrossEntropyLoss", 2, in, 0, NULL);
    assert_ok(wf_emit_end(&e), err);
    assert_ok(wf_graph_add_output(m.g, m.loss, &err), err);
    return m;
}

static void a_perceptron_needs_no_transposes(void **state)
{
    mlp m = new_mlp();
    wf_value *grads[4];
    wf_err err;

    (void)state;
    assert_ok(wf_graph_differentiate(m.g, m.loss, m.w, 4, grads, &err), err);
    assert_ok(wf_graph_check(m.g, &err), err);
    assert_string_equal(grads[0]->name, "grad/w0");
    assert_string_equal(grads[3]->name, "grad/b1");
    assert_type(grads[0], "float32[784, 128]");
    assert_type(grads[2], "float32[10, 128]");
    assert_type(grads[3], "float32[10]");
    /* Two forward; dw1, dh, dw0 backward; nothing for x. */
    assert_int_equal(count(m.g, "Gemm"), 5);
    assert_int_equal(count(m.g, "Transpose"), 0);
    assert_int_equal(count(m.g, "ReduceSum"), 2);
    assert_int_equal(count(m.g, "SumToLike"), 0);
    assert_int_equal(count(m.g, "Identity"), 0);
    assert_null(wf_graph_value(m.g, "grad/x"));
    wf_graph_free(&m.g);
}

static void what_the_loss_does_not_need_has_no_gradient(void **state)
{
    mlp m = new_mlp();
    wf_value *wrt[] = {variable(m.g, "aside", DIMS(3)), m.w[3], m.y}, *grads[3];
    wf_err err;

    (void)state;
    assert_ok(wf_graph_differentiate(m.g, m.loss, wrt, 3, grads, &err), err);
    assert_null(grads[0]);
    assert_non_null(grads[1]);
    assert_null(grads[2]); /* integers */
    wf_graph_free(&m.g);
}

static void two_variables_with_one_gradient_get_one_each(void **state)
{
    wf_graph *g = new_graph();
    wf_value *wrt[] = {variable(g, "a", DIMS(2)), variable(g, "b", DIMS(2))}, *grads[2], *loss;
    wf_err err;
    wf_emit e = wf_emit_begin(g, "m", &err);

    (void)state;
    loss = wf_emit_reduce_sum(&e, wf_emit_add(&e, wrt[0], wrt[1]), 0, NULL, false);
    assert_ok(wf_emit_end(&e), err);
    assert_ok(wf_graph_differentiate(g, loss, wrt, 2, grads, &err), err);
    assert_string_equal(grads[0]->name, "grad/a");
    assert_string_equal(grads[1]->name, "grad/b");
    assert_ptr_not_equal(grads[0], grads[1]);
    assert_type(grads[1], "float32[2]");
    assert_ok(wf_graph_check(g, &err), err);
    wf_graph_free(&g);
}

static void a_second_time_does_not_disturb_the_first(void **state)
{
    mlp m = new_mlp();
    wf_value *first[4], *second[4];
    wf_err err;

    (void)state;
    assert_ok(wf_graph_differentiate(m.g, m.loss, m.w, 4, first, &err), err);
    assert_ok(wf_graph_differentiate(m.g, m.loss, m.w, 4, second, &err), err);
    assert_string_equal(first[0]->name, "grad/w0");
    assert_ptr_not_equal(first[0], second[0]);
    assert_ok(wf_graph_check(m.g, &err), err);
    wf_graph_free(&m.g);
}

static void a_symbolic_broadcast_is_summed_at_run_time(void **state)
{
    wf_graph *g = new_graph();
    wf_value *a = input(g, "a", DIMS(-1)), *b = input(g, "b", DIMS(-1)), *loss, *grad;
    wf_err err;
    wf_emit e = wf_emit_begin(g, "m", &err);

    (void)state;
    b->axes[0].symbol = "other"; /* either may be 1 */
    loss = wf_emit_reduce_mean(&e, wf_emit_mul(&e, a, b), 0, NULL, false);
    assert_ok(wf_emit_end(&e), err);
    assert_ok(wf_graph_differentiate(g, loss, &a, 1, &grad, &err), err);
    assert_int_equal(count(g, "SumToLike"), 1);
    assert_type(grad, "float32[batch]");
    wf_graph_free(&g);
}

static void dropout_keeps_its_mask_for_the_way_back(void **state)
{
    wf_graph *g = new_graph();
    wf_value *w = variable(g, "w", DIMS(4)), *in[3] = {w, NULL, NULL}, *loss, *grad;
    const wf_node *back;
    wf_err err;
    wf_emit e = wf_emit_begin(g, "m", &err);

    (void)state;
    in[1] = wf_emit_scalar(&e, WF_F32, 0.25);
    in[2] = wf_emit_scalar(&e, WF_BOOL, 1);
    loss = wf_emit_op(&e, "Dropout", 3, in, 0, NULL);
    loss = wf_emit_reduce_sum(&e, loss, 0, NULL, false);
    assert_ok(wf_emit_end(&e), err);
    assert_ok(wf_graph_differentiate(g, loss, &w, 1, &grad, &err), err);
    back = grad->producer;
    assert_string_equal(back->op->name, "DropoutGrad");
    assert_ptr_equal(back->in[1], wf_graph_node(g, "m/Dropout")->out[1]);
    assert_type(back->in[1], "bool[4]");
    assert_ptr_equal(back->in[2], in[1]);
    assert_ptr_equal(back->in[3], in[2]);
    assert_ok(wf_graph_check(g, &err), err);
    wf_graph_free(&g);
}

static void an_operation_without_gradient_is_named(void **state)
{
    wf_graph *g = new_graph();
    wf_value *w = variable(g, "w", DIMS(4)), *in[2], *loss, *grad;
    wf_err err;
    wf_emit e = wf_emit_begin(g, "m", &err);

    (void)state;
    in[0] = in[1] = w;
    loss = wf_emit_op(&e, "ReluGrad", 2, in, 0, NULL);
    loss = wf_emit_reduce_sum(&e, loss, 0, NULL, false);
    assert_ok(wf_emit_end(&e), err);
    assert_int_equal(wf_graph_differentiate(g, loss, &w, 1, &grad, &err), WF_UNSUPPORTED);
    assert_says(err, "ReluGrad \"m/ReluGrad\"");
    wf_graph_free(&g);
}

static void a_loss_is_one_number(void **state)
{
    wf_graph *g = new_graph();
    wf_value *w = variable(g, "w", DIMS(4)), *y, *grad;
    wf_err err;
    wf_emit e = wf_emit_begin(g, "m", &err);

    (void)state;
    y = wf_emit_exp(&e, w);
    assert_ok(wf_emit_end(&e), err);
    assert_int_equal(wf_graph_differentiate(g, y, &w, 1, &grad, &err), WF_SHAPE);
    assert_says(err, "float32[4]");
    wf_graph_free(&g);
}

static void every_operation_is_found_by_name(void **state)
{
    size_t n = 0;

    (void)state;
    for (; wf_op_at(n); n++) {
        const wf_op *op = wf_op_at(n);

        assert_ptr_equal(wf_op_find(op->domain, op->name), op);
        assert_int_equal(op->means != NULL, strcmp(op->domain, WF_DOMAIN_WEFT) == 0);
        assert_non_null(op->infer);
        assert_true(op->n_in_min <= op->n_in_max && op->n_out_min <= op->n_out_max);
        if (n)
            assert_true(strcmp(wf_op_at(n - 1)->name, op->name) < 0);
    }
    assert_true(n > 60);
    assert_null(wf_op_find("", "NoSuchThing"));
    assert_null(wf_op_find("ai.weft", "Add"));
    assert_ptr_equal(wf_op_find("ai.onnx", "Add"), wf_op_find("", "Add"));
    assert_string_equal(wf_op_nearest("Gemn"), "Gemm");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_perceptron_needs_no_transposes),
        cmocka_unit_test(what_the_loss_does_not_need_has_no_gradient),
        cmocka_unit_test(two_variables_with_one_gradient_get_one_each),
        cmocka_unit_test(a_second_time_does_not_disturb_the_first),
        cmocka_unit_test(a_symbolic_broadcast_is_summed_at_run_time),
        cmocka_unit_test(dropout_keeps_its_mask_for_the_way_back),
        cmocka_unit_test(an_operation_without_gradient_is_named),
        cmocka_unit_test(a_loss_is_one_number),
        cmocka_unit_test(every_operation_is_found_by_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
