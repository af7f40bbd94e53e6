/* SPDX-License-Identifier: Apache-2.0 */
/* tests/parity/compile_tool.c - lets compile_models.py drive the one door.
 *
 *   compile_tool stages MODEL.onnx MODE LOSS DIR
 *       writes DIR/PASS.onnx after each pass; MODE train, eval, infer; LOSS - for none
 *   compile_tool attach MODEL.onnx LOSS FILE
 *       writes the model with a loss function of Keras attached, as output "loss"
 *   compile_tool grad MODEL.onnx LOSS DIR NAME=AxB:FILE...
 *       runs the gradient graph on raw little-endian inputs and prints "LABEL FILE" for each
 * result, FILE in DIR and raw; FILE is "zero" for a gradient that is compile_tool train MODEL.onnx
 * LOSS DIR RATE STEPS NAME=AxB:FILE... the same for plain gradient descent on the whole of the
 * inputs; prints the loss of each step
 */
#include "common/base/file.h"
#include "common/compile/compile.h"
#include "common/exec/exec.h"
#include "common/onnx/onnx.h"
#include "tests/kit/remote_device.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct input {
    char name[64];
    uint32_t rank;
    int64_t dims[WF_MAX_RANK];
    wf_bytes data;
} input;

enum { MOST_INPUTS = 8 };

static wf_status parse_input(const char *arg, input *in, wf_err *err)
{
    const char *equal = strchr(arg, '='), *colon = equal ? strchr(equal, ':') : NULL;
    const char *at = equal ? equal + 1 : NULL;

    if (!colon || (size_t)(equal - arg) >= sizeof(in->name))
        return wf_fail(err, WF_USAGE, NULL, "\"%s\" is not NAME=AxB:FILE", arg);
    memcpy(in->name, arg, (size_t)(equal - arg));
    while (at < colon && in->rank < WF_MAX_RANK) {
        char *end;

        in->dims[in->rank++] = strtoll(at, &end, 10);
        at = *end == 'x' ? end + 1 : colon;
    }
    return wf_file_read(colon + 1, (size_t)1 << 28, &in->data, err);
}

static wf_status stages(const char *model, const char *mode, const char *loss, const char *dir,
                        wf_err *err)
{
    const char *name, *help;
    wf_compile_spec spec = {.onnx_path = model,
                            .mode = !strcmp(mode, "train")  ? WF_COMPILE_TRAIN
                                    : !strcmp(mode, "eval") ? WF_COMPILE_EVAL
                                                            : WF_COMPILE_INFER,
                            .is_portable = !strcmp(mode, "infer"), /* as an export is */
                            .strategy = wf_strategy_find("parameter_server"),
                            .loss = strcmp(loss, "-") ? loss : NULL,
                            .batch = 32,
                            .n_ps = 2};

    for (size_t i = 0; wf_compile_pass_at(i, &name, &help); i++) {
        wf_compiled *c = NULL;
        char path[1024];
        wf_status rc;

        spec.stop_after = name;
        snprintf(path, sizeof(path), "%s/%s.onnx", dir, name);
        rc = wf_compile(&spec, &c, err);
        if (rc == WF_OK)
            rc = wf_onnx_write(c->graph, path, err);
        wf_compiled_free(&c);
        WF_TRY(wf_err_wrap(err, rc, "after %s", name));
    }
    return WF_OK;
}

static wf_status attach(const char *model, const char *loss, const char *path, wf_err *err)
{
    wf_compile_spec spec = {.onnx_path = model,
                            .mode = WF_COMPILE_TRAIN,
                            .loss = loss,
                            .batch = 32,
                            .stop_after = "loss"};
    wf_compiled *c = NULL;
    wf_status rc = wf_compile(&spec, &c, err);

    if (rc == WF_OK)
        rc = wf_onnx_write(c->graph, path, err);
    wf_compiled_free(&c);
    return rc;
}

static wf_status plan_of(const wf_compiled *c, size_t n, const input ins[], wf_plan **p,
                         wf_err *err)
{
    wf_plan_shape shapes[MOST_INPUTS] = {{0}};
    wf_plan_options o = {.device = test_device(), .n_shapes = n, .shapes = shapes};

    for (size_t i = 0; i < n; i++) {
        shapes[i].name = ins[i].name;
        shapes[i].rank = ins[i].rank;
        memcpy(shapes[i].dims, ins[i].dims, sizeof(ins[i].dims));
    }
    WF_TRY(wf_plan_new(c->graph, &o, p, err));
    for (size_t i = 0; i < n; i++) {
        int64_t at = wf_plan_find_input(*p, ins[i].name);

        if (at < 0)
            continue; /* nothing needs it */
        if (wf_plan_input(*p, (uint32_t)at)->bytes != ins[i].data.size)
            return wf_fail(err, WF_SHAPE, NULL, "input \"%s\": %zu bytes wanted, %zu given",
                           ins[i].name, wf_plan_input(*p, (uint32_t)at)->bytes, ins[i].data.size);
        wf_plan_bind_input(*p, (uint32_t)at, ins[i].data.data);
    }
    return WF_OK;
}

