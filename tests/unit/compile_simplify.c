/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/compile_simplify.c - fold, simplify, cse and recognise make less of a graph, and the
 * result means the same. */
#include "tests/unit/compile_eval.h"
#include <math.h>

enum { N = EVAL_BATCH };

/* A graph with input x [batch, 2, 3] f32, an emitter, and what it is checked with. */
typedef struct lab {
    wf_graph *g;
    wf_emit e;
    wf_value *x;
    wf_err err;
    float data[N * 6];
} lab;

static void lab_open(lab *l)
{
    memset(l, 0, sizeof(*l));
    must(wf_graph_new("lab", &l->g, &l->err), &l->err);
    l->e = wf_emit_begin(l->g, "n", &l->err);
    l->x = add_input(l->g, "x", WF_F32, 3, (const int64_t[]){-1, 2, 3});
    fill(l->data, N * 6, 3);
}

/* Compiles the graph with the output y, and checks that the result equals the graph's own and has
 * `nodes` nodes. Gives the compiled graph. */
static wf_compiled *lab_close(lab *l, wf_value *y, size_t nodes)
{
    wf_compile_spec spec = {.graph = l->g, .mode = WF_COMPILE_RUN, .stop_after = "cse"};
    wf_compiled *c;
    evaluated before, after;
    fed feeds[] = {{"x", l->data}, {NULL, NULL}};
    const wf_tensor *was, *is;

    must(wf_emit_end(&l->e), &l->err);
    must(wf_graph_rename_value(l->g, y, "y", &l->err), &l->err);
    must(wf_graph_add_output(l->g, y, &l->err), &l->err);
    c = compile(&spec);
    assert_string_equal(c->graph->outputs[0]->name, "y");
    assert_int_equal(c->graph->n_nodes, nodes);
    before = eval_graph(l->g, feeds);
    after = eval_graph(c->graph, feeds);
    was = output_of(&before, "y");
    is = output_of(&after, "y");
    assert_int_equal(was->rank, is->rank);
    assert_memory_equal(was->dims, is->dims, was->rank * sizeof(*was->dims));
    for (int64_t i = 0; i < wf_elems(was); i++)
        assert_true(wf_f32(was)[i] == wf_f32(is)[i]); /* also 0 and -0 */
    eval_free(&before);
    eval_free(&after);
    wf_graph_free(&l->g);
    return c;
}

static void what_does_nothing_goes(void **state)
{
    lab l;
    wf_value *v;
    wf_compiled *c;

    (void)state;
    lab_open(&l);
    v = wf_emit_identity(&l.e, l.x);
    v = wf_emit_mul(&l.e, v, wf_emit_scalar(&l.e, WF_F32, 1.0));
    v = wf_emit_add(&l.e, wf_emit_scalar(&l.e, WF_F32, 0.0), v);
    v = wf_emit_sub(&l.e, v, wf_emit_scalar(&l.e, WF_F32, 0.0));
    v = wf_emit_div(&l.e, v, wf_emit_scalar(&l.e, WF_F32, 1.0));
    v = wf_emit_neg(&l.e, wf_emit_neg(&l.e, v));
    v = wf_emit_exp(&l.e, v);
    c = lab_close(&l, wf_emit_identity(&l.e, v), 1);
    assert_int_equal(count_op(c->graph, "Exp"), 1);
    wf_compiled_free(&c);
}

static void an_output_that_is_an_input_keeps_a_node(void **state)
{
    lab l;
    wf_compiled *c;

    (void)state;
    lab_open(&l);
    c = lab_close(&l, wf_emit_identity(&l.e, l.x), 1);
    wf_compiled_free(&c);
}

static void movers_of_shape_collapse(void **state)
{
    lab l;
    wf_value *v;
    wf_compiled *c;
    wf_attr flat = wf_attr_int("axis", 1);

    (void)state;
    lab_open(&l);
    v = wf_emit_op(&l.e, "Flatten", 1, &l.x, 1, &flat);
    v = wf_emit_reshape(&l.e, v, 3, (const int64_t[]){0, 3, 2});
    v = wf_emit_reshape(&l.e, v, 2, (const int64_t[]){-1, 3});
    c = lab_close(&l, wf_emit_exp(&l.e, v), 2);
    wf_compiled_free(&c);

    lab_open(&l); /* to its own shape: nothing is left */
    v = wf_emit_reshape(&l.e, l.x, 2, (const int64_t[]){0, 6});
    v = wf_emit_reshape(&l.e, v, 3, (const int64_t[]){0, 2, 3});
    c = lab_close(&l, wf_emit_exp(&l.e, v), 1);
    wf_compiled_free(&c);
}

