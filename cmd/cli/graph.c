/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/graph.c - a model at any stage of its compilation, as a summary or as an ONNX file. */
#include "cmd/cli/cli.h"
#include "cmd/cli/once.h"
#include "cmd/cli/place.h"
#include "cmd/cli/table.h"
#include "cmd/cli/term.h"
#include "common/ckpt/pretrained.h"
#include "common/compile/compile.h"
#include "common/data/data.h"
#include "common/exec/exec.h"
#include "common/onnx/onnx.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct request {
    const char *source, *after, *file, *mode, *n_ps, *limit;
    size_t limit_bytes;
    bool memory;
    wf_job_conf *job; /* NULL: the source is an ONNX file */
    wf_model model;
    wf_compile_spec spec;
} request;

static const char *kind_name(const wf_compiled_variable *v)
{
    return v->kind == WF_VAR_TRAINABLE   ? v->pushed ? "trainable" : "unused"
           : v->kind == WF_VAR_STATISTIC ? "statistic"
                                         : "frozen";
}

static wf_status print_variables(const wf_compiled *c, wf_err *err)
{
    static const char *const head[] = {"VARIABLE", "DTYPE", "SHAPE", "BYTES", "KIND", "SLICES"};
    wf_rows rows = {0};

    if (c->n_variables == 0)
        return WF_OK;
    wf_rows_add(&rows, head, WF_COUNT(head));
    for (size_t i = 0; i < c->n_variables; i++) {
        const wf_compiled_variable *v = &c->variables[i];
        char shape[128], bytes[32], slices[128] = "-";
        size_t at = 0;

        for (uint32_t k = 0; v->on_ps && k < v->n_slices && at + 24 < sizeof slices; k++)
            at += (size_t)snprintf(slices + at, sizeof slices - at, "%sps/%" PRIu32, k ? " " : "",
                                   c->slices[v->first_slice + k].ps);
        wf_rows_add(&rows,
                    (const char *[]){v->name, wf_dtype_name(v->dtype),
                                     wf_dims_str(v->rank, v->dims, shape, sizeof shape),
                                     wf_bytes_text(v->bytes, bytes, sizeof bytes), kind_name(v),
                                     slices},
                    6);
    }
    printf("\n");
    return wf_rows_print(&rows, stdout, err);
}

static void print_ps(const wf_compiled *c, uint32_t n_ps)
{
    for (uint32_t ps = 0; c->n_slices && ps < n_ps; ps++) {
        uint64_t bytes = 0, slices = 0;
        char text[32];

        for (size_t i = 0; i < c->n_slices; i++) {
            const wf_compiled_variable *v = &c->variables[c->slices[i].variable];

            if (c->slices[i].ps != ps)
                continue;
            bytes += (uint64_t)c->slices[i].count * wf_dtype_size(v->dtype);
            slices++;
        }
        wf_term_print(stdout, "%sps/%" PRIu32 "  %" PRIu64 " slices  %s\n", ps ? "" : "\n", ps,
                      slices, wf_bytes_text(bytes, text, sizeof text));
    }
}

static void print_ports(const wf_graph *g)
{
    char text[160];

    for (size_t i = 0; i < g->n_inputs; i++)
        wf_term_print(stdout, "%s%s %s", i ? ", " : "\ninputs  ", g->inputs[i]->name,
                      wf_value_str(g->inputs[i], text, sizeof text));
    for (size_t i = 0; i < g->n_outputs; i++)
        wf_term_print(stdout, "%s%s %s", i ? ", " : "\noutputs ", g->outputs[i]->name,
                      wf_value_str(g->outputs[i], text, sizeof text));
    printf("\n");
}

static wf_status print_summary(const request *r, const wf_compiled *c, wf_err *err)
{
    const char *name, *help;

    wf_term_print(stdout, "%s: after pass %s: %zu nodes, %zu variables, graph %016" PRIx64 "\n",
                  r->source, c->stage, c->graph->n_nodes, c->n_variables, c->digest);
    for (size_t i = 0; i < c->n_warnings; i++)
        wf_term_print(stdout, "warning: %s\n", c->warnings[i]);
    printf("passes:");
    for (size_t i = 0; wf_compile_pass_at(i, &name, &help); i++)
        wf_term_print(stdout, " %s", name);
    print_ports(c->graph);
    WF_TRY(print_variables(c, err));
    print_ps(c, r->spec.n_ps);
    return WF_OK;
}

