/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/narrow.c - nodes between which values are kept in bfloat16 or float16: their types,
 * and what devices compute of them. */
#include "common/graph/narrow.h"
#include "common/exec/exec.h"
#include "common/kernels/kernel.h"
#include "common/tensor/dtype.h"
#include "tests/kit/remote_device.h"
#include "tests/unit/graph_test.h"

enum { ROWS = 6, INNER = 5, COLUMNS = 3, LARGE = 128 };

static wf_node *add_node(wf_graph *g, const char *op, uint32_t n_in, wf_value *in[])
{
    wf_emit e = wf_emit_begin(g, op, NULL);
    wf_value *out[1];
    wf_node *n = wf_emit_node(&e, op, n_in, in, 0, NULL, 1, out);

    assert_non_null(n);
    return n;
}

static void make_narrow(wf_graph *g, wf_node *n, const char *dtype, int64_t out)
{
    wf_err err;

    assert_ok(wf_node_set_string(g, n, WF_NARROW, dtype, &err), err);
    assert_ok(wf_node_set_int(g, n, WF_NARROW_OUT, out, &err), err);
}

/* y = (x x) w, with x x kept in `dtype`. */
static wf_graph *squares(const char *dtype)
{
    wf_graph *g = new_graph();
    wf_value *x = input(g, "x", DIMS(ROWS, INNER)), *w = input(g, "w", DIMS(INNER, COLUMNS));
    wf_node *square = add_node(g, "Mul", 2, (wf_value *[]){x, x});
    wf_node *product;
    wf_err err;

    make_narrow(g, square, dtype, 1);
    assert_ok(wf_infer_node(g, square, &err), err);
    product = add_node(g, "MatMul", 2, (wf_value *[]){x, w});
    make_narrow(g, product, dtype, 0);
    wf_node_set_in(product, 0, square->out[0]);
    assert_ok(wf_infer(g, &err), err);
    assert_ok(wf_graph_add_output(g, product->out[0], &err), err);
    return g;
}

static void operands_may_be_narrow_and_results_are_where_they_say(void **state)
{
    wf_graph *g = squares("float16");
    wf_err err;

    (void)state;
    assert_int_equal(g->nodes[0]->out[0]->dtype, WF_F16);
    assert_int_equal(g->nodes[1]->out[0]->dtype, WF_F32);
    assert_int_equal(wf_node_narrow(g->nodes[0]), WF_F16);
    /* Without the attribute its operands differ. */
    wf_node_drop_attr(g->nodes[1], WF_NARROW);
    assert_int_equal(wf_infer(g, &err), WF_SHAPE);
    wf_graph_free(&g);
}

static void a_type_that_is_not_narrow_is_refused(void **state)
{
    wf_graph *g = squares("bfloat16");
    wf_err err;

    (void)state;
    make_narrow(g, g->nodes[0], "int8", 1);
    assert_int_equal(wf_infer(g, &err), WF_INVALID);
    assert_says(err, "its attribute narrow is bfloat16 or float16");
    wf_graph_free(&g);
}

static void a_value_of_the_other_type_is_refused(void **state)
{
    wf_graph *g = squares("bfloat16");
    wf_err err;

    (void)state;
    make_narrow(g, g->nodes[1], "float16", 0);
    assert_int_equal(wf_infer(g, &err), WF_SHAPE);
    wf_graph_free(&g);
}

static float kept(wf_dtype dtype, float x)
{
    return dtype == WF_BF16 ? wf_bf16_to_f32(wf_f32_to_bf16(x)) : wf_f16_to_f32(wf_f32_to_f16(x));
}

static bool is_kept(wf_dtype type)
{
    return type != WF_NONE && wf_kernels_keep_narrow(test_device(), type);
}

/* Squares that need more digits than either type has, so that it shows where they are kept: on
 * devices that keep what the plan computes in. All else is float32. */