/* As the dynamo exporter writes a view: Shape, Gather, Concat, Reshape. */
static void a_computed_target_becomes_a_constant(void **state)
{
    lab l;
    wf_value *in[2];
    wf_attr axis = wf_attr_int("axis", 0);
    wf_compiled *c;

    (void)state;
    lab_open(&l);
    in[0] = wf_emit_dim_of(&l.e, l.x, 0);
    in[1] = wf_emit_ints(&l.e, 1, (const int64_t[]){6});
    in[1] = wf_emit_op(&l.e, "Concat", 2, in, 1, &axis);
    in[0] = l.x;
    c = lab_close(&l, wf_emit_op(&l.e, "Reshape", 2, in, 0, NULL), 1);
    assert_true(wf_value_is_constant(c->graph->nodes[0]->in[1]));
    wf_compiled_free(&c);
}

static void transposes_and_casts_collapse(void **state)
{
    lab l;
    wf_value *v;
    wf_compiled *c;

    (void)state;
    lab_open(&l);
    v = wf_emit_transpose(&l.e, l.x, (const int64_t[]){2, 0, 1});
    v = wf_emit_transpose(&l.e, v, (const int64_t[]){1, 2, 0});
    v = wf_emit_cast(&l.e, wf_emit_cast(&l.e, v, WF_F64), WF_F32);
    c = lab_close(&l, wf_emit_exp(&l.e, v), 1);
    wf_compiled_free(&c);

    lab_open(&l); /* two that do not cancel become one */
    v = wf_emit_transpose(&l.e, l.x, (const int64_t[]){2, 0, 1});
    v = wf_emit_transpose(&l.e, v, (const int64_t[]){0, 2, 1});
    c = lab_close(&l, v, 1);
    wf_compiled_free(&c);

    lab_open(&l); /* a cast that loses something stays */
    v = wf_emit_cast(&l.e, wf_emit_cast(&l.e, l.x, WF_I32), WF_F32);
    c = lab_close(&l, v, 2);
    wf_compiled_free(&c);
}

static void gemm_takes_a_transpose_in(void **state)
{
    lab l;
    wf_value *v, *w;
    wf_compiled *c;

    (void)state;
    lab_open(&l);
    w = add_variable(l.g, "w", 2, (const int64_t[]){4, 6});
    w = wf_emit_transpose(&l.e, w, (const int64_t[]){1, 0});
    v = wf_emit_reshape(&l.e, l.x, 2, (const int64_t[]){0, 6});
    c = lab_close(&l, wf_emit_gemm(&l.e, v, w, NULL, 1.0f, 1.0f, false, false), 2);
    assert_int_equal(wf_node_int(c->graph->nodes[1], "transB", 0), 1);
    wf_compiled_free(&c);
}

static void powers_are_products(void **state)
{
    lab l;
    wf_value *v;
    wf_compiled *c;

    (void)state;
    lab_open(&l);
    v = wf_emit_pow(&l.e, l.x, wf_emit_scalar(&l.e, WF_F32, 2.0));
    v = wf_emit_div(&l.e, v, wf_emit_scalar(&l.e, WF_F32, -4.0));
    c = lab_close(&l, v, 2);
    assert_int_equal(count_op(c->graph, "Mul"), 2);
    wf_compiled_free(&c);

    lab_open(&l); /* not exact */
    v = wf_emit_div(&l.e, l.x, wf_emit_scalar(&l.e, WF_F32, 3.0));
    c = lab_close(&l, wf_emit_pow(&l.e, v, wf_emit_scalar(&l.e, WF_F32, 3.0)), 2);
    assert_int_equal(count_op(c->graph, "Mul"), 0);
    wf_compiled_free(&c);
}

