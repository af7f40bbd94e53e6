/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/graph_infer.c - shapes, known, symbolic, and carried from Shape to Reshape. */
#include "tests/unit/graph_test.h"

typedef struct bench {
    wf_graph *g;
    wf_err err;
    wf_emit e;
} bench;

static void begin(bench *b)
{
    b->g = new_graph();
    b->e = wf_emit_begin(b->g, "t", &b->err);
}

static void end(bench *b)
{
    assert_ok(wf_emit_end(&b->e), b->err);
    wf_graph_free(&b->g);
}

static void fails(bench *b, wf_status rc, const char *words)
{
    assert_int_equal(wf_emit_end(&b->e), rc);
    assert_says(b->err, words);
    assert_true(b->err.hint[0] != 0); /* and says what to do */
    wf_graph_free(&b->g);
}

static void broadcasting_keeps_symbols(void **state)
{
    bench b;
    wf_value *x, *row, *column;

    (void)state;
    begin(&b);
    x = input(b.g, "x", DIMS(-1, 4));
    row = input(b.g, "row", DIMS(4));
    column = input(b.g, "column", DIMS(-1, 1));
    assert_type(wf_emit_add(&b.e, row, x), "float32[batch, 4]");
    assert_type(wf_emit_mul(&b.e, row, column), "float32[batch, 4]");
    assert_type(wf_emit_sub(&b.e, x, x), "float32[batch, 4]");
    assert_type(wf_emit_binary(&b.e, "Less", x, row), "bool[batch, 4]");
    end(&b);
}

static void shapes_that_do_not_fit_are_shown(void **state)
{
    bench b;

    (void)state;
    begin(&b);
    wf_emit_gemm(&b.e, input(b.g, "a", DIMS(32, 784)), variable(b.g, "w", DIMS(10, 784)), NULL, 1,
                 1, false, false);
    assert_says(b.err, "Gemm \"t/Gemm\"");
    assert_non_null(strstr(b.err.hint, "transB=1"));
    fails(&b, WF_SHAPE, "A is float32[32, 784], B is float32[10, 784]");
    begin(&b);
    wf_emit_add(&b.e, input(b.g, "a", DIMS(3, 4)), input(b.g, "b", DIMS(3)));
    fails(&b, WF_SHAPE, "\"a\" is float32[3, 4] and \"b\" is float32[3]");
    begin(&b);
    wf_emit_add(&b.e, input(b.g, "a", DIMS(3)), wf_emit_ints(&b.e, DIMS(1, 2, 3)));
    fails(&b, WF_SHAPE, "must be of one type");
    begin(&b);
    wf_emit_reshape(&b.e, input(b.g, "a", DIMS(3, 4)), DIMS(5, -1));
    fails(&b, WF_SHAPE, "12 elements do not divide into 5");
    begin(&b);
    wf_emit_transpose(&b.e, input(b.g, "a", DIMS(3, 4)), (int64_t[]){1, 1});
    fails(&b, WF_SHAPE, "perm");
    begin(&b);
    wf_emit_reduce_sum(&b.e, input(b.g, "a", DIMS(3, 4)), DIMS(2), false);
    fails(&b, WF_SHAPE, "axis 2");
}

/* Linear of x [3, 4], W [4, 5] and a y of so many columns, or without one. */
static void linear(bench *b, const char *activation, int64_t columns)
{
    const wf_attr attr = wf_attr_string("activation", activation);
    wf_value *in[4];

    begin(b);
    in[0] = input(b->g, "x", DIMS(3, 4));
    in[1] = variable(b->g, "w", DIMS(4, 5));
    in[2] = NULL;
    in[3] = columns ? input(b->g, "y", DIMS(3, columns)) : NULL;
    (void)wf_emit_op(&b->e, "Linear", columns ? 4 : 2, in, 1, &attr);
}

