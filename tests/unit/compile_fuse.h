/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/compile_fuse.h - a bench for rules that make one operation of several: the graph
 * before and after computes the same, and so do its gradients. */
#ifndef WF_TESTS_UNIT_COMPILE_FUSE_H
#define WF_TESTS_UNIT_COMPILE_FUSE_H

#include "common/base/bytes.h"
#include "common/graph/onnx.h"
#include "tests/unit/compile_eval.h"
#include <math.h>

enum { LAB_BATCH = EVAL_BATCH, LAB_MOST = EVAL_BATCH * 4096 };

/* A graph with one input x [batch, ...] f32, an emitter, and what it is checked with. */
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
    l->x = add_input(l->g, "x", WF_F32, rank, dims);
}

static inline void lab_output(lab *l, wf_value *y, const char *name)
{
    must(wf_emit_end(&l->e), &l->err);
    must(wf_graph_rename_value(l->g, y, name, &l->err), &l->err);
    must(wf_graph_add_output(l->g, y, &l->err), &l->err);
}

static inline void check_close(const wf_tensor *was, const wf_tensor *is, const char *name)
{
    double most = 0.0;

    assert_int_equal(was->rank, is->rank);
    assert_memory_equal(was->dims, is->dims, was->rank * sizeof(*was->dims));
    for (int64_t i = 0; i < wf_elems(was); i++)
        most = fmax(most, fabs((double)wf_f32(was)[i]));
    for (int64_t i = 0; i < wf_elems(was); i++)
        if (!(fabs((double)wf_f32(was)[i] - (double)wf_f32(is)[i]) <= 4e-6 * fmax(most, 1e-3)))
            fail_msg("%s[%d]: %.9g was %.9g", name, (int)i, (double)wf_f32(is)[i],
                     (double)wf_f32(was)[i]);
}

static inline void check_graphs(const wf_graph *was, const wf_graph *is)
{
    static float data[LAB_MOST];
    fed feeds[] = {{"x", data}, {NULL, NULL}};
    evaluated before, after;

    fill(data, LAB_MOST, 3);
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
static inline wf_compiled *lab_close(lab *l)
{
    wf_compile_spec spec = {.graph = l->g, .mode = WF_COMPILE_RUN};
    wf_compiled *c = compile(&spec);

    check_graphs(l->g, c->graph);
    check_written(l->g, c->graph);
    wf_graph_free(&l->g);
    return c;
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

#endif
