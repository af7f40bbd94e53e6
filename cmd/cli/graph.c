/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/graph.c - a model at any stage of its compilation, as a summary or as an ONNX file. */
#include "cmd/cli/cli.h"
#include "cmd/cli/once.h"
#include "cmd/cli/place.h"
#include "cmd/cli/submit.h"
#include "cmd/cli/table.h"
#include "cmd/cli/term.h"
#include "common/ckpt/pretrained.h"
#include "common/compile/compile.h"
#include "common/data/data.h"
#include "common/exec/exec.h"
#include "common/graph/narrow.h"
#include "common/graph/op.h"
#include "common/kernels/kernel.h"
#include "common/onnx/onnx.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct request {
    const char *source, *after, *file, *mode, *n_ps, *limit, *device;
    size_t limit_bytes;
    bool memory, passes, values;
    wf_job_conf *job; /* NULL: the source is an ONNX file */
    bool on_worker;   /* its variables are in the worker, */
    bool sends;       /* and gradients leave it */
    wf_model model;
    wf_compile_spec spec;
} request;

/* Without a loss, as in a file by itself, there is no gradient that could say what is trained. */
static const char *kind_name(const wf_compiled_variable *v, bool has_loss)
{
    return v->kind == WF_VAR_TRAINABLE   ? !has_loss   ? "weights"
                                           : v->pushed ? "trainable"
                                                       : "unused"
           : v->kind == WF_VAR_STATISTIC ? "statistic"
                                         : "frozen";
}

static wf_status print_variables(const wf_compiled *c, bool has_loss, wf_err *err)
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
                                     wf_bytes_text(v->bytes, bytes, sizeof bytes),
                                     kind_name(v, has_loss), slices},
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
        wf_term_print(stdout, "%sps/%" PRIu32 "  %" PRIu64 " slice%s  %s\n", ps ? "" : "\n", ps,
                      slices, slices == 1 ? "" : "s", wf_bytes_text(bytes, text, sizeof text));
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

/* "11.7 M" */
static const char *count_text(uint64_t n, char *text, size_t size)
{
    static const char *const units[] = {"", " k", " M", " G", " T", " P", " E"};
    double number = (double)n;
    size_t unit = 0;

    for (; number >= 999.5 && unit + 1 < WF_COUNT(units); unit++)
        number /= 1000;
    snprintf(text, size, unit && number < 99.95 ? "%.1f%s" : "%.0f%s", number, units[unit]);
    return text;
}

/* What the model's file is, in one line; nothing for a model of layers. */
static void print_source(const request *r, const wf_compiled *c)
{
    const wf_compiled_source *s = &c->source;
    const char *path = r->job ? r->job->onnx : r->source, *slash = strrchr(path ? path : "", '/');
    char count[32], bytes[32];

    if (!s->opset)
        return;
    wf_term_print(stdout, "%s: opset %" PRId64, slash ? slash + 1 : path, s->opset);
    if (s->producer[0])
        wf_term_print(stdout, " (%s%s%.*s)", s->producer, s->version[0] ? " " : "",
                      (int)strcspn(s->version, " "), s->version);
    wf_term_print(stdout, ", %zu variables (%s parameters, %s), inputs %s", s->n_variables,
                  count_text(s->elems, count, sizeof count),
                  wf_bytes_text(s->bytes, bytes, sizeof bytes), s->inputs);
    if (s->batch_norm != WF_NORM_NONE)
        wf_term_print(stdout, "; BatchNormalization in training mode: %s",
                      s->batch_norm == WF_NORM_TRAINING ? "yes"
                                                        : "no (training normalises by the batch)");
    printf("\n");
}

/* The variables that the summary lists, together. */
static void print_totals(const wf_compiled *c)
{
    uint64_t elems = 0, bytes = 0;
    size_t n = 0, statistics = 0;
    char count[32], size[32];

    for (size_t i = 0; i < c->n_variables; i++) {
        const wf_compiled_variable *v = &c->variables[i];

        if (v->kind == WF_VAR_STATISTIC) {
            statistics++;
            continue;
        }
        n++;
        elems += (uint64_t)v->elems;
        bytes += v->bytes;
    }
    wf_term_print(stdout, "\n%zu variables, %s parameters, %s", n,
                  count_text(elems, count, sizeof count), wf_bytes_text(bytes, size, sizeof size));
    if (statistics)
        wf_term_print(stdout, ", and %zu running statistics", statistics);
    printf("\n");
}

/* What nodes make, without variables. */
static bool is_between(const wf_value *v)
{
    return v->producer && !v->known && v->producer->n_in > 0;
}