static void only_the_gradient_of_relu_takes_y(void **state)
{
    bench b;

    (void)state;
    linear(&b, "ReluGrad", 5);
    end(&b);
    linear(&b, "ReluGrad", 6);
    fails(&b, WF_SHAPE, "y is float32[3, 6], and the result float32[3, 5]");
    linear(&b, "ReluGrad", 0);
    fails(&b, WF_INVALID, "ReluGrad wants y");
    linear(&b, "Relu", 5);
    fails(&b, WF_INVALID, "only ReluGrad takes y");
    linear(&b, "Tanh", 0);
    fails(&b, WF_UNSUPPORTED, "its activation is \"Tanh\"");
}

static void matmul_broadcasts_and_takes_vectors(void **state)
{
    bench b;
    wf_value *batch, *mat, *vec;

    (void)state;
    begin(&b);
    batch = input(b.g, "b", DIMS(-1, 1, 3, 4));
    mat = input(b.g, "m", DIMS(7, 4, 5));
    vec = input(b.g, "v", DIMS(4));
    assert_type(wf_emit_matmul(&b.e, batch, mat), "float32[batch, 7, 3, 5]");
    assert_type(wf_emit_matmul(&b.e, batch, vec), "float32[batch, 1, 3]");
    assert_type(wf_emit_matmul(&b.e, vec, mat), "float32[7, 5]");
    assert_type(wf_emit_matmul(&b.e, vec, vec), "float32[]");
    end(&b);
}

/* x [batch, 1, 28, 28] to [batch, 784], as exporters write it. */
static void a_symbolic_batch_goes_through_shape_gather_concat_reshape(void **state)
{
    bench b;
    wf_value *x, *n, *to, *in[2];

    (void)state;
    begin(&b);
    x = input(b.g, "x", DIMS(-1, 1, 28, 28));
    in[0] = wf_emit_op(&b.e, "Shape", 1, &x, 0, NULL);
    in[1] = wf_emit_ints(&b.e, DIMS(0));
    n = wf_emit_op(&b.e, "Gather", 2, in, 0, NULL);
    assert_type(n, "int64[1]");
    in[0] = n;
    in[1] = wf_emit_ints(&b.e, DIMS(-1));
    to = wf_emit_op(&b.e, "Concat", 2, in, 1, (wf_attr[]){wf_attr_int("axis", 0)});
    assert_null(to->known);
    assert_type(wf_emit_binary(&b.e, "Reshape", x, to), "float32[batch, 784]");
    /* For a batch of 32 all of it is known. */
    x->axes[0].size = 32;
    assert_ok(wf_infer(b.g, &b.err), b.err);
    assert_non_null(to->known);
    assert_int_equal(((const int64_t *)to->known->data)[0], 32);
    assert_type(b.g->nodes[b.g->n_nodes - 1]->out[0], "float32[32, 784]");
    end(&b);
}

static void integers_are_followed_through_arithmetic(void **state)
{
    bench b;
    wf_value *x, *rows, *half, *sum, *big;
    wf_elem elems[WF_MAX_CARRIED];
    uint32_t n;

    (void)state;
    begin(&b);
    x = input(b.g, "x", DIMS(-1, 12));
    rows = wf_emit_dim_of(&b.e, x, 0);
    half = wf_emit_div(&b.e, wf_emit_dim_of(&b.e, x, 1), wf_emit_ints(&b.e, DIMS(2)));
    sum = wf_emit_add(&b.e, wf_emit_mul(&b.e, half, wf_emit_ints(&b.e, DIMS(3))),
                      wf_emit_ints(&b.e, DIMS(-8)));
    assert_int_equal(*(const int64_t *)sum->known->data, 10);
    assert_true(wf_value_elems(wf_emit_mul(&b.e, rows, wf_emit_ints(&b.e, DIMS(1))), elems, &n));
    assert_string_equal(elems[0].symbol, "batch");
    /* -1 is never the size of an axis, so the choice is known although the batch is not. */
    big = wf_emit_where(&b.e, wf_emit_binary(&b.e, "Equal", rows, wf_emit_ints(&b.e, DIMS(-1))),
                        wf_emit_ints(&b.e, DIMS(1)), rows);
    assert_true(wf_value_elems(big, elems, &n));
    assert_string_equal(elems[0].symbol, "batch");
    assert_true(wf_value_elems(wf_emit_div(&b.e, rows, wf_emit_ints(&b.e, DIMS(0))), elems, &n));
    assert_false(elems[0].is_known);
    end(&b);
}

