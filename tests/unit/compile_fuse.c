/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/compile_fuse.c - products with what follows them: where it is one pass, and where not.
 */
#include "tests/unit/compile_fuse.h"

static const int64_t three_axes[] = {-1, 2, 3};

/* x [batch, 2, 3] by w [4, 3] transposed, plus a bias, cut at 0. */
static void a_linear_layer_is_one_node(void **state)
{
    lab l;
    wf_value *v, *w;
    wf_compiled *c;

    (void)state;
    lab_open(&l, 3, three_axes);
    w = wf_emit_transpose(&l.e, add_variable(l.g, "w", 2, (const int64_t[]){4, 3}),
                          (const int64_t[]){1, 0});
    v = wf_emit_matmul(&l.e, l.x, w);
    v = wf_emit_add(&l.e, add_variable(l.g, "b", 1, (const int64_t[]){4}), v);
    lab_output(&l, wf_emit_unary(&l.e, "Relu", v), "y");
    c = lab_close(&l);
    assert_int_equal(c->graph->n_nodes, 1);
    assert_string_equal(c->graph->nodes[0]->op->name, "Linear");
    assert_string_equal(wf_node_string(c->graph->nodes[0], "activation", ""), "Relu");
    assert_string_equal(c->graph->outputs[0]->axes[0].symbol, "batch");
    wf_compiled_free(&c);
}

static void a_gemm_takes_its_relu_in(void **state)
{
    lab l;
    wf_value *v, *w, *b;
    wf_compiled *c;

    (void)state;
    lab_open(&l, 2, (const int64_t[]){-1, 70});
    w = add_variable(l.g, "w", 2, (const int64_t[]){33, 70});
    b = add_variable(l.g, "b", 1, (const int64_t[]){33});
    v = wf_emit_gemm(&l.e, l.x, w, b, 1, 1, false, true);
    v = wf_emit_unary(&l.e, "Relu", v);
    c = lab_close_grad(&l, v);
    assert_int_equal(count_op(c->graph, "Linear"), 1);
    assert_int_equal(count_op(c->graph, "Relu"), 0);
    wf_compiled_free(&c);
}

static void what_else_reads_a_product_keeps_it(void **state)
{
    lab l;
    wf_value *v, *y;
    wf_compiled *c;

    (void)state;
    lab_open(&l, 3, three_axes);
    v = wf_emit_matmul(&l.e, l.x, add_variable(l.g, "w", 2, (const int64_t[]){3, 4}));
    y = wf_emit_add(&l.e, v, add_variable(l.g, "b", 1, (const int64_t[]){4}));
    lab_output(&l, wf_emit_matmul(&l.e, v, wf_emit_transpose(&l.e, y, (int64_t[]){0, 2, 1})), "y");
    c = lab_close(&l);
    assert_int_equal(count_op(c->graph, "Linear"), 0);
    wf_compiled_free(&c);

    lab_open(&l, 3, three_axes); /* an output in the middle */
    v = wf_emit_matmul(&l.e, l.x, add_variable(l.g, "w", 2, (const int64_t[]){3, 4}));
    lab_output(&l, v, "middle");
    lab_output(&l, wf_emit_unary(&l.e, "Relu", v), "y");
    c = lab_close(&l);
    assert_int_equal(count_op(c->graph, "Linear"), 0);
    wf_compiled_free(&c);
}

static void other_sums_are_no_bias(void **state)
{
    lab l;
    wf_value *v;
    wf_compiled *c;

    (void)state;
    lab_open(&l, 3, three_axes); /* a column */
    v = wf_emit_matmul(&l.e, l.x, add_variable(l.g, "w", 2, (const int64_t[]){3, 2}));
    lab_output(&l, wf_emit_add(&l.e, v, add_variable(l.g, "b", 2, (const int64_t[]){2, 1})), "y");
    c = lab_close(&l);
    assert_int_equal(count_op(c->graph, "Linear"), 0);
    wf_compiled_free(&c);

    lab_open(&l, 2, (const int64_t[]){-1, 3}); /* a weighted one */
    v = add_variable(l.g, "w", 2, (const int64_t[]){3, 4});
    v = wf_emit_gemm(&l.e, l.x, v, add_variable(l.g, "b", 1, (const int64_t[]){4}), 1, 0.5f, false,
                     false);
    lab_output(&l, wf_emit_unary(&l.e, "Relu", v), "y");
    c = lab_close(&l);
    assert_int_equal(count_op(c->graph, "Linear"), 0);
    wf_compiled_free(&c);
}

static void an_export_has_onnx_operations_alone(void **state)
{
    lab l;
    wf_value *v;
    wf_compiled *c;
    wf_compile_spec spec = {.mode = WF_COMPILE_INFER, .is_portable = true};

    (void)state;
    lab_open(&l, 3, three_axes);
    v = wf_emit_matmul(&l.e, l.x, add_variable(l.g, "w", 2, (const int64_t[]){3, 4}));
    lab_output(&l, wf_emit_unary(&l.e, "Relu", v), "y");
    spec.graph = l.g;
    c = compile(&spec);
    for (size_t i = 0; i < c->graph->n_nodes; i++)
        assert_string_equal(c->graph->nodes[i]->op->domain, WF_DOMAIN_ONNX);
    wf_compiled_free(&c);
    wf_graph_free(&l.g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_linear_layer_is_one_node),
        cmocka_unit_test(a_gemm_takes_its_relu_in),
        cmocka_unit_test(what_else_reads_a_product_keeps_it),
        cmocka_unit_test(other_sums_are_no_bias),
        cmocka_unit_test(an_export_has_onnx_operations_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