/* How many values are kept in fewer bits than they are computed in; nothing where none is. */
static void print_narrow(const wf_graph *g)
{
    size_t narrow = 0, all = 0;
    wf_dtype dtype = WF_NONE;

    for (size_t i = 0; i < g->n_nodes; i++)
        if (wf_node_narrow(g->nodes[i]) != WF_NONE)
            dtype = wf_node_narrow(g->nodes[i]);
    if (dtype == WF_NONE)
        return;
    for (size_t i = 0; i < g->n_values; i++) {
        all += is_between(g->values[i]);
        narrow += is_between(g->values[i]) && g->values[i]->dtype == dtype;
    }
    wf_term_print(stdout, "kept in %s: %zu of %zu values between nodes (--values lists them)\n",
                  wf_dtype_name(dtype), narrow, all);
}

static wf_status print_values(const wf_graph *g, wf_err *err)
{
    static const char *const head[] = {"VALUE", "MADE BY", "TYPE"};
    wf_rows rows = {0};

    wf_rows_add(&rows, head, WF_COUNT(head));
    for (size_t i = 0; i < g->n_values; i++) {
        const wf_value *v = g->values[i];
        char text[160];

        if (is_between(v))
            wf_rows_add(&rows,
                        (const char *[]){v->name, v->producer->op->name,
                                         wf_value_str(v, text, sizeof text)},
                        WF_COUNT(head));
    }
    printf("\n");
    return wf_rows_print(&rows, stdout, err);
}

static wf_status print_summary(const request *r, const wf_compiled *c, wf_err *err)
{
    bool has_loss = r->spec.mode == WF_COMPILE_TRAIN;

    print_source(r, c);
    wf_term_print(stdout, "%s: %s%s%s%zu nodes, %zu variables, graph %016" PRIx64 "\n", r->source,
                  r->after ? "after pass " : "", r->after ? c->stage : "", r->after ? ": " : "",
                  c->graph->n_nodes, c->n_variables, c->digest);
    for (size_t i = 0; i < c->n_warnings; i++)
        wf_term_print(stdout, "warning: %s\n", c->warnings[i]);
    print_ports(c->graph);
    print_narrow(c->graph);
    WF_TRY(print_variables(c, has_loss, err));
    print_totals(c);
    print_ps(c, r->spec.n_ps);
    return r->values ? print_values(c->graph, err) : WF_OK;
}

/* The passes in their order, what holds after each, and how many nodes it leaves. */
static wf_status print_passes(const request *r, wf_err *err)
{
    static const char *const head[] = {"PASS", "NODES", "AFTER IT"};
    const char *name, *help;
    wf_rows rows = {0};

    wf_rows_add(&rows, head, WF_COUNT(head));
    for (size_t i = 0; wf_compile_pass_at(i, &name, &help); i++) {
        wf_compile_spec spec = r->spec;
        wf_compiled *c = NULL;
        char nodes[32];

        spec.stop_after = name;
        if (wf_compile(&spec, &c, err) != WF_OK) {
            wf_rows_close(&rows);
            return err->status;
        }
        snprintf(nodes, sizeof nodes, "%zu", c->graph->n_nodes);
        wf_rows_add(&rows, (const char *[]){name, nodes, help}, WF_COUNT(head));
        wf_compiled_free(&c);
    }
    printf("\n");
    return wf_rows_print(&rows, stdout, err);
}

/* Variables that a worker keeps on its device between steps. */
typedef struct kept {
    const char **names; /* [n] */
    size_t n, bytes;    /* bytes: of weights, of what changes them, and of slots */
} kept;

/* Errors: WF_NOMEM; those of the job's optimizer. */
static wf_status find_kept(const request *r, const wf_compiled *c, const wf_device *device,
                           kept *out, wf_err *err)
{
    uint32_t several; /* batches to a step: a gradient of their own */
    wf_opt opt;

    *out = (kept){0};
    if (!r->on_worker || !device || !wf_updates_of(device))
        return WF_OK;
    WF_TRY(wf_compile_optimizer_of_job(r->job, &opt, err));
    several = !r->sends && opt.shared[WF_OPT_ACCUMULATION] > 1;
    out->names = wf_arena_array(c->arena, c->n_variables + 1, sizeof(*out->names));
    if (!out->names)
        return wf_fail_nomem(err, c->n_variables * sizeof(*out->names));
    for (size_t i = 0; i < c->n_variables; i++) {
        const wf_compiled_variable *v = &c->variables[i];
        uint32_t slots = v->kind == WF_VAR_TRAINABLE ? wf_opt_n_slots(&opt) : 0;

        if (!v->on_ps || v->is_table)
            continue;
        out->names[out->n++] = v->name;
        out->bytes += v->bytes * (v->kind == WF_VAR_FROZEN ? 1 : 2 + slots + several);
    }
    return WF_OK;
}

