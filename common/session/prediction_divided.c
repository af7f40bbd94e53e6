/* SPDX-License-Identifier: Apache-2.0 */
/* common/session/prediction_divided.c - a prediction by a model that is divided among workers. No
 * process has its weights: what it takes and gives is known from the graph, and whoever has the
 * splits computed gives the outputs of one batch after the other.
 */
#include "common/session/model.h"
#include "common/session/prediction_state.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool wf_prediction_is_divided(const wf_prediction *p)
{
    return p->how.divides;
}

/* ---- the model ---- */

static wf_status add_output(wf_prediction *p, const wf_compiled_output *o, wf_prediction_shape *to,
                            wf_err *err)
{
    const wf_value *v = wf_graph_value(p->compiled->graph, o->name);

    *to = (wf_prediction_shape){.label = o->label, .dtype = v->dtype, .rank = (uint32_t)v->rank};
    if (wf_value_sizes(v, to->sizes))
        return WF_OK;
    return wf_fail(err, WF_UNSUPPORTED, "predict without --spread",
                   "output \"%.64s\" has an extent that is no multiple of the batch, and the model "
                   "is divided among workers, which have to know it before",
                   o->label);
}

static wf_status compile(wf_prediction *p, wf_err *err)
{
    wf_prediction_shape *outputs;
    wf_compile_spec spec;
    wf_model model;

    wf_model_spec_blank(p->job, &model, &spec);
    spec.batch = 0;
    WF_TRY(wf_compile(&spec, &p->compiled, err));
    for (size_t i = 0; p->how.warn && i < p->compiled->n_warnings; i++)
        p->how.warn(p->how.arg, p->compiled->warnings[i]);
    outputs = wf_arena_array(p->arena, p->compiled->n_outputs + 1, sizeof *outputs);
    if (!outputs)
        return wf_fail_nomem(err, p->compiled->n_outputs * sizeof *outputs);
    for (size_t i = 0; i < p->compiled->n_outputs; i++)
        WF_TRY(add_output(p, &p->compiled->outputs[i], &outputs[i], err));
    p->divided = (wf_prediction_model){p->compiled->graph, outputs, p->compiled->n_outputs};
    return WF_OK;
}

wf_status wf_divided_read(wf_prediction *p, wf_err *err)
{
    if (p->how.model)
        p->divided = *p->how.model;
    else
        WF_TRY(compile(p, err));
    p->graph = (wf_graph *)p->divided.graph; /* which wf_divided_close takes out again */
    return WF_OK;
}

static wf_status check_fed(const wf_prediction *p, wf_err *err)
{
    for (size_t i = 0; p->compiled && i < p->compiled->n_feeds; i++) {
        const char *name = p->compiled->feeds[i].name;
        bool is_fed = false;

        for (size_t k = 0; k < p->ask.n_inputs; k++)
            is_fed |= strcmp(p->ask.inputs[k].name, name) == 0;
        if (is_fed)
            continue;
        wf_fail(err, WF_USAGE, NULL, "%s wants input \"%.64s\"", p->name, name);
        if (err)
            snprintf(err->hint, sizeof err->hint, "add --input %.60s=FILE", name);
        return WF_USAGE;
    }
    return WF_OK;
}

/* The outputs, as the first batch will have them. */
wf_status wf_divided_look(wf_prediction *p, wf_err *err)
{
    uint64_t n = wf_prediction_batch(p);

    WF_TRY(check_fed(p, err));
    p->outputs = wf_arena_array(p->arena, p->divided.n_outputs + 1, sizeof *p->outputs);
    if (!p->outputs)
        return wf_fail_nomem(err, p->divided.n_outputs * sizeof *p->outputs);
    for (; p->n_outputs < p->divided.n_outputs; p->n_outputs++) {
        const wf_prediction_shape *from = &p->divided.outputs[p->n_outputs];
        wf_prediction_output *o = &p->outputs[p->n_outputs];

        *o = (wf_prediction_output){from->label, from->dtype, from->rank, {0}};
        for (uint32_t i = 0; i < o->rank; i++)
            if (from->sizes[i] >= 0)
                o->dims[i] = from->sizes[i];
            else if (__builtin_mul_overflow(-from->sizes[i], (int64_t)n, &o->dims[i]))
                return wf_fail(err, WF_SHAPE, NULL, "output \"%.64s\" has no size that fits",
                               o->label);
        WF_TRY(wf_prediction_check_output(p, o, n, err));
    }
    return WF_OK;
}

void wf_divided_close(wf_prediction *p)
{
    wf_err ignored;
    wf_status rc = wf_prediction_end_split(p, false, &ignored);

    (void)rc; /* what was written of it is of no use */
    wf_fed_close(&p->fed);
    if (p->how.divides)
        p->graph = NULL; /* it is that of `compiled`, or was lent */
    wf_compiled_free(&p->compiled);
}

/* ---- splits ---- */

wf_status wf_prediction_begin_split(wf_prediction *p, uint64_t split, wf_err *err)
{
    wf_status rc;

    wf_assert(split < p->n_splits && !p->open);
    rc = wf_part_open(p, split, &p->writer, err);
    p->open = split + 1;
    return rc;
}

wf_status wf_prediction_take(wf_prediction *p, uint64_t first, uint64_t n, const wf_tensor *out[],
                             wf_err *err)
{
    wf_feed feeds[WF_PREDICTION_INPUTS];

    wf_fed_close(&p->fed);
    WF_TRY(wf_prediction_fill(p, first, n, feeds, err));
    WF_TRY(wf_fed_place(p->graph, p->name, p->ask.n_inputs, feeds, &p->fed, err));
    for (size_t i = 0; i < p->fed.n; i++)
        out[i] = p->fed.inputs[i].content;
    return WF_OK;
}

wf_status wf_prediction_add(wf_prediction *p, uint64_t n, const void *const outputs[], wf_err *err)
{
    wf_named_list list = {0};
    wf_status rc = WF_OK;

    for (size_t i = 0; rc == WF_OK && i < p->n_outputs; i++) {
        const wf_prediction_output *o = &p->outputs[i];
        int64_t dims[WF_MAX_RANK];
        wf_tensor *t = NULL;

        memcpy(dims, o->dims, sizeof dims);
        if (!p->single)
            dims[0] = (int64_t)n;
        rc = wf_tensor_over(o->dtype, o->rank, dims, (void *)outputs[i], &t, err);
        if (rc == WF_OK)
            rc = wf_named_add(&list, o->label, &t, false, err);
        wf_tensor_free(&t);
    }
    if (rc == WF_OK)
        rc = wf_part_add(p, &p->writer, &list, err);
    wf_named_close(&list);
    return rc;
}

wf_status wf_prediction_end_split(wf_prediction *p, bool whole, wf_err *err)
{
    wf_status rc = WF_OK;

    if (!p->open)
        return WF_OK;
    if (whole)
        rc = wf_part_finish(p, p->open - 1, &p->writer, err);
    wf_part_close(p, p->open - 1, &p->writer);
    p->open = 0;
    return rc;
}