/* How many nodes each pass leaves. */
static wf_status print_stages(const request *r, wf_err *err)
{
    const char *name, *help;

    printf("\nnodes");
    for (size_t i = 0; wf_compile_pass_at(i, &name, &help); i++) {
        wf_compile_spec spec = r->spec;
        wf_compiled *c = NULL;

        spec.stop_after = name;
        WF_TRY(wf_compile(&spec, &c, err));
        wf_term_print(stdout, "%s %s %zu", i ? "," : "", name, c->graph->n_nodes);
        wf_compiled_free(&c);
    }
    printf("\n");
    return WF_OK;
}

/* A symbolic first axis is the batch; what else is open cannot be planned. */
static wf_status plan_for(const request *r, const wf_graph *g, size_t given, wf_plan **out,
                          wf_err *err)
{
    wf_plan_shape shapes[WF_DATA_MAX_FIELDS];
    wf_plan_options options = {.shapes = shapes, .measure_only = true};

    options.limit_bytes = r->limit_bytes ? r->limit_bytes
                          : r->job       ? SIZE_MAX / 2
                                         : wf_plan_fair_limit(given);
    if (!r->job)
        options.limit_hint = wf_memory_hint;

    for (size_t i = 0; i < g->n_inputs && i < WF_DATA_MAX_FIELDS; i++) {
        const wf_value *v = g->inputs[i];
        wf_plan_shape *s = &shapes[options.n_shapes];

        if (v->rank < 1 || v->axes[0].size >= 0)
            continue;
        *s = (wf_plan_shape){.name = v->name, .rank = (uint32_t)v->rank};
        for (int32_t k = 0; k < v->rank; k++)
            s->dims[k] = k ? v->axes[k].size : r->job ? (int64_t)r->job->batch : 1;
        options.n_shapes++;
    }
    return wf_plan_new(g, &options, out, err);
}

static wf_status print_memory(const request *r, const wf_compiled *c, wf_err *err)
{
    wf_plan *plan = NULL;
    wf_plan_usage u;
    uint64_t outputs = 0;
    char text[5][32];

    WF_TRY(plan_for(r, c->graph, c->given_bytes, &plan, err));
    u = wf_plan_memory(plan);
    for (uint32_t i = 0; i < wf_plan_n_outputs(plan); i++)
        outputs += wf_plan_output(plan, i)->bytes;
    wf_plan_free(&plan);
    wf_term_print(stdout, "\nmemory of a step at batch %" PRIu64 ", %" PRIu32 " kernels\n",
                  r->job ? (uint64_t)r->job->batch : UINT64_C(1), u.n_nodes);
    wf_term_print(stdout, "  arena      %10s  tensors between kernels, sharing memory\n",
                  wf_bytes_text(u.arena_bytes, text[0], sizeof text[0]));
    wf_term_print(stdout, "  unshared   %10s  the same tensors each with memory of its own\n",
                  wf_bytes_text(u.tensors_bytes, text[1], sizeof text[1]));
    wf_term_print(stdout, "  constants  %10s\n",
                  wf_bytes_text(u.constants_bytes, text[2], sizeof text[2]));
    wf_term_print(stdout, "  workspace  %10s  of the kernel that wants most\n",
                  wf_bytes_text(u.workspace_bytes, text[3], sizeof text[3]));
    wf_term_print(stdout, "  outputs    %10s  gradients and fetched values\n",
                  wf_bytes_text(outputs, text[4], sizeof text[4]));
    return print_stages(r, err);
}

static bool is_yaml(const char *path)
{
    size_t n = strlen(path);

    return (n > 5 && strcmp(path + n - 5, ".yaml") == 0) ||
           (n > 4 && strcmp(path + n - 4, ".yml") == 0);
}

static wf_status mode_of(const char *name, wf_compile_mode *out, wf_err *err)
{
    static const char *const names[] = {"train", "eval", "infer"};
    static const wf_compile_mode modes[] = {WF_COMPILE_TRAIN, WF_COMPILE_EVAL, WF_COMPILE_INFER};

    for (size_t i = 0; i < WF_COUNT(names); i++)
        if (strcmp(names[i], name) == 0) {
            *out = modes[i];
            return WF_OK;
        }
    return wf_fail(err, WF_USAGE, NULL, "--mode is train, eval or infer, not \"%.32s\"", name);
}

