/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/kernels.c - the table of kernels against the table of operations, and single nodes.
 * What kernels compute is checked by tests/parity/kernels.py. */
#include "common/graph/ops/ops.h"
#include "common/kernels/kernel.h"
#include "tests/kit/remote_device.h"
#include "tests/unit/graph_test.h"

static bool is_for(const wf_kernel *k, const wf_op *op)
{
    return strcmp(k->op, op->name) == 0 && strcmp(k->domain ? k->domain : "", op->domain) == 0;
}

/* The dtypes that a device's kernels of an operation take; 0: it has none. */
static uint32_t dtypes_of(const wf_op *op, const wf_device *d)
{
    const wf_kernel *k;
    uint32_t all = 0;

    for (size_t i = 0; (k = wf_kernel_at(d, i)); i++)
        all |= is_for(k, op) ? k->dtypes : 0;
    return all;
}

/* Pull and Push are ports of a plan; the mode pass decides Training; Constant is a known value;
 * what sessions do with variables is taken out (common/session/remote.h); a graph is cut at Send
 * and Recv.
 */
static bool needs_none(const wf_op *op)
{
    return strcmp(op->name, "Training") == 0 || strcmp(op->name, "Pull") == 0 ||
           strcmp(op->name, "Push") == 0 || strcmp(op->name, "Constant") == 0 ||
           strcmp(op->name, "Read") == 0 || strcmp(op->name, "Assign") == 0 ||
           strcmp(op->name, "AssignAdd") == 0 || strcmp(op->name, "Send") == 0 ||
           strcmp(op->name, "Recv") == 0;
}

/* What only the cpu computes: extents that depend on content are found by wf_kernel_eval alone, a
 * plan knows shapes, and LabelEncoder's table lies in attributes. */
static bool stays_on_the_cpu(const wf_op *op)
{
    static const char *const names[] = {"Shape", "Size", "LabelEncoder"};
    const wf_kernel *k;

    for (size_t i = 0; i < WF_COUNT(names); i++)
        if (strcmp(op->name, names[i]) == 0)
            return true;
    for (size_t i = 0; (k = wf_kernel_at(&wf_cpu, i)); i++)
        if (is_for(k, op) && k->extents)
            return true;
    return false;
}

/* On a device for every dtype that the cpu computes it in. */
static void every_operation_has_a_kernel(void **state)
{
    const wf_op *op;

    (void)state;
    for (size_t i = 0; (op = wf_op_at(i)); i++) {
        uint32_t here = dtypes_of(op, test_device()), there = dtypes_of(op, &wf_cpu);

        if (needs_none(op) || (!test_device()->is_host && stays_on_the_cpu(op)))
            continue;
        if (!here || (there & ~here))
            fail_msg("%s has no kernel%s", op->name, here ? " of each dtype" : "");
    }
}

static void every_kernel_has_an_operation(void **state)
{
    const wf_kernel *k;

    (void)state;
    for (size_t i = 0; (k = wf_kernel_at(test_device(), i)); i++) {
        if (!wf_op_find(k->domain ? k->domain : "", k->op))
            fail_msg("kernel %s has no operation", k->op);
        assert_true(k->run && k->dtypes);
    }
}

#define WF_OP(name, file) {&wf_op_##name, file},
static const struct {
    const wf_op *op;
    const char *file; /* below common/graph/ops, without .c */
} ops[] = {
#include "common/graph/ops/rows.def"
};
#define WF_KERNELS(name, file) extern const wf_kernel wf_kernels_##name[];
#include "common/kernels/cpu/rows.def"
#undef WF_KERNELS
#define WF_KERNELS(name, file) {wf_kernels_##name, file},
static const struct {
    const wf_kernel *rows;
    const char *file; /* below common/kernels/cpu */
} kernel_files[] = {
#include "common/kernels/cpu/rows.def"
};

/* Who knows where an operation's shapes and gradient stand finds its kernels without a search. */
static void a_kernel_stands_in_the_file_called_as_its_operations(void **state)
{
    (void)state;
    for (size_t f = 0; f < WF_COUNT(kernel_files); f++)
        for (const wf_kernel *k = kernel_files[f].rows; k->op; k++)
            for (size_t i = 0; i < WF_COUNT(ops); i++)
                if (strcmp(ops[i].op->name, k->op) == 0 &&
                    strcmp(ops[i].file, kernel_files[f].file) != 0)
                    fail_msg("%s is in graph/ops/%s.c, and its kernel in kernels/cpu/%s.c", k->op,
                             ops[i].file, kernel_files[f].file);
}