static void slices_count_what_is_left(void **state)
{
    static const struct {
        int64_t start, end, step;
        const char *type;
    } rows[] = {{1, 3, 1, "float32[2]"},
                {-2, 100, 1, "float32[2]"},
                {4, 0, -1, "float32[4]"},
                {-1, INT64_MIN, -2, "float32[3]"},
                {3, 3, 1, "float32[0]"},
                {0, INT64_MAX, 3, "float32[2]"},
                {9, -9, -1, "float32[5]"},
                {INT64_MIN, INT64_MAX, INT64_MAX, "float32[1]"},
                {-1, INT64_MIN, INT64_MIN, "float32[1]"}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bench b;
        wf_value *in[5];

        begin(&b);
        in[0] = input(b.g, "x", DIMS(5));
        in[1] = wf_emit_ints(&b.e, 1, &rows[i].start);
        in[2] = wf_emit_ints(&b.e, 1, &rows[i].end);
        in[3] = wf_emit_ints(&b.e, DIMS(0));
        in[4] = wf_emit_ints(&b.e, 1, &rows[i].step);
        assert_type(wf_emit_op(&b.e, "Slice", 5, in, 0, NULL), rows[i].type);
        end(&b);
    }
}

static void unknown_ranks_are_no_error(void **state)
{
    bench b;
    wf_value *x = NULL;

    (void)state;
    begin(&b);
    assert_ok(wf_graph_add_value(b.g, "x", &x, &b.err), b.err);
    x->dtype = WF_F32;
    assert_ok(wf_graph_add_input(b.g, x, &b.err), b.err);
    assert_type(wf_emit_exp(&b.e, x), "float32[of unknown rank]");
    assert_type(wf_emit_matmul(&b.e, x, x), "float32[of unknown rank]");
    assert_type(wf_emit_reduce_sum(&b.e, x, DIMS(0), false), "float32[of unknown rank]");
    assert_type(wf_emit_op(&b.e, "Concat", 1, &x, 1, (wf_attr[]){wf_attr_int("axis", 0)}),
                "float32[of unknown rank]");
    end(&b);
}

static void losses_check_their_labels(void **state)
{
    bench b;
    wf_value *in[2];

    (void)state;
    begin(&b);
    in[0] = input(b.g, "scores", DIMS(-1, 10));
    in[1] = input(b.g, "labels", DIMS(-1));
    in[1]->dtype = WF_I64;
    assert_type(wf_emit_op(&b.e, "SoftmaxCrossEntropyLoss", 2, in, 0, NULL), "float32[]");
    in[1]->rank = 2;
    in[1]->axes[1] = (wf_axis){.size = 10, .bound = 10};
    assert_null(wf_emit_op(&b.e, "SoftmaxCrossEntropyLoss", 2, in, 0, NULL));
    fails(&b, WF_SHAPE, "labels int64[batch, 10]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(broadcasting_keeps_symbols),
        cmocka_unit_test(shapes_that_do_not_fit_are_shown),
        cmocka_unit_test(only_the_gradient_of_relu_takes_y),
        cmocka_unit_test(matmul_broadcasts_and_takes_vectors),
        cmocka_unit_test(a_symbolic_batch_goes_through_shape_gather_concat_reshape),
        cmocka_unit_test(integers_are_followed_through_arithmetic),
        cmocka_unit_test(slices_count_what_is_left),
        cmocka_unit_test(unknown_ranks_are_no_error),
        cmocka_unit_test(losses_check_their_labels),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
