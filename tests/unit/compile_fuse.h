/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/compile_fuse.h - a bench for rules that make one operation of several: the graph
 * before and after computes the same, and so do its gradients. In f32 to what rounding leaves, in
 * f64 to 1e-12. */
#ifndef WF_TESTS_UNIT_COMPILE_FUSE_H
#define WF_TESTS_UNIT_COMPILE_FUSE_H

#include "common/base/bytes.h"
#include "common/onnx/onnx.h"
#include "tests/unit/compile_eval.h"
#include <math.h>

enum { LAB_BATCH = EVAL_BATCH, LAB_MOST = EVAL_BATCH * 4096 };

/* Of all labs that are opened; lab_run sets it. */
static wf_dtype lab_dtype = WF_F32;

/* A graph with one input x [batch, ...], an emitter, and what it is checked with. */
typedef struct lab {
    wf_graph *g;
    wf_emit e;
    wf_value *x;
    wf_err err;
} lab;

static inline void lab_open(lab *l, uint32_t rank, const int64_t dims[])
{
    memset(l, 0, sizeof(*l));
    must(wf_graph_new("lab", &l->g, &l->err), &l->err);
    l->e = wf_emit_begin(l->g, "n", &l->err);
    l->x = add_input(l->g, "x", lab_dtype, rank, dims);
}

static inline wf_value *lab_variable(lab *l, const char *name, uint32_t rank, const int64_t dims[])
{
    return add_typed_variable(l->g, name, lab_dtype, rank, dims);
}

static inline wf_value *lab_scalar(lab *l, double value)
{
    return wf_emit_scalar(&l->e, lab_dtype, value);
}

static inline void lab_output(lab *l, wf_value *y, const char *name)
{
    must(wf_emit_end(&l->e), &l->err);
    must(wf_graph_rename_value(l->g, y, name, &l->err), &l->err);
    must(wf_graph_add_output(l->g, y, &l->err), &l->err);
}

static inline double number_of(const wf_tensor *t, int64_t i)
{
    switch (t->dtype) {
    case WF_F32:
        return (double)wf_f32(t)[i];
    case WF_F64:
        return ((const double *)t->data)[i];
    case WF_I64:
        return (double)((const int64_t *)t->data)[i];
    default:
        fail_msg("an output is %s", wf_dtype_name(t->dtype));
        return 0;
    }
}

static inline void check_close(const wf_tensor *was, const wf_tensor *is, const char *name)
{
    double most = 0.0, close = was->dtype == WF_F32 ? 4e-6 : 1e-12;

    assert_int_equal(was->dtype, is->dtype);
    assert_int_equal(was->rank, is->rank);
    assert_memory_equal(was->dims, is->dims, was->rank * sizeof(*was->dims));
    for (int64_t i = 0; i < wf_elems(was); i++)
        most = fmax(most, fabs(number_of(was, i)));
    for (int64_t i = 0; i < wf_elems(was); i++)
        if (!(fabs(number_of(was, i) - number_of(is, i)) <= close * fmax(most, 1e-3)))
            fail_msg("%s[%d]: %.17g was %.17g", name, (int)i, number_of(is, i), number_of(was, i));
}

static inline void check_graphs(const wf_graph *was, const wf_graph *is)
{
    static float data[LAB_MOST];
    static double doubles[LAB_MOST];
    static int64_t labels[LAB_MOST];
    fed feeds[] = {
        {"x", lab_dtype == WF_F32 ? (void *)data : doubles}, {"labels", labels}, {NULL, NULL}};
    evaluated before, after;

    fill(data, LAB_MOST, 3);
    for (size_t i = 0; i < LAB_MOST; i++) {
        doubles[i] = (double)data[i];
        labels[i] = (int64_t)(i * 5 % 3) - (i % 4 == 3); /* of three classes; some from the end */
    }
    before = eval_graph(was, feeds);
    after = eval_graph(is, feeds);
    for (size_t i = 0; i < was->n_outputs; i++) {
        const char *name = was->outputs[i]->name;

        check_close(output_of(&before, name), output_of(&after, name), name);
    }
    eval_free(&before);
    eval_free(&after);
}

/* Also what a worker is sent means the same. */
static inline void check_written(const wf_graph *was, const wf_graph *is)
{
    wf_bytes bytes = {0};
    wf_graph *back = NULL;
    wf_err err = {0};

    must(wf_onnx_encode(is, &bytes, &err), &err);
    must(wf_onnx_decode(bytes.data, bytes.size, NULL, &back, &err), &err);
    check_graphs(was, back);
    wf_bytes_close(&bytes);
    wf_graph_free(&back);
}

/* Compiles the outputs, and checks that they are the graph's own. Ends the lab. */
static inline wf_compiled *lab_close_as(lab *l, bool are_final)
{
    wf_compile_spec spec = {.graph = l->g, .mode = WF_COMPILE_RUN, .are_final = are_final};
    wf_compiled *c = compile(&spec);

    check_graphs(l->g, c->graph);
    check_written(l->g, c->graph);
    wf_graph_free(&l->g);
    return c;
}

static inline wf_compiled *lab_close(lab *l)
{
    return lab_close_as(l, false);
}

/* The same for the loss sum(sin(y)) and its gradients by all trainable variables, which are worked
 * out on the graph as it stands and through all passes. */
static inline wf_compiled *lab_close_grad(lab *l, wf_value *y)
{
    wf_value *wrt[8], *grads[8];
    wf_compile_spec spec = {.graph = l->g, .mode = WF_COMPILE_GRAD, .loss = "loss"};
    wf_compiled *c;
    size_t n = 0;

    lab_output(l, wf_emit_reduce_sum(&l->e, wf_emit_unary(&l->e, "Sin", y), 0, NULL, false),
               "loss");
    c = compile(&spec);
    for (size_t i = 0; i < l->g->n_values; i++)
        if (l->g->values[i]->variable == WF_VAR_TRAINABLE)
            wrt[n++] = l->g->values[i];
    must(wf_graph_differentiate(l->g, l->g->outputs[0], wrt, n, grads, &l->err), &l->err);
    for (size_t i = 0; i < n; i++) {
        assert_non_null(grads[i]);
        must(wf_graph_add_output(l->g, grads[i], &l->err), &l->err);
    }
    check_graphs(l->g, c->graph);
    check_written(l->g, c->graph);
    wf_graph_free(&l->g);
    return c;
}

/* The tests in both dtypes. */
#define lab_run(tests)                                                                             \
    ({                                                                                             \
        int failed;                                                                                \
        lab_dtype = WF_F32;                                                                        \
        failed = cmocka_run_group_tests_name("float32", tests, NULL, NULL);                        \
        lab_dtype = WF_F64;                                                                        \
        failed + cmocka_run_group_tests_name("float64", tests, NULL, NULL);                        \
    })

#endif
