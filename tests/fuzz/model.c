/* SPDX-License-Identifier: Apache-2.0 */
/* tests/fuzz/model.c - the way of an ONNX model up to the first step: it is read, compiled for
 * training and as it stands, sent through a file as the master does, and planned for batches of 2.
 */
#include "common/base/bytes.h"
#include "common/compile/compile.h"
#include "common/exec/exec.h"
#include "common/onnx/onnx.h"
#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>

enum { PLANNED_INPUTS = 32, BATCH = 2, PLAN_BYTES = 64 << 20 };

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
    (void)wf_fuzz_refused(rc, &err);
    wf_plan_free(&p);
}

/* A compiled graph travels to the workers as a file: they must be able to read what was written. */
static void send(const wf_graph *g)
{
    wf_bytes bytes = {0};
    wf_graph *received = NULL;
    wf_err err = {0};
    wf_status rc = wf_onnx_encode(g, &bytes, &err);

    if (!wf_fuzz_refused(rc, &err)) {
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

    if (!wf_fuzz_refused(wf_compile(&spec, &c, &err), &err))
        send(c->graph);
    wf_compiled_free(&c);
}

void wf_fuzz(const uint8_t *data, size_t n)
{
    wf_graph *g = NULL;
    wf_err err = {0};

    if (!wf_fuzz_refused(wf_onnx_decode(data, n, NULL, &g, &err), &err)) {
        compile(g, WF_COMPILE_TRAIN);
        compile(g, WF_COMPILE_RUN);
    }
    wf_graph_free(&g);
}