/* The types that values have in a plan for the device: GPUs keep more of them narrow. */
static wf_status take_types(const request *r, wf_graph *g, wf_err *err)
{
    const wf_dtype type = r->job ? wf_compute_kept(r->job->compute) : WF_NONE;
    const wf_device *device;

    if (!r->device || type == WF_NONE)
        return WF_OK;
    WF_TRY(wf_device_open_planned(r->device, &device, err));
    if (!wf_kernels_keep_narrow(device, type) || !wf_kernels_keep_convolved(device))
        return WF_OK;
    WF_TRY(wf_narrow_for_gpus(g, type, err));
    return wf_infer(g, err);
}

/* A symbolic first axis is the batch; what else is open cannot be planned. */
static wf_status plan_for(const request *r, const wf_compiled *c, kept *on_device, wf_plan **out,
                          wf_err *err)
{
    const wf_graph *g = c->graph;
    wf_plan_shape shapes[WF_DATA_MAX_FIELDS];
    wf_plan_options options = {
        .shapes = shapes, .compute = r->job ? r->job->compute : 0, .measure_only = true};

    options.limit_bytes = r->limit_bytes ? r->limit_bytes
                          : r->job       ? SIZE_MAX / 2
                                         : wf_plan_fair_limit(c->given_bytes);
    if (!r->job)
        options.limit_hint = wf_memory_hint;
    if (r->device)
        WF_TRY(wf_device_open_planned(r->device, &options.device, err));
    WF_TRY(find_kept(r, c, options.device, on_device, err));
    options.n_resident = on_device->n;
    options.resident = on_device->names;
    options.outputs_on_host = r->sends;
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
    char text[7][32], on_host[512];
    kept on_device;

    WF_TRY(plan_for(r, c, &on_device, &plan, err));
    u = wf_plan_memory(plan);
    for (uint32_t i = 0; i < wf_plan_n_outputs(plan); i++)
        outputs += wf_plan_output(plan, i)->bytes;
    wf_plan_host_operations(plan, on_host, sizeof on_host);
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
    if (!r->device || strcmp(r->device, "cpu") == 0)
        return WF_OK;
    wf_term_print(stdout, "  %-9s  %10s  of arena, constants and workspace, at most\n", r->device,
                  wf_bytes_text(u.device_bytes, text[5], sizeof text[5]));
    if (on_device.n)
        wf_term_print(stdout, "  %-9s  %10s  of weights, gradients and the optimizer's slots\n",
                      r->device, wf_bytes_text(on_device.bytes, text[6], sizeof text[6]));
    if (on_host[0])
        wf_term_print(stdout, "%" PRIu32 " kernels run on the cpu: %s\n", u.n_on_host, on_host);
    return WF_OK;
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

/* The workers are those that the job names. */
static wf_status divide(request *r, wf_err *err)
{
    const wf_stage_workers of = {.n = wf_stages_workers(r->job)};
    wf_stage_home homes[WF_STAGES_MOST];
    uint32_t n;

    WF_TRY(wf_stages_of_job(r->job, &of, homes, &n, err));
    wf_stages_put(r->job, homes, n, &r->spec);
    return WF_OK;
}

static wf_status fill_spec(request *r, wf_err *err)
{
    unsigned long long n_ps;
    wf_compile_mode mode = WF_COMPILE_TRAIN;

    WF_TRY(mode_of(r->mode, &mode, err));
    if (is_yaml(r->source)) {
        const wf_strategy *strategy;
        bool divided;

        WF_TRY(wf_job_load(r->source, &r->job, err));
        divided = wf_job_is_divided(r->job);
        if (!r->n_ps) /* one worker, whose strategy need not be named */
            r->n_ps =
                divided || (r->job->strategy && strcmp(r->job->strategy, "local") == 0) ? "0" : "2";
        WF_TRY(wf_arg_u64("--ps", r->n_ps, 0, WF_COMPILE_PS_MOST, &n_ps, err));
        WF_TRY(wf_strategy_of_job(r->job, (uint32_t)n_ps, divided ? wf_stages_workers(r->job) : 1,
                                  &strategy, err));
        r->on_worker = strategy->on_worker && mode == WF_COMPILE_TRAIN;
        r->sends = strategy->sends;
        wf_compile_spec_of_job(r->job, mode, strategy, (uint32_t)n_ps, &r->model, &r->spec);
        r->spec.read_weights = wf_pretrained_read;
        if (strategy->divides)
            WF_TRY(divide(r, err));
    } else {
        r->spec = (wf_compile_spec){
            .onnx_path = r->source, .mode = WF_COMPILE_RUN, .warns_of_export = true};
    }
    if (r->limit)
        WF_TRY(wf_arg_bytes("--memory-limit", r->limit, &r->limit_bytes, err));
    r->spec.stop_after = r->after;
    return WF_OK;
}

/* What `weft train --check` finds, once the model is shown. */
static wf_status check_job(const char *path, wf_err *err)
{
    wf_submission s;
    wf_status rc = wf_submission_open(path, &(wf_submit_options){.warned = true}, &s, err);

    wf_submission_close(&s);
    return rc;
}

static wf_status run(int argc, char *argv[], wf_err *err)
{
    request r = {.mode = "train"};
    wf_compiled *c = NULL;
    wf_words words;
    const wf_flag flags[] = {
        {"after", 0, .value = &r.after},   {"output", 'o', .value = &r.file},
        {"mode", 0, .value = &r.mode},     {"ps", 0, .value = &r.n_ps},
        {"memory", 0, .set = &r.memory},   {"passes", 0, .set = &r.passes},
        {"values", 0, .set = &r.values},   {"memory-limit", 0, .value = &r.limit},
        {"device", 0, .value = &r.device}, {0}};
    wf_status rc;

    WF_TRY(wf_args(flags, argc, argv, 1, 1, &words, err));
    r.source = words.word[0];
    if (r.device && !r.memory)
        return wf_fail(err, WF_USAGE, "add --memory", "--device is for --memory");
    rc = fill_spec(&r, err);
    if (rc == WF_OK)
        rc = wf_compile(&r.spec, &c, err);
    if (rc == WF_OK && r.file) {
        rc = wf_onnx_write(c->graph, r.file, err);
        if (rc == WF_OK)
            wf_term_print(stdout, "%s: %s after pass %s, %zu nodes\n", r.file, r.source, c->stage,
                          c->graph->n_nodes);
    } else if (rc == WF_OK) {
        rc = take_types(&r, c->graph, err);
        if (rc == WF_OK)
            rc = print_summary(&r, c, err);
        if (rc == WF_OK && r.memory)
            rc = print_memory(&r, c, err);
        if (rc == WF_OK && r.passes)
            rc = print_passes(&r, err);
        if (rc == WF_OK && r.job && !r.after)
            rc = check_job(r.source, err);
    }
    wf_compiled_free(&c);
    wf_job_free(&r.job);
    return rc;
}

const wf_cmd wf_cmd_graph = {
    .name = "graph",
    .help = "show a model at any stage of its compilation",
    .usage =
        "weft graph JOB.yaml|MODEL.onnx [--memory] [--passes] [--values]\n"
        "           [--after PASS] [-o FILE.onnx]\n"
        "\n"
        "Shows the model of a job or an ONNX file: opset and exporter, what the exporter changed,\n"
        "inputs and outputs, the variables and where they are stored. With -o it writes the graph\n"
        "for an ONNX viewer; weft's own operations have the domain ai.weft. Without -o and "
        "--after\n"
        "it also checks the job and its data, as weft train --check does.\n"
        "  --memory       also show the memory of one step at the job's batch size (1 for an ONNX\n"
        "                 file)\n"
        "  --device NAME  the device that --memory is for, like cuda:0, which need not be here\n"
        "                 (default: cpu); values are shown with the types that they have there\n"
        "  --memory-limit SIZE  the most memory that a step may need, like 4GiB (default for an\n"
        "                 ONNX file: 1 GiB plus 1024 times its size)\n"
        "  --passes       also list the passes of the compiler, with the node count after each\n"
        "  --values       also list what the nodes make, with types and shapes\n"
        "  --after PASS   show the graph after this pass\n"
        "  -o FILE.onnx   write the graph instead of the summary\n"
        "  --mode MODE    the graph of a job to show: train (default), eval or infer\n"
        "  --ps N         the number of parameter servers to place a job on (2; 0: one worker\n"
        "                 holds all variables)\n"
        "\n"
        "  weft graph model.onnx\n"
        "  weft graph examples/digits.yaml --memory\n"
        "  weft graph examples/digits.yaml --after differentiate -o grad.onnx\n",
    .run = run,
};
