/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/compile_move.c - transposes, slices and copies of one number that a product, or
 * nobody, need do. */
#include "tests/unit/compile_fuse.h"

/* x [batch, 3, 4] and a multiple of it, with the last two axes of either exchanged; and the two
 * products that are the gradient. */
static void products_read_transposes_as_they_lie(void **state)
{
    static const int64_t turn[] = {0, 2, 1};

    (void)state;
    for (int form = 1; form < 4; form++) {
        lab l;
        wf_value *a, *b;
        wf_compiled *c;

        lab_open(&l, 3, (const int64_t[]){-1, 3, 4});
        a = wf_emit_mul(&l.e, l.x, lab_variable(&l, "s", 0, NULL));
        a = form & 1 ? wf_emit_transpose(&l.e, a, turn) : a;
        b = wf_emit_mul(&l.e, l.x, lab_variable(&l, "w", 1, (const int64_t[]){4}));
        if (form == 3)
            b = wf_emit_reshape(&l.e, b, 3, (const int64_t[]){0, 4, 3});
        b = form & 2 ? wf_emit_transpose(&l.e, b, turn) : b;
        c = lab_close_grad(&l, wf_emit_matmul(&l.e, a, b));
        assert_true(count_op(c->graph, "Product") >= 1);
        assert_int_equal(count_op(c->graph, "Transpose"), 0);
        wf_compiled_free(&c);
    }
}

static void plain_matrices_are_a_gemm(void **state)
{
    lab l;
    wf_value *v;
    wf_compiled *c;

    (void)state;
    lab_open(&l, 2, (const int64_t[]){-1, 4});
    v = wf_emit_transpose(&l.e, l.x, (const int64_t[]){1, 0});
    lab_output(&l, wf_emit_matmul(&l.e, v, l.x), "y");
    c = lab_close(&l);
    assert_int_equal(c->graph->n_nodes, 1);
    assert_int_equal(wf_node_int(c->graph->nodes[0], "transA", 0), 1);
    wf_compiled_free(&c);
}

static void other_transposes_stay_beside_a_product(void **state)
{
    lab l;
    wf_value *v;
    wf_compiled *c;

    (void)state;
    lab_open(&l, 4, (const int64_t[]){-1, 3, 2, 4});
    v = wf_emit_transpose(&l.e, l.x, (const int64_t[]){0, 2, 3, 1});
    v = wf_emit_matmul(&l.e, wf_emit_transpose(&l.e, l.x, (const int64_t[]){0, 2, 1, 3}), v);
    lab_output(&l, v, "y");
    c = lab_close(&l);
    assert_int_equal(count_op(c->graph, "Transpose"), 2);
    assert_int_equal(count_op(c->graph, "Product"), 0);
    wf_compiled_free(&c);
}

/* The gradient of a weight [out, in] that is transposed on its way. */
static void a_transposed_gemm_is_a_gemm(void **state)
{
    lab l;
    wf_value *w;
    wf_compiled *c;

    (void)state;
    lab_open(&l, 3, (const int64_t[]){-1, 2, 3});
    w = lab_variable(&l, "w", 2, (const int64_t[]){4, 3});
    w = wf_emit_transpose(&l.e, w, (const int64_t[]){1, 0});
    c = lab_close_grad(&l, wf_emit_matmul(&l.e, l.x, w));
    assert_int_equal(count_op(c->graph, "Transpose"), 0);
    wf_compiled_free(&c);
}

static const int64_t to_last[] = {0, 2, 3, 1}, to_first[] = {0, 3, 1, 2};

