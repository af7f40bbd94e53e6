/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/compile_norm_fold.c - BatchNormalization becomes part of the weights before it, where
 * these are final. */
#include "tests/unit/compile_fuse.h"

enum { CHANNELS = 3 };

typedef enum kind { CONV, CONV_BIAS, CONV_TRANSPOSE, GEMM, GEMM_TURNED, MATMUL, MATMUL_BIAS } kind;

/* A constant with numbers above 0. */
static wf_value *positive(lab *l, const char *name)
{
    const int64_t dims[] = {CHANNELS};
    wf_tensor *t = NULL;

    must(wf_tensor_new(lab_dtype, 1, dims, &t, &l->err), &l->err);
    for (int i = 0; i < CHANNELS; i++)
        if (lab_dtype == WF_F64)
            ((double *)t->data)[i] = 0.5 + i;
        else
            wf_f32_mut(t)[i] = 0.5f + (float)i;
    return wf_emit_constant(&l->e, name, &t);
}

static wf_value *norm(lab *l, wf_value *x)
{
    const int64_t dims[] = {CHANNELS};
    wf_value *in[] = {x, lab_variable(l, "scale", 1, dims), lab_variable(l, "shift", 1, dims),
                      lab_variable(l, "mean", 1, dims), positive(l, "var")};
    wf_attr epsilon = wf_attr_float("epsilon", 0.125f);

    return wf_emit_op(&l->e, "BatchNormalization", 5, in, 1, &epsilon);
}

static wf_value *before(lab *l, kind k)
{
    const int64_t dims[] = {CHANNELS};
    wf_value *b = lab_variable(l, "b", 1, dims), *w, *y;

    switch (k) {
    case CONV:
    case CONV_BIAS:
        w = lab_variable(l, "w", 4, (const int64_t[]){CHANNELS, 2, 2, 2});
        return wf_emit_op(&l->e, "Conv", k == CONV ? 2 : 3, (wf_value *[]){l->x, w, b}, 0, NULL);
    case CONV_TRANSPOSE:
        w = lab_variable(l, "w", 4, (const int64_t[]){2, CHANNELS, 2, 3});
        return wf_emit_op(&l->e, "ConvTranspose", 3, (wf_value *[]){l->x, w, b}, 0, NULL);
    case GEMM:
    case GEMM_TURNED:
        w = lab_variable(l, "w", 2, k == GEMM ? (const int64_t[]){5, 3} : (const int64_t[]){3, 5});
        return wf_emit_gemm(&l->e, l->x, w, b, 0.5f, 1, false, k != GEMM);
    default:
        w = lab_variable(l, "w", 2, (const int64_t[]){5, CHANNELS});
        y = wf_emit_matmul(&l->e, l->x, w);
        return k == MATMUL ? y : wf_emit_add(&l->e, b, y);
    }
}

static void open_for(lab *l, kind k)
{
    if (k < GEMM)
        lab_open(l, 4, (const int64_t[]){-1, 2, 4, 5});
    else
        lab_open(l, 2, (const int64_t[]){-1, 5});
}

static void a_norm_goes_into_final_weights(void **state)
{
    (void)state;
    for (kind k = CONV; k <= MATMUL_BIAS; k++) {
        lab l;
        wf_compiled *c;

        open_for(&l, k);
        lab_output(&l, norm(&l, before(&l, k)), "y");
        c = lab_close_as(&l, true);
        assert_int_equal(c->graph->n_nodes, 1);
        assert_int_equal(c->n_variables, 0);
        wf_compiled_free(&c);
    }
}

static void variables_keep_their_norm(void **state)
{
    wf_compile_spec spec = {.mode = WF_COMPILE_GRAD, .loss = "loss", .are_final = true};
    wf_value *y;
    lab l;
    wf_compiled *c;

    (void)state;
    open_for(&l, CONV);
    lab_output(&l, norm(&l, before(&l, CONV)), "y");
    c = lab_close(&l);
    assert_int_equal(count_op(c->graph, "BatchNormalization"), 1);
    assert_int_equal(c->n_variables, 4);
    wf_compiled_free(&c);

    open_for(&l, CONV); /* their gradients are wanted */
    y = norm(&l, before(&l, CONV));
    lab_output(&l, wf_emit_reduce_sum(&l.e, wf_emit_mul(&l.e, y, y), 0, NULL, false), "loss");
    spec.graph = l.g;
    c = compile(&spec);
    assert_int_equal(count_op(c->graph, "BatchNormalization"), 1);
    wf_compiled_free(&c);
    wf_graph_free(&l.g);
}

static void what_others_read_stays(void **state)
{
    lab l;
    wf_value *y;
    wf_compiled *c;

    (void)state;
    open_for(&l, CONV);
    y = before(&l, CONV);
    lab_output(&l, norm(&l, y), "y");
    lab_output(&l, y, "before");
    c = lab_close_as(&l, true);
    assert_int_equal(count_op(c->graph, "BatchNormalization"), 1);
    wf_compiled_free(&c);

    open_for(&l, CONV); /* a Relu stands between */
    y = wf_emit_unary(&l.e, "Relu", before(&l, CONV));
    lab_output(&l, norm(&l, y), "y");
    c = lab_close_as(&l, true);
    assert_int_equal(count_op(c->graph, "BatchNormalization"), 1);
    wf_compiled_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_norm_goes_into_final_weights),
        cmocka_unit_test(variables_keep_their_norm),
        cmocka_unit_test(what_others_read_stays),
    };

    return lab_run(tests);
}
