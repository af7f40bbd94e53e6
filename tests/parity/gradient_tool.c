/* SPDX-License-Identifier: Apache-2.0 */
/* tests/parity/gradient_tool.c - weft's gradients against central differences of weft's forward
 * kernels, for gradient_properties.py.
 *
 *   gradient_tool ops                the operations that have a gradient, "DOMAIN NAME" a line
 *   gradient_tool check FILE...      one line for each model: "ok ERROR FILE" or "FAIL FILE: why"
 *
 * A model has one float64 output; its variables are float64, and an input "in_NAME" of the shape of
 * variable NAME holds zeros. The loss is the sum of the output times fixed numbers, so that every
 * element of the upstream gradient differs.
 */
#include "common/base/size.h"
#include "common/exec/exec.h"
#include "common/graph/emit.h"
#include "common/graph/op.h"
#include "common/onnx/onnx.h"
#include "tests/kit/remote_device.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 16 };
static const double STEP = 1e-5, RELATIVE = 2e-5, ABSOLUTE = 1e-7;

/* A case in hand: two plans over the same values, and what they are bound to. */
typedef struct subject {
    wf_graph *g;
    wf_value *variables[MOST];
    double *values[MOST], *grads[MOST];
    uint32_t n;
    wf_plan_shape shapes[MOST + 1];
    uint32_t n_shapes;
    wf_plan *forward, *backward;
    double *upstream; /* as the output */
    void *zeros;
    double worst;
} subject;

static wf_status find_variables(subject *s, wf_err *err)
{
    for (size_t i = 0; i < s->g->n_values; i++) {
        wf_value *v = s->g->values[i];

        if (v->variable != WF_VAR_TRAINABLE || v->dtype != WF_F64)
            continue;
        if (s->n == MOST)
            return wf_fail(err, WF_FULL, NULL, "more than %d variables", (int)MOST);
        s->values[s->n] = malloc(wf_tensor_bytes(v->known) + 1);
        s->grads[s->n] = calloc((size_t)wf_elems(v->known) + 1, sizeof(double));
        if (!s->values[s->n] || !s->grads[s->n])
            return wf_fail_nomem(err, wf_tensor_bytes(v->known));
        memcpy(s->values[s->n], v->known->data, wf_tensor_bytes(v->known));
        s->variables[s->n++] = v;
    }
    return s->n ? WF_OK : wf_fail(err, WF_INVALID, NULL, "it has no variables");
}

static wf_status set_shapes(subject *s, wf_err *err)
{
    for (size_t i = 0; i < s->g->n_inputs; i++) {
        const char *name = s->g->inputs[i]->name;
        const wf_value *like = strncmp(name, "in_", 3) ? NULL : wf_graph_value(s->g, name + 3);
        wf_plan_shape *shape = &s->shapes[s->n_shapes++];

        if (!like || !like->known || s->n_shapes > MOST)
            return wf_fail(err, WF_INVALID, NULL, "input \"%s\" is of no variable's shape", name);
        *shape = (wf_plan_shape){.name = name, .rank = like->known->rank};
        memcpy(shape->dims, like->known->dims, sizeof shape->dims);
    }
    return WF_OK;
}

static void bind(const subject *s, wf_plan *p, bool with_upstream)
{
    for (uint32_t i = 0; i < wf_plan_n_inputs(p); i++)
        wf_plan_bind_input(p, i, s->zeros);
    for (uint32_t i = 0; i < s->n; i++) {
        int64_t at = wf_plan_find_input(p, s->variables[i]->name);

        if (at >= 0)
            wf_plan_bind_input(p, (uint32_t)at, s->values[i]);
    }
    if (with_upstream)
        wf_plan_bind_input(p, (uint32_t)wf_plan_find_input(p, "upstream"), s->upstream);
}

static wf_status make_forward(subject *s, wf_err *err)
{
    wf_plan_options o = {.device = test_device(), .n_shapes = s->n_shapes, .shapes = s->shapes};
    const wf_port *y;
    size_t most = 1;

    WF_TRY(wf_plan_new(s->g, &o, &s->forward, err));
    y = wf_plan_output(s->forward, 0);
    if (y->dtype != WF_F64)
        return wf_fail(err, WF_INVALID, NULL, "the output is not float64");
    s->upstream = calloc((size_t)y->elems + 1, sizeof(double));
    for (uint32_t i = 0; i < wf_plan_n_inputs(s->forward); i++)
        most = WF_MAX(most, wf_plan_input(s->forward, i)->bytes);
    s->zeros = calloc(1, most);
    if (!s->upstream || !s->zeros)
        return wf_fail_nomem(err, most);
    for (int64_t i = 0; i < y->elems; i++) /* between 0.5 and 1.5, none like its neighbours */
        s->upstream[i] = 0.5 + fmod((double)i * 0.6180339887498949, 1);
    bind(s, s->forward, false);
    return WF_OK;
}

