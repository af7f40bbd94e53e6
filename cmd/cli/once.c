/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/once.c */
#include "cmd/cli/once.h"
#include "cmd/cli/npy.h"
#include "cmd/cli/term.h"
#include "common/base/file.h"
#include "common/base/nearest.h"
#include "common/exec/exec.h"
#include "common/onnx/onnx.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_FEEDS = 64 };

const char wf_memory_hint[] =
    "neither the file nor what it is fed accounts for that much; if it is "
    "meant, say how much with --memory-limit";

typedef struct run {
    const wf_once *o;
    wf_graph *model;
    char names[MOST_FEEDS][256];
    wf_onnx_feed given[MOST_FEEDS]; /* as --input says, until they have their place in fed */
    size_t n_given;
    wf_tensor *fed[MOST_FEEDS]; /* by place in model->inputs; NULL: not given */
    wf_compiled *c;
    wf_pool *pool;
    wf_plan *plan;
} run;

wf_status wf_once_args(int argc, char *argv[], bool has_loss, wf_once *o, wf_err *err)
{
    const char *seed = "0", *threads = NULL, *limit = NULL;
    unsigned long long number;
    wf_words words;
    const wf_flag flags[] = {{"input", 'i', .words = &o->inputs},
                             {"output-dir", 'o', .value = &o->output_dir},
                             {"seed", 0, .value = &seed},
                             {"threads", 0, .value = &threads},
                             {"memory-limit", 0, .value = &limit},
                             {has_loss ? "loss" : "fetch", 0, .value = has_loss ? &o->loss : NULL,
                              .words = has_loss ? NULL : &o->fetches},
                             {0}};
    long processors = sysconf(_SC_NPROCESSORS_ONLN);

    WF_TRY(wf_args(flags, argc, argv, 1, 1, &words, err));
    o->model = words.word[0];
    WF_TRY(wf_arg_u64("--seed", seed, 0, INT64_MAX, &number, err));
    o->seed = number;
    number = processors > 0 ? (unsigned long long)processors : 1;
    if (threads)
        WF_TRY(wf_arg_u64("--threads", threads, 1, WF_POOL_MAX, &number, err));
    o->threads = number < WF_POOL_MAX ? (uint32_t)number : WF_POOL_MAX;
    if (limit)
        WF_TRY(wf_arg_bytes("--memory-limit", limit, &o->limit_bytes, err));
    if (!o->output_dir)
        return wf_fail(err, WF_USAGE, "add --output-dir DIR", "weft %s wants a folder to write to",
                       argv[0]);
    if (has_loss && !o->loss)
        return wf_fail(err, WF_USAGE, "add --loss NAME", "weft grad wants the name of the loss");
    return WF_OK;
}

static wf_status unknown_input(const run *r, const char *name, wf_err *err)
{
    const char *names[MOST_FEEDS], *near;
    char mend[160] = "";

    for (size_t i = 0; i < r->model->n_inputs; i++)
        names[i] = r->model->inputs[i]->name;
    near = wf_nearest(name, names, r->model->n_inputs);
    if (near)
        snprintf(mend, sizeof mend, "did you mean \"%.100s\"?", near);
    return wf_fail(err, WF_USAGE, mend, "%s has no input \"%.64s\"", r->o->model, name);
}

static wf_status check_fed(const wf_value *v, const char *path, const wf_tensor *t, wf_err *err)
{
    char text[128], want[160];
    bool fits = t->dtype == v->dtype && (v->rank < 0 || t->rank == (uint32_t)v->rank);

    for (uint32_t i = 0; fits && v->rank >= 0 && i < t->rank; i++)
        fits = v->axes[i].size < 0 || v->axes[i].size == t->dims[i];
    if (fits)
        return WF_OK;
    return wf_fail(err, WF_SHAPE, NULL, "%s is %s%s, and input \"%s\" is %s", path,
                   wf_dtype_name(t->dtype), wf_dims_str(t->rank, t->dims, text, sizeof text),
                   v->name, wf_value_str(v, want, sizeof want));
}