static void what_takes_all_goes(void **state)
{
    lab l;
    wf_value *v, *in[4];
    wf_attr axis = wf_attr_int("axis", 0);
    wf_compiled *c;

    (void)state;
    lab_open(&l);
    v = wf_emit_op(&l.e, "Concat", 1, &l.x, 1, &axis);
    v = wf_emit_transpose(&l.e, v, (const int64_t[]){0, 1, 2});
    v = wf_emit_binary(&l.e, "Tile", v, wf_emit_ints(&l.e, 3, (const int64_t[]){1, 1, 1}));
    in[0] = v;
    in[1] = wf_emit_ints(&l.e, 1, (const int64_t[]){0});
    in[2] = wf_emit_ints(&l.e, 1, (const int64_t[]){INT64_MAX});
    in[3] = wf_emit_ints(&l.e, 1, (const int64_t[]){2});
    v = wf_emit_op(&l.e, "Slice", 4, in, 0, NULL);
    v = wf_emit_unsqueeze(&l.e, v, 1, (const int64_t[]){1});
    v = wf_emit_binary(&l.e, "Squeeze", v, wf_emit_ints(&l.e, 1, (const int64_t[]){1}));
    c = lab_close(&l, wf_emit_exp(&l.e, v), 1);
    wf_compiled_free(&c);
}

static void constants_fold_and_equal_nodes_merge(void **state)
{
    lab l;
    wf_value *v, *a, *b;
    wf_compiled *c;

    (void)state;
    lab_open(&l);
    v = wf_emit_mul(&l.e, wf_emit_scalar(&l.e, WF_F32, 3.0), wf_emit_scalar(&l.e, WF_F32, 0.5));
    a = wf_emit_exp(&l.e, wf_emit_mul(&l.e, l.x, v));
    b = wf_emit_exp(&l.e, wf_emit_mul(&l.e, l.x, wf_emit_scalar(&l.e, WF_F32, 1.5)));
    c = lab_close(&l, wf_emit_add(&l.e, a, b), 3);
    wf_compiled_free(&c);
}

static void dropout_goes_outside_training(void **state)
{
    lab l;
    wf_value *in[3];
    wf_compiled *c;

    (void)state;
    lab_open(&l);
    in[0] = l.x;
    in[1] = wf_emit_scalar(&l.e, WF_F32, 0.5);
    in[2] = wf_emit_scalar(&l.e, WF_BOOL, 0.0);
    c = lab_close(&l, wf_emit_exp(&l.e, wf_emit_op(&l.e, "Dropout", 3, in, 0, NULL)), 1);
    wf_compiled_free(&c);
}

/* mean(-(y log s + (1 - y) log(1 - s))), s = Sigmoid(x w), as PyTorch's exporter writes it. */
static wf_graph *written_out_bce(void)
{
    wf_err err = {0};
    wf_graph *g = NULL;
    wf_emit e;
    wf_value *x, *y, *s, *one, *a, *b, *loss;

    must(wf_graph_new("bce", &g, &err), &err);
    e = wf_emit_begin(g, "n", &err);
    x = add_input(g, "x", WF_F32, 2, (const int64_t[]){-1, 1});
    y = add_input(g, "y", WF_F32, 2, (const int64_t[]){-1, 1});
    s = wf_emit_matmul(&e, x, add_variable(g, "w", 2, (const int64_t[]){1, 1}));
    s = wf_emit_unary(&e, "Sigmoid", s);
    one = wf_emit_scalar(&e, WF_F32, 1.0);
    a = wf_emit_mul(&e, y, wf_emit_log(&e, s));
    b = wf_emit_mul(&e, wf_emit_sub(&e, one, y), wf_emit_log(&e, wf_emit_sub(&e, one, s)));
    loss = wf_emit_neg(&e, wf_emit_add(&e, a, b));
    loss = wf_emit_reduce_mean(&e, loss, 0, NULL, false);
    must(wf_emit_end(&e), &err);
    must(wf_graph_rename_value(g, loss, "loss", &err), &err);
    must(wf_graph_add_output(g, loss, &err), &err);
    return g;
}