/* Puts the loss behind the output, and gradients in the place of outputs. */
static wf_status make_backward(subject *s, wf_err *err)
{
    wf_value *y = s->g->outputs[0], *upstream = NULL, *loss, *grads[MOST];
    wf_plan_options o = {.device = test_device(), .shapes = s->shapes};
    wf_emit e;

    WF_TRY(wf_graph_add_value(s->g, "upstream", &upstream, err));
    upstream->dtype = WF_F64;
    upstream->rank = y->rank;
    memcpy(upstream->axes, y->axes, sizeof upstream->axes);
    WF_TRY(wf_graph_add_input(s->g, upstream, err));
    e = wf_emit_begin(s->g, "loss", err);
    loss = wf_emit_reduce_sum(&e, wf_emit_mul(&e, y, upstream), 0, NULL, false);
    WF_TRY(wf_emit_end(&e));
    WF_TRY(wf_graph_differentiate(s->g, loss, s->variables, s->n, grads, err));
    s->g->n_outputs = 0;
    for (uint32_t i = 0; i < s->n; i++)
        if (grads[i])
            WF_TRY(wf_graph_add_output(s->g, grads[i], err));
    if (s->g->n_outputs == 0)
        return wf_fail(err, WF_INVALID, NULL, "the output depends on no variable");
    s->shapes[s->n_shapes] =
        (wf_plan_shape){.name = "upstream", .rank = wf_plan_output(s->forward, 0)->rank};
    memcpy(s->shapes[s->n_shapes].dims, wf_plan_output(s->forward, 0)->dims,
           sizeof s->shapes[0].dims);
    o.n_shapes = s->n_shapes + 1;
    WF_TRY(wf_plan_new(s->g, &o, &s->backward, err));
    bind(s, s->backward, true);
    WF_TRY(wf_plan_run(s->backward, &(wf_step_key){.seed = 1}, NULL, NULL, err));
    for (uint32_t i = 0, at = 0; i < s->n; i++) {
        if (!grads[i])
            continue;
        if (wf_plan_output(s->backward, at)->elems != wf_elems(s->variables[i]->known))
            return wf_fail(err, WF_SHAPE, NULL, "the gradient of %s has %lld elements",
                           s->variables[i]->name,
                           (long long)wf_plan_output(s->backward, at)->elems);
        memcpy(s->grads[i], wf_plan_output_data(s->backward, at),
               wf_plan_output(s->backward, at)->bytes);
        at++;
    }
    return WF_OK;
}

/* The loss with what is in `values` now, in one order of summation. */
static wf_status evaluate(subject *s, double *loss, wf_err *err)
{
    const double *y;
    int64_t n = wf_plan_output(s->forward, 0)->elems;

    WF_TRY(wf_plan_run(s->forward, &(wf_step_key){.seed = 1}, NULL, NULL, err));
    y = wf_plan_output_data(s->forward, 0);
    *loss = 0;
    for (int64_t i = 0; i < n; i++)
        *loss += y[i] * s->upstream[i];
    return WF_OK;
}

static wf_status slope_of(subject *s, double *x, double step, double *slope, wf_err *err)
{
    double before = *x, above = 0, below = 0;
    wf_status rc;

    *x = before + step;
    rc = evaluate(s, &above, err);
    *x = before - step;
    if (rc == WF_OK)
        rc = evaluate(s, &below, err);
    *x = before;
    *slope = (above - below) / (2 * step);
    return rc;
}

static wf_status compare(subject *s, uint32_t i, wf_err *err)
{
    int64_t n = wf_elems(s->variables[i]->known);

    for (int64_t k = 0; k < n; k++) {
        double got = s->grads[i][k], slope, finer, off;

        WF_TRY(slope_of(s, &s->values[i][k], STEP, &slope, err));
        off = fabs(got - slope) / (ABSOLUTE + RELATIVE * fabs(slope));
        if (!(off <= 1)) {
            /* Steep curves need a shorter step: what is wrong stays wrong under it. */
            WF_TRY(slope_of(s, &s->values[i][k], STEP / 16, &finer, err));
            off = fabs(got - finer) / (16 * ABSOLUTE + RELATIVE * fabs(finer));
        }
        if (!(off <= 1))
            return wf_fail(err, WF_NUMERIC, NULL,
                           "element %lld of the gradient of %s is %.12g, the slope %.12g",
                           (long long)k, s->variables[i]->name, got, slope);
        s->worst = fmax(s->worst, fabs(got - slope) / fmax(1, fabs(slope)));
    }
    return WF_OK;
}

static wf_status check(subject *s, const char *path, wf_err *err)
{
    WF_TRY(wf_onnx_read(path, &s->g, err));
    WF_TRY(find_variables(s, err));
    WF_TRY(set_shapes(s, err));
    WF_TRY(make_forward(s, err));
    WF_TRY(make_backward(s, err));
    for (uint32_t i = 0; i < s->n; i++)
        WF_TRY(compare(s, i, err));
    return WF_OK;
}

static bool check_file(const char *path)
{
    subject s = {.g = NULL};
    wf_err err = {0};
    wf_status rc = check(&s, path, &err);

    if (rc == WF_OK)
        printf("ok %.3g %s\n", s.worst, path);
    else
        printf("FAIL %s: %s\n", path, err.what);
    fflush(stdout);
    wf_plan_free(&s.forward);
    wf_plan_free(&s.backward);
    wf_graph_free(&s.g);
    for (uint32_t i = 0; i < MOST; i++) {
        free(s.values[i]);
        free(s.grads[i]);
    }
    free(s.upstream);
    free(s.zeros);
    return rc == WF_OK;
}

int main(int argc, char *argv[])
{
    bool all = true;

    if (argc == 2 && strcmp(argv[1], "ops") == 0) {
        for (size_t i = 0; wf_op_at(i); i++)
            if (wf_op_at(i)->grad)
                printf("%s %s\n", wf_op_at(i)->domain[0] ? wf_op_at(i)->domain : "ai.onnx",
                       wf_op_at(i)->name);
        return 0;
    }
    if (argc < 3 || strcmp(argv[1], "check") != 0) {
        fprintf(stderr, "usage: gradient_tool ops | check FILE...\n");
        return 2;
    }
    for (int i = 2; i < argc; i++)
        all = check_file(argv[i]) && all;
    return all ? 0 : 1;
}