/* As an exporter of a model with channels last writes a bias and an activation. */
static void elementwise_operations_go_out_between_transposes(void **state)
{
    lab l;
    wf_value *v, *other;
    wf_compiled *c;

    (void)state;
    lab_open(&l, 4, (const int64_t[]){-1, 3, 4, 5});
    v = wf_emit_transpose(&l.e, l.x, to_last);
    v = wf_emit_add(&l.e, v, lab_variable(&l, "row", 1, (const int64_t[]){3}));
    v = wf_emit_unary(&l.e, "Tanh", wf_emit_mul(&l.e, v, lab_scalar(&l, 0.3)));
    other = wf_emit_transpose(&l.e, wf_emit_unary(&l.e, "Abs", l.x), to_last);
    v = wf_emit_sub(&l.e, v, other);
    c = lab_close_grad(&l, wf_emit_transpose(&l.e, v, to_first));
    assert_int_equal(count_op(c->graph, "Transpose"), 0);
    wf_compiled_free(&c);
}

static void transposes_that_do_not_meet_stay(void **state)
{
    lab l;
    wf_value *v;
    wf_compiled *c;

    (void)state;
    lab_open(&l, 4, (const int64_t[]){-1, 3, 4, 5}); /* the wrong way back */
    v = wf_emit_unary(&l.e, "Tanh", wf_emit_transpose(&l.e, l.x, to_last));
    lab_output(&l, wf_emit_transpose(&l.e, v, to_last), "y");
    c = lab_close(&l);
    assert_int_equal(count_op(c->graph, "Transpose"), 2);
    wf_compiled_free(&c);

    lab_open(&l, 4, (const int64_t[]){-1, 3, 4, 5}); /* someone reads what lies between */
    v = wf_emit_unary(&l.e, "Tanh", wf_emit_transpose(&l.e, l.x, to_last));
    lab_output(&l, wf_emit_transpose(&l.e, v, to_first), "y");
    lab_output(&l, v, "between");
    c = lab_close(&l);
    assert_int_equal(count_op(c->graph, "Transpose"), 2);
    wf_compiled_free(&c);

    lab_open(&l, 4, (const int64_t[]){-1, 3, 4, 5}); /* the block lies another way */
    v = wf_emit_transpose(&l.e, l.x, to_last);
    v = wf_emit_add(&l.e, v, lab_variable(&l, "block", 2, (const int64_t[]){5, 3}));
    lab_output(&l, wf_emit_transpose(&l.e, v, to_first), "y");
    c = lab_close(&l);
    assert_int_equal(count_op(c->graph, "Transpose"), 2);
    wf_compiled_free(&c);
}

static wf_value *slice(lab *l, wf_value *x, int64_t begin, int64_t end, int64_t axis, int64_t step)
{
    wf_value *in[] = {x, wf_emit_ints(&l->e, 1, &begin), wf_emit_ints(&l->e, 1, &end),
                      wf_emit_ints(&l->e, 1, &axis), wf_emit_ints(&l->e, 1, &step)};

    return wf_emit_op(&l->e, "Slice", 5, in, 0, NULL);
}

/* Query, key and value out of one product; the last bound as exporters have it. */
static void gradients_of_slices_lie_side_by_side(void **state)
{
    lab l;
    wf_value *v, *all;
    wf_compiled *c;

    (void)state;
    lab_open(&l, 3, (const int64_t[]){-1, 2, 6});
    all = wf_emit_mul(&l.e, l.x, lab_variable(&l, "w", 1, (const int64_t[]){6}));
    v = wf_emit_mul(&l.e, slice(&l, all, 2, 4, 2, 1), slice(&l, all, 0, 2, -1, 1));
    c = lab_close_grad(&l, wf_emit_mul(&l.e, v, slice(&l, all, -2, INT64_MAX, 2, 1)));
    assert_int_equal(count_op(c->graph, "SliceGrad"), 0);
    assert_int_equal(count_op(c->graph, "Concat"), 1);
    wf_compiled_free(&c);
}

