/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/nomem_onnx.c - graphs are built, differentiated, copied, written and read while memory
 * ends. */
#include "common/graph/emit.h"
#include "common/onnx/onnx.h"
#include "tests/unit/nomem.h"

static wf_status add_input(wf_graph *g, const char *name, wf_dtype dtype, uint32_t rank,
                           const int64_t dims[], wf_value **out, wf_err *err)
{
    WF_TRY(wf_graph_add_value(g, name, out, err));
    wf_value_set_type(*out, dtype, rank, dims);
    (*out)->axes[0].symbol = "batch";
    return wf_graph_add_input(g, *out, err);
}

static wf_status add_variable(wf_graph *g, const char *name, uint32_t rank, const int64_t dims[],
                              wf_value **out, wf_err *err)
{
    wf_tensor *t = NULL;
    wf_status rc = wf_tensor_new(WF_F32, rank, dims, &t, err);

    if (rc == WF_OK) {
        for (int64_t i = 0; i < wf_elems(t); i++)
            wf_f32_mut(t)[i] = 0.5f + (float)i;
        rc = wf_graph_add_variable(g, name, WF_VAR_TRAINABLE, &t, out, err);
    }
    wf_tensor_free(&t);
    return rc;
}

/* Convolution, pooling, a dense layer, dropout and a loss over images of 8 x 8, with a gradient for
 * each of three variables. */
static wf_status add_network(wf_graph *g, wf_err *err)
{
    wf_value *x, *y, *v[3], *loss, *grads[3], *training;
    wf_emit e = wf_emit_begin(g, "net", err);
    wf_attr kernel = {
        .name = "kernel_shape", .kind = WF_ATTR_INTS, .n = 2, .ints = (int64_t[]){2, 2}};
    wf_attr strides = {.name = "strides", .kind = WF_ATTR_INTS, .n = 2, .ints = kernel.ints};
    wf_tensor *on = NULL;

    WF_TRY(add_input(g, "x", WF_F32, 4, (int64_t[]){-1, 1, 8, 8}, &x, err));
    WF_TRY(add_input(g, "y", WF_I64, 1, (int64_t[]){-1}, &y, err));
    WF_TRY(add_variable(g, "kernel", 4, (int64_t[]){3, 1, 3, 3}, &v[0], err));
    WF_TRY(add_variable(g, "w", 2, (int64_t[]){27, 5}, &v[1], err));
    WF_TRY(add_variable(g, "b", 1, (int64_t[]){5}, &v[2], err));
    WF_TRY(wf_tensor_new(WF_BOOL, 0, NULL, &on, err));
    *(uint8_t *)on->data = 1;
    training = wf_emit_constant(&e, "training", &on);
    x = wf_emit_op(&e, "Conv", 2, (wf_value *[]){x, v[0]}, 0, NULL);
    x = wf_emit_op(&e, "MaxPool", 1, &x, 2, (wf_attr[]){kernel, strides});
    x = wf_emit_reshape(&e, wf_emit_unary(&e, "Relu", x), 2, (int64_t[]){-1, 27});
    x = wf_emit_op(&e, "Dropout", 3, (wf_value *[]){x, wf_emit_scalar(&e, WF_F32, 0.25), training},
                   0, NULL);
    x = wf_emit_gemm(&e, x, v[1], v[2], 1, 1, false, false);
    loss = wf_emit_op(&e, "SoftmaxCrossEntropyLoss", 2, (wf_value *[]){x, y}, 0, NULL);
    WF_TRY(wf_emit_end(&e));
    WF_TRY(wf_graph_add_output(g, loss, err));
    WF_TRY(wf_graph_differentiate(g, loss, v, 3, grads, err));
    for (int i = 0; i < 3; i++)
        WF_TRY(wf_graph_add_output(g, grads[i], err));
    WF_TRY(wf_infer(g, err));
    return wf_graph_check(g, err);
}

static wf_status new_network(wf_graph **out, wf_err *err)
{
    wf_status rc = wf_graph_new("net", out, err);

    if (rc == WF_OK)
        rc = add_network(*out, err);
    if (rc != WF_OK)
        wf_graph_free(out);
    return rc;
}

/* The bytes of the network when memory does not end, as it was built and as it was read again:
 * that names a symbol for what the pool leaves of the images. */
static wf_bytes built, again;

static wf_status writes(const wf_graph *g, const wf_bytes *expected, wf_err *err)
{
    wf_bytes bytes = {0};
    wf_status rc = wf_onnx_encode(g, &bytes, err);

    if (rc == WF_OK &&
        (bytes.size != expected->size || memcmp(bytes.data, expected->data, expected->size) != 0))
        rc = wrong(err, "another model is written");
    wf_bytes_close(&bytes);
    return rc;
}

static wf_status build_and_write(void *unused, wf_err *err)
{
    wf_graph *g = NULL;
    wf_status rc = new_network(&g, err);

    (void)unused;
    if (rc == WF_OK)
        rc = writes(g, &built, err);
    wf_graph_free(&g);
    return rc;
}

static wf_status read_and_write(void *unused, wf_err *err)
{
    wf_graph *g = NULL;
    wf_status rc = wf_onnx_decode(built.data, built.size, NULL, &g, err);

    (void)unused;
    if (rc == WF_OK)
        rc = writes(g, &again, err);
    wf_graph_free(&g);
    return rc;
}

static wf_status copy(void *of, wf_err *err)
{
    wf_graph *g = NULL;
    wf_status rc = wf_graph_copy(of, &g, err);

    if (rc == WF_OK)
        rc = writes(g, &built, err);
    wf_graph_free(&g);
    return rc;
}

static void a_graph_is_built_differentiated_and_written(void **state)
{
    (void)state;
    assert_survives(build_and_write, NULL);
}

static void a_model_is_read_and_written(void **state)
{
    (void)state;
    assert_survives(read_and_write, NULL);
}

static void a_graph_is_copied(void **state)
{
    wf_graph *g = NULL;

    (void)state;
    assert_int_equal(new_network(&g, NULL), WF_OK);
    assert_survives(copy, g);
    wf_graph_free(&g);
}

static int set_up(void **state)
{
    wf_graph *g = NULL;
    wf_err err = {0};
    wf_status rc = new_network(&g, &err);

    (void)state;
    if (rc == WF_OK)
        rc = wf_onnx_encode(g, &built, &err);
    wf_graph_free(&g);
    if (rc == WF_OK)
        rc = wf_onnx_decode(built.data, built.size, NULL, &g, &err);
    if (rc == WF_OK)
        rc = wf_onnx_encode(g, &again, &err);
    if (rc != WF_OK)
        print_error("%s\n", err.what);
    wf_graph_free(&g);
    return rc == WF_OK ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    wf_bytes_close(&built);
    wf_bytes_close(&again);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_graph_is_built_differentiated_and_written),
        cmocka_unit_test(a_model_is_read_and_written),
        cmocka_unit_test(a_graph_is_copied),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
