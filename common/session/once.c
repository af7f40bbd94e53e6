/* SPDX-License-Identifier: Apache-2.0 */
/* common/session/once.c */
#include "common/session/once.h"
#include "common/exec/exec.h"
#include "common/onnx/onnx.h"
#include "common/session/subject.h"

#include <stdlib.h>
#include <string.h>

typedef struct run {
    const wf_once *o;
    const wf_graph *model;
    wf_graph *own; /* the model, when it was read or changed here */
    wf_fed fed;
    wf_compiled *c;
    wf_plan *plan;
} run;

static wf_status read_file(run *r, wf_err *err)
{
    wf_onnx_feed *feeds = calloc(r->o->n_feeds + 1, sizeof *feeds);
    wf_status rc;

    if (!feeds)
        return wf_fail_nomem(err, r->o->n_feeds * sizeof *feeds);
    for (size_t i = 0; i < r->o->n_feeds; i++)
        feeds[i] = (wf_onnx_feed){r->o->feeds[i].name, (wf_tensor *)r->o->feeds[i].content};
    rc = wf_onnx_read_fed(r->o->name, r->o->n_feeds, feeds, &r->own, err);
    free(feeds);
    return rc;
}

/* The model as it is for what it is fed, and what it is fed. */
static wf_status read_model(run *r, wf_err *err)
{
    if (!r->o->graph)
        WF_TRY(read_file(r, err));
    else if (r->o->loss && r->o->n_fetches)
        WF_TRY(wf_graph_copy(r->o->graph, &r->own, err));
    r->model = r->own ? r->own : r->o->graph;
    WF_TRY(wf_fed_place(r->model, r->o->name, r->o->n_feeds, r->o->feeds, &r->fed, err));
    if (r->o->loss && r->o->n_fetches)
        WF_TRY(wf_subjects_set(r->own, r->o->name, &r->fed, r->o->n_fetches, r->o->fetches, err));
    return WF_OK;
}

/* Axes, shapes, bounds and the like, which others' shapes may depend on. */
static bool is_small_integer(const wf_tensor *t)
{
    return (wf_dtype_is_int(t->dtype) || t->dtype == WF_BOOL) && wf_elems(t) <= WF_MAX_CARRIED;
}

static wf_status compile(run *r, bool all_constant, wf_err *err)
{
    wf_compile_feed *feeds = calloc(r->fed.n + 1, sizeof *feeds);
    bool grad = r->o->loss;
    wf_compile_spec spec = {.graph = r->model,
                            .mode = grad ? WF_COMPILE_GRAD : WF_COMPILE_RUN,
                            .are_final = !grad,
                            .loss = r->o->loss,
                            .fetches = grad ? NULL : r->o->fetches,
                            .n_fetches = grad ? 0 : r->o->n_fetches,
                            .feeds = feeds};
    wf_status rc;

    if (!feeds)
        return wf_fail_nomem(err, r->fed.n * sizeof *feeds);
    for (size_t i = 0; i < r->fed.n; i++) {
        const wf_tensor *t = r->fed.inputs[i].content;

        if (t)
            feeds[spec.n_feeds++] =
                (wf_compile_feed){.name = r->fed.inputs[i].name,
                                  .content = t,
                                  .is_constant = all_constant || is_small_integer(t)};
    }
    wf_compiled_free(&r->c);
    rc = wf_compile(&spec, &r->c, err);
    free(feeds);
    return rc;
}

/* For these very feeds. Where a shape still depends on what is fed (NonZero of a float, the bounds
 * of Range), everything becomes a constant: what is constant is computed node by node, each with
 * the shapes that those before it turned out to have. */
static wf_status compile_for_feeds(run *r, char unfed[WF_UNFED_NAME], wf_err *err)
{
    WF_TRY(read_model(r, err));
    WF_TRY(compile(r, false, err));
    WF_TRY(wf_fed_check(&r->fed, r->o->name, r->c, unfed, err));
    if (wf_graph_is_open(r->c->graph)) {
        WF_TRY(compile(r, true, err));
        WF_TRY(wf_fed_check(&r->fed, r->o->name, r->c, unfed, err));
    }
    for (size_t i = 0; r->o->warn && i < r->c->n_warnings; i++)
        r->o->warn(r->o->arg, r->c->warnings[i]);
    return WF_OK;
}