static void slices_with_gaps_or_overlaps_are_summed(void **state)
{
    static const int64_t bounds[][4] = {{0, 3, 2, 6}, {0, 2, 3, 6}};

    (void)state;
    for (size_t i = 0; i < WF_COUNT(bounds); i++) {
        lab l;
        wf_value *v, *all;
        wf_compiled *c;
        const int64_t *b = bounds[i];

        lab_open(&l, 3, (const int64_t[]){-1, 2, 6});
        all = wf_emit_mul(&l.e, l.x, lab_variable(&l, "w", 1, (const int64_t[]){6}));
        v = wf_emit_reduce_sum(&l.e, slice(&l, all, b[0], b[1], 2, 1), 1, (const int64_t[]){2},
                               true);
        c = lab_close_grad(&l, wf_emit_mul(&l.e, v, slice(&l, all, b[2], b[3], 2, 1)));
        assert_int_equal(count_op(c->graph, "SliceGrad"), 2);
        wf_compiled_free(&c);
    }
}

/* The gradient of a mean is one number for all. */
static void one_number_is_not_spread_for_arithmetic(void **state)
{
    lab l;
    wf_value *v;
    wf_compiled *c;

    (void)state;
    lab_open(&l, 3, (const int64_t[]){-1, 2, 6});
    v = wf_emit_mul(&l.e, l.x, lab_variable(&l, "w", 1, (const int64_t[]){6}));
    c = lab_close_grad(&l, wf_emit_reduce_mean(&l.e, wf_emit_mul(&l.e, v, v), 0, NULL, false));
    assert_int_equal(count_op(c->graph, "Expand"), 0);
    wf_compiled_free(&c);

    lab_open(&l, 3, (const int64_t[]){-1, 2, 6}); /* the product is as large as its other side */
    v = wf_emit_expand_like(&l.e, lab_scalar(&l, 3.0), l.x);
    v = wf_emit_mul(&l.e, v, lab_variable(&l, "w", 1, (const int64_t[]){6}));
    lab_output(&l, v, "y");
    c = lab_close(&l);
    assert_int_equal(count_op(c->graph, "Expand"), 1);
    wf_compiled_free(&c);
}

/* [batch, 2, 3] to rows and back: the shapes say that nothing was lost. */
static void multiples_of_the_batch_keep_their_name(void **state)
{
    lab l;
    wf_value *v, *rows;
    wf_compiled *c;

    (void)state;
    lab_open(&l, 3, (const int64_t[]){-1, 2, 3});
    rows = wf_emit_reshape(&l.e, l.x, 2, (const int64_t[]){-1, 3});
    assert_string_equal(rows->axes[0].symbol, "2*batch");
    v = wf_emit_reshape(&l.e, rows, 1, (const int64_t[]){-1});
    assert_string_equal(v->axes[0].symbol, "6*batch");
    v = wf_emit_reshape(&l.e, v, 2, (const int64_t[]){-1, 6});
    assert_string_equal(v->axes[0].symbol, "batch");
    v = wf_emit_reshape(&l.e, rows, 3, (const int64_t[]){-1, 2, 3});
    assert_true(wf_same_shape(v, l.x));
    v = wf_emit_reshape(&l.e, rows, 2, (const int64_t[]){-1, 5}); /* not a whole multiple */
    assert_null(v->axes[0].symbol);
    rows = wf_emit_unary(&l.e, "Tanh", rows);
    v = wf_emit_reshape(&l.e, rows, 3, (const int64_t[]){-1, 2, 3});
    lab_output(&l, wf_emit_add(&l.e, l.x, v), "y");
    c = lab_close(&l);
    wf_compiled_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_read_transposes_as_they_lie),
        cmocka_unit_test(plain_matrices_are_a_gemm),
        cmocka_unit_test(other_transposes_stay_beside_a_product),
        cmocka_unit_test(a_transposed_gemm_is_a_gemm),
        cmocka_unit_test(elementwise_operations_go_out_between_transposes),
        cmocka_unit_test(transposes_that_do_not_meet_stay),
        cmocka_unit_test(gradients_of_slices_lie_side_by_side),
        cmocka_unit_test(slices_with_gaps_or_overlaps_are_summed),
        cmocka_unit_test(one_number_is_not_spread_for_arithmetic),
        cmocka_unit_test(multiples_of_the_batch_keep_their_name),
    };

    return lab_run(tests);
}