static wf_status put_results(const wf_compiled *c, const wf_plan *p, const char *dir, wf_err *err)
{
    for (size_t i = 0; i < c->n_outputs; i++) {
        const wf_compiled_output *o = &c->outputs[i];
        char path[1024];
        int64_t at = o->name ? wf_plan_find_output(p, o->name) : -1;

        snprintf(path, sizeof(path), "%s/%zu.bin", dir, i);
        if (at >= 0)
            WF_TRY(wf_file_write(path, wf_plan_output_data(p, (uint32_t)at),
                                 wf_plan_output(p, (uint32_t)at)->bytes, err));
        printf("%s %s\n", o->meaning == WF_MEANS_LOSS ? "loss" : o->label, at >= 0 ? path : "zero");
    }
    return WF_OK;
}

/* w -= rate * gradient, in the content that the plan's variables are bound to. */
static void descend(const wf_compiled *c, const wf_plan *p, float *const weights[], float rate)
{
    for (size_t i = 0; i < c->n_outputs; i++) {
        const wf_compiled_output *o = &c->outputs[i];
        const float *g;

        if (o->meaning != WF_MEANS_GRADIENT || !o->name)
            continue;
        g = wf_plan_output_data(p, (uint32_t)wf_plan_find_output(p, o->name));
        for (int64_t k = 0; k < c->variables[o->variable].elems; k++)
            weights[o->variable][k] -= rate * g[k];
    }
}

static wf_status train(const wf_compiled *c, wf_plan *p, float rate, long steps, wf_err *err)
{
    wf_step_key key = {0};
    wf_status rc = WF_OK;
    float **weights = calloc(c->n_variables + 1, sizeof(*weights));

    if (!weights)
        return wf_fail_nomem(err, c->n_variables * sizeof(*weights));
    for (size_t i = 0; i < c->n_variables; i++) {
        int64_t at = wf_plan_find_input(p, c->variables[i].name);

        weights[i] = malloc(c->variables[i].bytes + 1);
        if (!weights[i]) {
            rc = wf_fail_nomem(err, c->variables[i].bytes);
            goto out;
        }
        memcpy(weights[i], c->variables[i].initial->data, c->variables[i].bytes);
        if (at >= 0)
            wf_plan_bind_input(p, (uint32_t)at, weights[i]);
    }
    for (long step = 0; rc == WF_OK && step < steps; step++) {
        rc = wf_plan_run(p, &key, NULL, NULL, err);
        if (rc != WF_OK)
            break;
        printf("%.9g\n", (double)*(const float *)wf_plan_output_data(
                             p, (uint32_t)wf_plan_find_output(p, c->outputs[0].name)));
        descend(c, p, weights, rate);
    }
out:
    for (size_t i = 0; i < c->n_variables; i++)
        free(weights[i]);
    free(weights);
    return rc;
}

/* steps 0: gradients once. */
static wf_status gradients(const char *model, const char *loss, const char *dir, float rate,
                           long steps, int n, char *args[], wf_err *err)
{
    wf_compile_spec spec = {.onnx_path = model, .mode = WF_COMPILE_GRAD, .loss = loss};
    wf_compiled *c = NULL;
    wf_plan *p = NULL;
    input ins[MOST_INPUTS] = {{.rank = 0}};
    wf_step_key key = {0};
    wf_status rc = n <= MOST_INPUTS ? WF_OK : wf_fail(err, WF_USAGE, NULL, "too many inputs");

    for (int i = 0; rc == WF_OK && i < n; i++)
        rc = parse_input(args[i], &ins[i], err);
    if (rc == WF_OK)
        rc = wf_compile(&spec, &c, err);
    if (rc == WF_OK)
        rc = plan_of(c, (size_t)n, ins, &p, err);
    if (rc == WF_OK && steps)
        rc = train(c, p, rate, steps, err);
    else if (rc == WF_OK)
        rc = wf_plan_run(p, &key, NULL, NULL, err);
    if (rc == WF_OK && !steps)
        rc = put_results(c, p, dir, err);
    wf_plan_free(&p);
    wf_compiled_free(&c);
    for (int i = 0; i < MOST_INPUTS; i++)
        wf_bytes_close(&ins[i].data);
    return rc;
}

int main(int argc, char *argv[])
{
    wf_err err = {0};
    wf_status rc = WF_USAGE;

    if (argc == 6 && !strcmp(argv[1], "stages"))
        rc = stages(argv[2], argv[3], argv[4], argv[5], &err);
    else if (argc == 5 && !strcmp(argv[1], "attach"))
        rc = attach(argv[2], argv[3], argv[4], &err);
    else if (argc > 5 && !strcmp(argv[1], "grad"))
        rc = gradients(argv[2], argv[3], argv[4], 0.0f, 0, argc - 5, argv + 5, &err);
    else if (argc > 7 && !strcmp(argv[1], "train"))
        rc = gradients(argv[2], argv[3], argv[4], strtof(argv[5], NULL), strtol(argv[6], NULL, 10),
                       argc - 7, argv + 7, &err);
    else
        snprintf(err.what, sizeof(err.what), "usage: see the top of compile_tool.c");
    if (rc != WF_OK)
        fprintf(stderr, "compile_tool: %s%s%s\n", err.what, err.hint[0] ? "; " : "", err.hint);
    return rc == WF_OK ? 0 : wf_exit_code(rc);
}
