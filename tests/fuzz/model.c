/* SPDX-License-Identifier: Apache-2.0 */
/* tests/fuzz/model.c - the way of a model file up to the first step. */
#include "tests/fuzz/model.h"
#include "common/base/bytes.h"
#include "common/compile/compile.h"
#include "common/exec/exec.h"
#include "common/onnx/onnx.h"

#include <stdio.h>
#include <stdlib.h>

enum { PLANNED_INPUTS = 32, BATCH = 2, PLAN_BYTES = 64 << 20 };

/* A refusal without a sentence helps nobody. */
static bool refused(wf_status rc, const wf_err *err)
{
    if (rc != WF_OK && !err->what[0]) {
        fprintf(stderr, "refused with status %d and no words\n", (int)rc);
        abort();
    }
    return rc != WF_OK;
}

/* What was open has two elements, but for inputs whose rank is not known: those are refused. */
static void plan(const wf_graph *g)
{
    wf_plan_shape shapes[PLANNED_INPUTS];
    wf_plan_options options = {.shapes = shapes, .limit_bytes = PLAN_BYTES};
    wf_plan *p = NULL;
    wf_err err = {0};
    wf_status rc;

    for (size_t i = 0; i < g->n_inputs && options.n_shapes < PLANNED_INPUTS; i++) {
        const wf_value *v = g->inputs[i];
        wf_plan_shape *s = &shapes[options.n_shapes];

        if (v->rank < 0)
            continue;
        *s = (wf_plan_shape){.name = v->name, .rank = (uint32_t)v->rank};
        for (int32_t k = 0; k < v->rank; k++)
            s->dims[k] = v->axes[k].size < 0 ? BATCH : v->axes[k].size;
        options.n_shapes++;
    }
    rc = wf_plan_new(g, &options, &p, &err);
    (void)refused(rc, &err);
    wf_plan_free(&p);
}

/* A compiled graph travels to the workers as a file: they must be able to read what was written. */
static void send(const wf_graph *g)
{
    wf_bytes bytes = {0};
    wf_graph *received = NULL;
    wf_err err = {0};
    wf_status rc = wf_onnx_encode(g, &bytes, &err);

    if (!refused(rc, &err)) {
        rc = wf_onnx_decode(bytes.data, bytes.size, NULL, &received, &err);
        if (rc != WF_OK) {
            fprintf(stderr, "a graph that weft wrote cannot be read: %s\n", err.what);
            abort();
        }
        plan(received);
    }
    wf_graph_free(&received);
    wf_bytes_close(&bytes);
}

static void compile(const wf_graph *g, wf_compile_mode mode)
{
    wf_compile_spec spec = {.graph = g,
                            .mode = mode,
                            .strategy = wf_strategy_find("parameter_server"),
                            .batch = BATCH,
                            .seed = 1,
                            .n_ps = 2};
    wf_compiled *c = NULL;
    wf_err err = {0};

    if (!refused(wf_compile(&spec, &c, &err), &err))
        send(c->graph);
    wf_compiled_free(&c);
}

void wf_fuzz_model(const uint8_t *data, size_t n)
{
    wf_graph *g = NULL;
    wf_err err = {0};

    if (!refused(wf_onnx_decode(data, n, NULL, &g, &err), &err)) {
        compile(g, WF_COMPILE_TRAIN);
        compile(g, WF_COMPILE_RUN);
    }
    wf_graph_free(&g);
}