static void a_device_is_found_by_name(void **state)
{
    const wf_device *d = NULL;
    wf_err err;

    (void)state;
    assert_ok(wf_device_find("cpu", &d, &err), err);
    assert_ptr_equal(d, &wf_cpu);
    d = NULL;
    assert_ok(wf_device_open("cpu:1", &d, &err), err);
    assert_ptr_equal(d, &wf_cpu);
    assert_int_equal(wf_device_find("tpu", &d, &err), WF_NOTFOUND);
    assert_says(err, "no device \"tpu\" here");
    assert_int_equal(strncmp(err.hint, "known: cpu", 10), 0);
    assert_int_equal(wf_device_add(&(wf_device_rows){.device = &wf_cpu}, &err), WF_EXISTS);
}

static wf_node *add_node(wf_graph *g, const char *op, uint32_t n_in, wf_value *in[])
{
    wf_emit e = wf_emit_begin(g, op, NULL);
    wf_value *out[1];
    wf_node *n = wf_emit_node(&e, op, n_in, in, 0, NULL, 1, out);

    assert_non_null(n);
    return n;
}

static void a_node_is_computed_by_itself(void **state)
{
    wf_graph *g = new_graph();
    wf_value *in[2] = {input(g, "a", 2, (int64_t[]){2, 3}), input(g, "b", 1, (int64_t[]){3})};
    wf_node *n = add_node(g, "Add", 2, in);
    wf_tensor *a = NULL, *b = NULL, *out[1];
    wf_err err;

    (void)state;
    assert_ok(wf_tensor_new(WF_F32, 2, (int64_t[]){2, 3}, &a, &err), err);
    assert_ok(wf_tensor_new(WF_F32, 1, (int64_t[]){3}, &b, &err), err);
    for (int i = 0; i < 6; i++)
        wf_f32_mut(a)[i] = (float)i;
    for (int i = 0; i < 3; i++)
        wf_f32_mut(b)[i] = (float)(10 * i);
    assert_ok(wf_kernel_eval(n, 2, (const wf_tensor *[]){a, b}, 1, out, SIZE_MAX / 2, &err), err);
    for (int i = 0; i < 6; i++)
        assert_true(wf_f32(out[0])[i] == (float)(i + 10 * (i % 3)));
    wf_tensor_free(&out[0]);
    wf_tensor_free(&a);
    wf_tensor_free(&b);
    wf_graph_free(&g);
}

static void an_index_out_of_range_is_a_sentence_with_the_node(void **state)
{
    wf_graph *g = new_graph();
    wf_value *in[2] = {input(g, "data", 2, (int64_t[]){4, 2}), input(g, "ids", 1, (int64_t[]){3})};
    wf_node *n;
    wf_tensor *data = NULL, *ids = NULL, *out[1];
    wf_err err;

    (void)state;
    in[1]->dtype = WF_I64;
    n = add_node(g, "Gather", 2, in);
    assert_ok(wf_tensor_new(WF_F32, 2, (int64_t[]){4, 2}, &data, &err), err);
    assert_ok(wf_tensor_new(WF_I64, 1, (int64_t[]){3}, &ids, &err), err);
    ((int64_t *)ids->data)[2] = 4;
    assert_int_equal(
        wf_kernel_eval(n, 2, (const wf_tensor *[]){data, ids}, 1, out, SIZE_MAX / 2, &err),
        WF_INVALID);
    assert_null(out[0]);
    assert_says(err, "Gather \"Gather/Gather\": index 4, number 2 of them, is not in an axis of 4");
    wf_tensor_free(&data);
    wf_tensor_free(&ids);
    wf_graph_free(&g);
}

static void a_dtype_without_kernel_is_unsupported(void **state)
{
    wf_graph *g = new_graph();
    wf_value *in[1] = {input(g, "x", 1, (int64_t[]){3})};
    wf_tensor *x = NULL, *out[1];
    wf_node *n;
    wf_err err;

    (void)state;
    in[0]->dtype = WF_F16;
    n = add_node(g, "Exp", 1, in);
    assert_ok(wf_tensor_new(WF_F16, 1, (int64_t[]){3}, &x, &err), err);
    assert_int_equal(wf_kernel_eval(n, 1, (const wf_tensor *[]){x}, 1, out, SIZE_MAX / 2, &err),
                     WF_UNSUPPORTED);
    assert_says(err, "Exp \"Exp/Exp\": weft does not compute it in float16");
    wf_tensor_free(&x);
    wf_graph_free(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_operation_has_a_kernel),
        cmocka_unit_test(every_kernel_has_an_operation),
        cmocka_unit_test(a_kernel_stands_in_the_file_called_as_its_operations),
        cmocka_unit_test(a_device_is_found_by_name),
        cmocka_unit_test(a_node_is_computed_by_itself),
        cmocka_unit_test(an_index_out_of_range_is_a_sentence_with_the_node),
        cmocka_unit_test(a_dtype_without_kernel_is_unsupported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