static wf_status read_given(run *r, const char *word, wf_err *err)
{
    const char *equals = strchr(word, '=');
    char *name = r->names[r->n_given];

    if (!equals || equals == word || (size_t)(equals - word) >= sizeof r->names[0])
        return wf_fail(err, WF_USAGE, "write --input NAME=FILE.npy", "\"%.64s\" names no file",
                       word);
    snprintf(name, sizeof r->names[0], "%.*s", (int)(equals - word), word);
    r->given[r->n_given].name = name;
    WF_TRY(wf_npy_read(equals + 1, &r->given[r->n_given].content, err));
    r->n_given++;
    return WF_OK;
}

/* Gives what was read its place among the model's inputs. `word` is what it came from. */
static wf_status place_given(run *r, wf_onnx_feed *given, const char *word, wf_err *err)
{
    for (size_t i = 0; i < r->model->n_inputs; i++) {
        if (strcmp(r->model->inputs[i]->name, given->name) != 0)
            continue;
        if (r->fed[i])
            return wf_fail(err, WF_USAGE, NULL, "input \"%s\" is given twice", given->name);
        r->fed[i] = given->content;
        given->content = NULL;
        if (r->model->inputs[i]->dtype == WF_BF16 && r->fed[i]->dtype == WF_F32)
            WF_TRY(wf_npy_to_bf16(&r->fed[i], err));
        return check_fed(r->model->inputs[i], strchr(word, '=') + 1, r->fed[i], err);
    }
    return unknown_input(r, given->name, err);
}

/* The model as it is for what it is fed, and what it is fed. */
static wf_status read_model(run *r, wf_err *err)
{
    const wf_words *inputs = &r->o->inputs;

    if (inputs->n > MOST_FEEDS)
        return wf_fail(err, WF_UNSUPPORTED, NULL, "%zu inputs are given; %d may be", inputs->n,
                       MOST_FEEDS);
    for (size_t i = 0; i < inputs->n; i++)
        WF_TRY(read_given(r, inputs->word[i], err));
    WF_TRY(wf_onnx_read_fed(r->o->model, r->n_given, r->given, &r->model, err));
    if (r->model->n_inputs > MOST_FEEDS)
        return wf_fail(err, WF_UNSUPPORTED, NULL, "%s has %zu inputs; %d may be", r->o->model,
                       r->model->n_inputs, MOST_FEEDS);
    for (size_t i = 0; i < inputs->n; i++)
        WF_TRY(place_given(r, &r->given[i], inputs->word[i], err));
    return WF_OK;
}

/* The content of the input with that name; NULL when it was not given. */
static wf_tensor *fed_to(const run *r, const char *name)
{
    for (size_t i = 0; i < r->model->n_inputs; i++)
        if (strcmp(r->model->inputs[i]->name, name) == 0)
            return r->fed[i];
    return NULL;
}

/* An input that the results need and that was not given. Others may be left out. */
static wf_status check_all_fed(const run *r, wf_err *err)
{
    for (size_t i = 0; i < r->c->n_feeds; i++) {
        char mend[160];

        if (fed_to(r, r->c->feeds[i].name))
            continue;
        snprintf(mend, sizeof mend, "add --input %.60s=FILE.npy", r->c->feeds[i].name);
        return wf_fail(err, WF_USAGE, mend, "%s wants input \"%.64s\"", r->o->model,
                       r->c->feeds[i].name);
    }
    return WF_OK;
}

/* Axes, shapes, bounds and the like, which others' shapes may depend on. */
static bool is_small_integer(const wf_tensor *t)
{
    return (wf_dtype_is_int(t->dtype) || t->dtype == WF_BOOL) && wf_elems(t) <= WF_MAX_CARRIED;
}

static wf_status compile(run *r, wf_compile_spec spec, bool all_constant, wf_err *err)
{
    wf_compile_feed feeds[MOST_FEEDS];

    spec.graph = r->model;
    spec.feeds = feeds;
    for (size_t i = 0; i < r->model->n_inputs; i++)
        if (r->fed[i])
            feeds[spec.n_feeds++] =
                (wf_compile_feed){.name = r->model->inputs[i]->name,
                                  .content = r->fed[i],
                                  .is_constant = all_constant || is_small_integer(r->fed[i])};
    wf_compiled_free(&r->c);
    WF_TRY(wf_compile(&spec, &r->c, err));
    return check_all_fed(r, err);
}

static bool is_open(const wf_graph *g)
{
    int64_t dims[WF_MAX_RANK];

    for (size_t i = 0; i < g->n_values; i++)
        if (!wf_value_dims(g->values[i], dims))
            return true;
    return false;
}