static wf_status make_plan(run *r, wf_err *err)
{
    wf_plan_options options = {.device = r->o->device,
                               .pool = r->o->pool,
                               .limit_bytes = r->o->limit_bytes,
                               .limit_hint = r->o->limit_hint};

    if (!options.limit_bytes)
        options.limit_bytes = wf_plan_fair_limit(r->c->given_bytes + wf_fed_bytes(&r->fed));
    WF_TRY(wf_plan_new(r->c->graph, &options, &r->plan, err));
    for (size_t i = 0; i < r->c->n_feeds; i++) {
        int64_t port = wf_plan_find_input(r->plan, r->c->feeds[i].name);

        if (port >= 0)
            wf_plan_bind_input(r->plan, (uint32_t)port,
                               wf_fed_find(&r->fed, r->c->feeds[i].name)->data);
    }
    return WF_OK;
}

static wf_status take_output(const run *r, const wf_compiled_output *from, wf_named_list *out,
                             wf_err *err)
{
    const wf_compiled_variable *zero = from->name ? NULL : &r->c->variables[from->variable];
    int64_t at = zero ? -1 : wf_plan_find_output(r->plan, from->name);
    const wf_port *port = zero ? NULL : wf_plan_output(r->plan, (uint32_t)at);
    wf_tensor *t = NULL;
    wf_status rc;

    if (zero) /* the gradient of a variable that the loss does not depend on */
        WF_TRY(wf_tensor_new(zero->dtype, zero->rank, zero->dims, &t, err));
    else
        WF_TRY(wf_tensor_new(port->dtype, port->rank, port->dims, &t, err));
    if (port && port->bytes)
        memcpy(t->data, wf_plan_output_data(r->plan, (uint32_t)at), port->bytes);
    rc = wf_named_add(out, from->label, &t, false, err);
    wf_tensor_free(&t);
    return rc;
}

static const wf_compiled_output *derivative(const run *r, const char *name)
{
    for (size_t i = 0; i < r->c->n_outputs; i++)
        if (r->c->outputs[i].meaning == WF_MEANS_GRADIENT &&
            strcmp(r->c->outputs[i].label, name) == 0)
            return &r->c->outputs[i];
    return NULL;
}

/* What was asked for by name comes in that order, behind the loss. */
static wf_status take_outputs(const run *r, wf_named_list *out, wf_err *err)
{
    bool ordered = r->o->loss && r->o->n_fetches;

    for (size_t i = 0; i < r->c->n_outputs; i++)
        if (!ordered || r->c->outputs[i].meaning != WF_MEANS_GRADIENT)
            WF_TRY(take_output(r, &r->c->outputs[i], out, err));
    for (size_t i = 0; ordered && i < r->o->n_fetches; i++) {
        const wf_compiled_output *from = derivative(r, r->o->fetches[i]);

        wf_assert(from); /* wf_subjects_set made each a variable, and GRAD lists them all */
        WF_TRY(take_output(r, from, out, err));
    }
    return WF_OK;
}

wf_status wf_once_run(const wf_once *o, wf_named_list *out, char unfed[WF_UNFED_NAME], wf_err *err)
{
    wf_step_key key = {.seed = o->seed};
    run r = {.o = o};
    wf_status rc;

    unfed[0] = 0;
    rc = compile_for_feeds(&r, unfed, err);
    if (rc == WF_OK)
        rc = make_plan(&r, err);
    if (rc == WF_OK)
        rc = wf_plan_run(r.plan, &key, NULL, NULL, err);
    if (rc == WF_OK)
        rc = take_outputs(&r, out, err);
    wf_plan_free(&r.plan);
    wf_compiled_free(&r.c);
    wf_fed_close(&r.fed);
    wf_graph_free(&r.own);
    return rc;
}