static void logs_of_sigmoids_survive_large_logits(void **state)
{
    wf_graph *g = written_out_bce();
    wf_compile_spec spec = {.graph = g, .mode = WF_COMPILE_GRAD};
    wf_compiled *c = compile(&spec);
    float w = wf_f32(wf_graph_value(g, "w")->known)[0];
    float x[N] = {-1000.0f, 1000.0f, 0.0f, 0.25f, -3.0f}, y[N] = {1.0f, 0.0f, 1.0f, 0.0f, 1.0f};
    fed feeds[] = {{"x", x}, {"y", y}, {NULL, NULL}};
    double loss = 0.0, grad = 0.0;
    evaluated p = eval_graph(c->graph, feeds);

    (void)state;
    for (int i = 0; i < N; i++) {
        double z = (double)x[i] * (double)w, t = y[i];

        loss += (fmax(z, 0.0) - z * t + log1p(exp(-fabs(z)))) / N;
        grad += (1.0 / (1.0 + exp(-z)) - t) * (double)x[i] / N;
    }
    assert_true(fabs(wf_f32(output_of(&p, "loss"))[0] - loss) < 1e-4 * fabs(loss));
    assert_string_equal(c->outputs[1].label, "w");
    assert_true(fabs(wf_f32(output_of(&p, c->outputs[1].name))[0] - grad) <
                1e-4 * fabs(grad) + 1e-6);
    eval_free(&p);
    wf_compiled_free(&c);
    wf_graph_free(&g);
}

/* -mean(logsigmoid(x w)), as F.logsigmoid is exported. */
static wf_graph *written_out_logsigmoid(void)
{
    wf_err err = {0};
    wf_graph *g = NULL;
    wf_emit e;
    wf_value *x, *s, *loss;

    must(wf_graph_new("logsigmoid", &g, &err), &err);
    e = wf_emit_begin(g, "n", &err);
    x = add_input(g, "x", WF_F32, 2, (const int64_t[]){-1, 1});
    s = wf_emit_matmul(&e, x, add_variable(g, "w", 2, (const int64_t[]){1, 1}));
    s = wf_emit_log(&e, wf_emit_unary(&e, "Sigmoid", s));
    loss = wf_emit_reduce_mean(&e, wf_emit_neg(&e, s), 0, NULL, false);
    must(wf_emit_end(&e), &err);
    must(wf_graph_rename_value(g, loss, "loss", &err), &err);
    must(wf_graph_add_output(g, loss, &err), &err);
    return g;
}

static void logsigmoid_survives_large_logits(void **state)
{
    wf_graph *g = written_out_logsigmoid();
    wf_compile_spec spec = {.graph = g, .mode = WF_COMPILE_GRAD};
    wf_compiled *c = compile(&spec);
    float w = wf_f32(wf_graph_value(g, "w")->known)[0];
    float x[N] = {-1000.0f, 1000.0f, 0.0f, 0.25f, -300.0f};
    fed feeds[] = {{"x", x}, {NULL, NULL}};
    double loss = 0.0, grad = 0.0;
    evaluated p = eval_graph(c->graph, feeds);

    (void)state;
    for (int i = 0; i < N; i++) {
        double z = (double)x[i] * (double)w;

        loss += (fmax(-z, 0.0) + log1p(exp(-fabs(z)))) / N;
        grad -= (double)x[i] / (1.0 + exp(z)) / N;
    }
    assert_true(fabs(wf_f32(output_of(&p, "loss"))[0] - loss) < 1e-4 * fabs(loss));
    assert_true(fabs(wf_f32(output_of(&p, c->outputs[1].name))[0] - grad) <
                1e-4 * fabs(grad) + 1e-6);
    eval_free(&p);
    wf_compiled_free(&c);
    wf_graph_free(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_does_nothing_goes),
        cmocka_unit_test(an_output_that_is_an_input_keeps_a_node),
        cmocka_unit_test(movers_of_shape_collapse),
        cmocka_unit_test(a_computed_target_becomes_a_constant),
        cmocka_unit_test(transposes_and_casts_collapse),
        cmocka_unit_test(gemm_takes_a_transpose_in),
        cmocka_unit_test(powers_are_products),
        cmocka_unit_test(what_takes_all_goes),
        cmocka_unit_test(constants_fold_and_equal_nodes_merge),
        cmocka_unit_test(dropout_goes_outside_training),
        cmocka_unit_test(logs_of_sigmoids_survive_large_logits),
        cmocka_unit_test(logsigmoid_survives_large_logits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