/* For these very feeds. Where a shape still depends on what is fed (NonZero of a float, the bounds
 * of Range), everything becomes a constant: what is constant is computed node by node, each with
 * the shapes that those before it turned out to have. */
static wf_status compile_for_feeds(run *r, wf_compile_spec spec, wf_err *err)
{
    WF_TRY(read_model(r, err));
    WF_TRY(compile(r, spec, false, err));
    return is_open(r->c->graph) ? compile(r, spec, true, err) : WF_OK;
}

static wf_status make_plan(run *r, wf_err *err)
{
    wf_plan_options options = {.limit_bytes = r->o->limit_bytes, .limit_hint = wf_memory_hint};
    size_t given = r->c->given_bytes;

    WF_TRY(wf_pool_new(r->o->threads, &r->pool, err));
    options.pool = r->pool;
    for (size_t i = 0; i < r->model->n_inputs; i++)
        given += r->fed[i] ? wf_tensor_bytes(r->fed[i]) : 0;
    if (!options.limit_bytes)
        options.limit_bytes = wf_plan_fair_limit(given);
    WF_TRY(wf_plan_new(r->c->graph, &options, &r->plan, err));
    for (size_t i = 0; i < r->c->n_feeds; i++) {
        int64_t port = wf_plan_find_input(r->plan, r->c->feeds[i].name);

        if (port >= 0)
            wf_plan_bind_input(r->plan, (uint32_t)port, fed_to(r, r->c->feeds[i].name)->data);
    }
    return WF_OK;
}

/* The gradient of a variable that the loss does not depend on. */
static wf_status write_zeros(const run *r, const wf_compiled_output *out, wf_err *err)
{
    const wf_compiled_variable *v = &r->c->variables[out->variable];
    wf_tensor *t = NULL;
    wf_status rc;

    WF_TRY(wf_tensor_new(v->dtype, v->rank, v->dims, &t, err));
    rc = wf_npy_write(r->o->output_dir, out->label, v->dtype, v->rank, v->dims, t->data, err);
    wf_tensor_free(&t);
    return rc;
}

static wf_status write_outputs(const run *r, wf_err *err)
{
    WF_TRY(wf_make_dirs(r->o->output_dir, err));
    for (size_t i = 0; i < r->c->n_outputs; i++) {
        const wf_compiled_output *out = &r->c->outputs[i];
        const wf_port *port;
        int64_t at;

        if (!out->name) {
            WF_TRY(write_zeros(r, out, err));
            continue;
        }
        at = wf_plan_find_output(r->plan, out->name);
        wf_assert(at >= 0); /* the plan was made from the graph that names it */
        port = wf_plan_output(r->plan, (uint32_t)at);
        WF_TRY(wf_npy_write(r->o->output_dir, out->label, port->dtype, port->rank, port->dims,
                            wf_plan_output_data(r->plan, (uint32_t)at), err));
    }
    wf_term_print(stdout, "%s: %zu files written to %s\n", r->o->model, r->c->n_outputs,
                  r->o->output_dir);
    return WF_OK;
}

wf_status wf_once_run(const wf_once *o, wf_compile_mode mode, wf_err *err)
{
    wf_compile_spec spec = {.mode = mode,
                            .are_final = mode == WF_COMPILE_RUN,
                            .loss = o->loss,
                            .fetches = o->fetches.word,
                            .n_fetches = o->fetches.n};
    wf_step_key key = {.seed = o->seed};
    run r = {.o = o};
    wf_status rc;

    rc = compile_for_feeds(&r, spec, err);
    for (size_t i = 0; rc == WF_OK && i < r.c->n_warnings; i++)
        wf_term_print(stderr, "warning: %s\n", r.c->warnings[i]);
    if (rc == WF_OK)
        rc = make_plan(&r, err);
    if (rc == WF_OK)
        rc = wf_plan_run(r.plan, &key, NULL, NULL, err);
    if (rc == WF_OK)
        rc = write_outputs(&r, err);
    wf_plan_free(&r.plan);
    wf_pool_free(&r.pool);
    for (size_t i = 0; i < MOST_FEEDS; i++) {
        wf_tensor_free(&r.given[i].content);
        wf_tensor_free(&r.fed[i]);
    }
    wf_compiled_free(&r.c);
    wf_graph_free(&r.model);
    return rc;
}