static wf_status fill_spec(request *r, wf_err *err)
{
    unsigned long long n_ps;
    wf_compile_mode mode = WF_COMPILE_TRAIN;

    WF_TRY(mode_of(r->mode, &mode, err));
    if (is_yaml(r->source)) {
        const wf_strategy *strategy;

        WF_TRY(wf_job_load(r->source, &r->job, err));
        if (!r->n_ps) /* one worker, whose strategy need not be named */
            r->n_ps = r->job->strategy && strcmp(r->job->strategy, "local") == 0 ? "0" : "2";
        WF_TRY(wf_arg_u64("--ps", r->n_ps, 0, WF_COMPILE_PS_MOST, &n_ps, err));
        WF_TRY(wf_strategy_of_job(r->job, (uint32_t)n_ps, 1, &strategy, err));
        wf_compile_spec_of_job(r->job, mode, strategy, (uint32_t)n_ps, &r->model, &r->spec);
        r->spec.read_weights = wf_pretrained_read;
    } else {
        r->spec = (wf_compile_spec){.onnx_path = r->source, .mode = WF_COMPILE_RUN};
    }
    if (r->limit)
        WF_TRY(wf_arg_bytes("--memory-limit", r->limit, &r->limit_bytes, err));
    r->spec.stop_after = r->after;
    return WF_OK;
}

static wf_status run(int argc, char *argv[], wf_err *err)
{
    request r = {.mode = "train"};
    wf_compiled *c = NULL;
    wf_words words;
    const wf_flag flags[] = {{"after", 0, .value = &r.after},
                             {"output", 'o', .value = &r.file},
                             {"mode", 0, .value = &r.mode},
                             {"ps", 0, .value = &r.n_ps},
                             {"memory", 0, .set = &r.memory},
                             {"memory-limit", 0, .value = &r.limit},
                             {0}};
    wf_status rc;

    WF_TRY(wf_args(flags, argc, argv, 1, 1, &words, err));
    r.source = words.word[0];
    rc = fill_spec(&r, err);
    if (rc == WF_OK)
        rc = wf_compile(&r.spec, &c, err);
    if (rc == WF_OK && r.file) {
        rc = wf_onnx_write(c->graph, r.file, err);
        if (rc == WF_OK)
            wf_term_print(stdout, "%s: %s after pass %s, %zu nodes\n", r.file, r.source, c->stage,
                          c->graph->n_nodes);
    } else if (rc == WF_OK) {
        rc = print_summary(&r, c, err);
        if (rc == WF_OK && r.memory)
            rc = print_memory(&r, c, err);
    }
    wf_compiled_free(&c);
    wf_job_free(&r.job);
    return rc;
}

const wf_cmd wf_cmd_graph = {
    .name = "graph",
    .help = "show a model at any stage of its compilation",
    .usage =
        "weft graph JOB.yaml|MODEL.onnx [--after PASS] [--memory] [-o FILE.onnx]\n\n"
        "Compiles the model of a job, or an ONNX file as it stands, and prints its variables, "
        "where\n"
        "they lie, and what goes in and out. With -o the graph is written, to be opened in "
        "any ONNX\n"
        "viewer; weft's own operations are in the domain ai.weft.\n"
        "  --after PASS   stop after that pass; the summary lists them\n"
        "  -o FILE.onnx   write the graph instead of the summary\n"
        "  --memory       and what a step takes, planned at the job's batch (else 1), with the "
        "nodes\n"
        "                 that each pass leaves\n"
        "  --memory-limit SIZE  the most that a step may take, like 4GiB (of an ONNX file: 1 GiB\n"
        "                 and 1024 times what it holds)\n"
        "  --mode MODE    of a job: train (as it is), eval or infer\n"
        "  --ps N         of a job: parameter servers to place it on (2; 0: one worker holds "
        "all)\n\n"
        "  weft graph examples/digits.yaml\n"
        "  weft graph examples/digits.yaml --memory\n"
        "  weft graph examples/digits.yaml --after differentiate -o grad.onnx\n",
    .run = run,
};