static void check_numbers(const char *dtype, wf_compute compute)
{
    wf_graph *g = squares(dtype);
    float x[ROWS * INNER], w[INNER * COLUMNS];
    wf_plan_options o = {.device = test_device(), .compute = compute};
    bool rounded = false, keeps = is_kept(wf_compute_kept(compute));
    wf_plan *p = NULL;
    wf_err err;

    for (int i = 0; i < ROWS * INNER; i++)
        x[i] = (float)(61 + i);
    for (int i = 0; i < INNER * COLUMNS; i++)
        w[i] = (float)(i % 4 - 1);
    assert_ok(wf_plan_new(g, &o, &p, &err), err);
    wf_plan_bind_input(p, 0, x);
    wf_plan_bind_input(p, 1, w);
    assert_ok(wf_plan_run(p, &(wf_step_key){0}, NULL, NULL, &err), err);
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < COLUMNS; c++) {
            float want = 0, exact = 0;

            for (int k = 0; k < INNER; k++) {
                float square = x[r * INNER + k] * x[r * INNER + k];

                want += (keeps ? kept(wf_dtype_of(dtype), square) : square) * w[k * COLUMNS + c];
                exact += square * w[k * COLUMNS + c];
            }
            rounded |= want != exact;
            assert_true(((const float *)wf_plan_output_data(p, 0))[r * COLUMNS + c] == want);
        }
    assert_int_equal(rounded, keeps);
    wf_plan_free(&p);
    wf_graph_free(&g);
}

static void values_between_nodes_are_rounded_to_the_type_if_the_device_keeps_it(void **state)
{
    (void)state;
    for (int compute = WF_COMPUTE_F32; compute < WF_COMPUTE_TF32; compute++) {
        check_numbers("bfloat16", (wf_compute)compute);
        check_numbers("float16", (wf_compute)compute);
    }
}

/* x x in `dtype`, and what a plan has of memory for it. */
static wf_plan_usage memory_of_large_squares(const char *dtype, wf_compute compute)
{
    wf_graph *g = new_graph();
    wf_value *x = input(g, "x", DIMS(LARGE, LARGE));
    wf_node *square = add_node(g, "Mul", 2, (wf_value *[]){x, x}), *sum;
    wf_plan_options o = {.device = test_device(), .compute = compute};
    wf_plan_usage u;
    wf_plan *p = NULL;
    wf_err err;

    make_narrow(g, square, dtype, 1);
    assert_ok(wf_infer_node(g, square, &err), err);
    sum = add_node(g, "MatMul", 2, (wf_value *[]){x, x});
    make_narrow(g, sum, dtype, 0);
    wf_node_set_in(sum, 0, square->out[0]);
    assert_ok(wf_infer(g, &err), err);
    assert_ok(wf_graph_add_output(g, sum->out[0], &err), err);
    assert_ok(wf_plan_new(g, &o, &p, &err), err);
    u = wf_plan_memory(p);
    wf_plan_free(&p);
    wf_graph_free(&g);
    return u;
}

static void a_narrow_value_takes_half_the_memory_where_it_is_kept_as_on_every_gpu(void **state)
{
    static const char *const types[] = {"bfloat16", "float16"};

    (void)state;
    for (size_t i = 0; i < WF_COUNT(types); i++) {
        const bool keeps = is_kept(wf_dtype_of(types[i]));
        size_t saved = memory_of_large_squares(types[i], WF_COMPUTE_F32).tensors_bytes -
                       memory_of_large_squares(types[i], wf_compute_of(types[i])).tensors_bytes;

        if (strncmp(test_device()->name, "cuda", 4) == 0)
            assert_true(keeps);
        assert_int_equal(saved, keeps ? LARGE * LARGE * 2 : 0);
    }
}

static void an_operation_without_a_kernel_of_float32_has_no_narrow_one(void **state)
{
    wf_graph *g = squares("bfloat16");
    wf_node *n = g->nodes[1];
    const wf_kernel *k = NULL;
    wf_err err;

    (void)state;
    if (is_kept(WF_BF16)) {
        assert_ok(wf_kernel_find(n, test_device(), &k, &err), err);
        assert_null(k->op);
    }
    n->in[0]->dtype = WF_U8;
    assert_int_equal(wf_kernel_find(n, test_device(), &k, &err), WF_UNSUPPORTED);
    wf_graph_free(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operands_may_be_narrow_and_results_are_where_they_say),
        cmocka_unit_test(a_type_that_is_not_narrow_is_refused),
        cmocka_unit_test(a_value_of_the_other_type_is_refused),
        cmocka_unit_test(values_between_nodes_are_rounded_to_the_type_if_the_device_keeps_it),
        cmocka_unit_test(a_narrow_value_takes_half_the_memory_where_it_is_kept_as_on_every_gpu),
        cmocka_unit_test(an_operation_without_a_kernel_of_float32_has_no_narrow_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
