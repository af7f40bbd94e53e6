/* SPDX-License-Identifier: Apache-2.0 */
/* common/session/front.c */
#include "common/session/front.h"
#include "common/graph/emit.h"
#include "common/session/job_data_conf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An input, and the steps that come before it. */
typedef struct front {
    wf_graph *g;
    const char *input;
    wf_map_step steps[WF_DATA_MAX_STEPS + 1];
    size_t n, first; /* those from `first` on become operations */
    wf_dtype dtype;  /* of a record before them, with its shape */
    uint32_t rank;
    int64_t dims[WF_MAX_RANK];
} front;

static wf_dtype float_of(const wf_value *v)
{
    return v && v->dtype == WF_F64 ? WF_F64 : WF_F32;
}

/* ---- the steps ---- */

static wf_value *emit_cast(wf_emit *e, const wf_map_step *step, wf_value *v)
{
    return wf_emit_cast(e, v, wf_dtype_of(step->text));
}

static wf_value *emit_fill(wf_emit *e, const wf_map_step *step, wf_value *v)
{
    wf_value *x = wf_emit_cast(e, v, float_of(v)), *none = wf_emit_unary(e, "IsNaN", x);

    return wf_emit_where(e, none, wf_emit_scalar(e, float_of(v), step->number), x);
}

static wf_value *emit_log1p(wf_emit *e, const wf_map_step *step, wf_value *v)
{
    wf_value *x = wf_emit_cast(e, v, WF_F64);

    (void)step;
    return wf_emit_cast(e, wf_emit_log(e, wf_emit_add(e, x, wf_emit_scalar(e, WF_F64, 1))),
                        float_of(v));
}

static wf_value *emit_reshape(wf_emit *e, const wf_map_step *step, wf_value *v)
{
    int64_t dims[WF_MAX_RANK + 1] = {0}; /* 0: the batch stays */

    memcpy(dims + 1, step->ints, step->n_ints * sizeof dims[0]);
    return wf_emit_reshape(e, v, (uint32_t)step->n_ints + 1, dims);
}

static wf_value *emit_scale(wf_emit *e, const wf_map_step *step, wf_value *v)
{
    return wf_emit_scale(e, wf_emit_cast(e, v, float_of(v)), step->number);
}

/* The means or the deviations: one for all, or one for each column. */
static wf_value *numbers_of(wf_emit *e, const char *hint, const double numbers[], size_t n)
{
    wf_tensor *t = NULL;

    if (e->rc != WF_OK)
        return NULL;
    e->rc = wf_tensor_new(WF_F64, n > 1, (const int64_t[]){(int64_t)n}, &t, e->err);
    if (e->rc != WF_OK)
        return NULL;
    memcpy(t->data, numbers, n * sizeof numbers[0]);
    return wf_emit_constant(e, hint, &t);
}

static wf_value *emit_standardise(wf_emit *e, const wf_map_step *step, wf_value *v)
{
    wf_value *x = wf_emit_cast(e, v, WF_F64);
    size_t n = step->n_numbers / 2;

    x = wf_emit_sub(e, x, numbers_of(e, "mean", step->numbers, n));
    x = wf_emit_div(e, x, numbers_of(e, "deviation", step->numbers + n, n));
    return wf_emit_cast(e, x, float_of(v));
}

static const struct row {
    const char *type;
    wf_value *(*emit)(wf_emit *e, const wf_map_step *step, wf_value *v);
} rows[] = {
    {"cast", emit_cast},       {"fill", emit_fill},   {"log1p", emit_log1p},
    {"reshape", emit_reshape}, {"scale", emit_scale}, {"standardise", emit_standardise},
};

static const struct row *find(const char *type)
{
    for (size_t i = 0; i < WF_COUNT(rows); i++)
        if (strcmp(rows[i].type, type) == 0)
            return &rows[i];
    return NULL;
}

/* ---- an input ---- */

/* Finds where the operations begin: behind the last step that is none. */
static wf_status find_first(front *f, wf_err *err)
{
    bool standardised = false;

    for (size_t i = 0; i < f->n; i++) {
        const struct row *row = find(f->steps[i].type);

        if (!row && standardised)
            return wf_fail(err, WF_UNSUPPORTED, "export the model alone: --model-only",
                           "data.map of \"%.64s\" has %s behind standardise, which is no operation "
                           "of ONNX",
                           f->input, f->steps[i].type);
        if (!row)
            f->first = i + 1;
        standardised |= row && row->emit == emit_standardise;
    }
    return wf_map_shape(f->steps, f->first, &f->dtype, &f->rank, f->dims, err);
}

/* To the dtype and shape that the input had. */
static wf_value *as_it_was(wf_emit *e, wf_value *v, const wf_value *was)
{
    int64_t dims[WF_MAX_RANK];
    bool same = v && v->rank == was->rank;

    for (int32_t k = 1; same && k < v->rank; k++)
        same = v->axes[k].size == was->axes[k].size || was->axes[k].size < 0;
    for (int32_t k = 0; k < was->rank; k++)
        dims[k] = k ? was->axes[k].size : 0;
    if (!same)
        v = wf_emit_reshape(e, v, (uint32_t)was->rank, dims);
    return wf_emit_cast(e, v, was->dtype);
}

static wf_status emit_front(const front *f, wf_value *x, wf_err *err)
{
    wf_value was = *x, *moved = NULL, *v = x;
    int64_t dims[WF_MAX_RANK] = {-1};
    char hint[WF_GRAPH_LONGEST_NAME];
    wf_emit e = wf_emit_begin(f->g, hint, err);

    /* The readers of x wait at another value until what they read is made. */
    WF_TRY(wf_graph_add_value_like(f->g, x->name, &moved, err));
    wf_graph_replace_uses(f->g, x, moved);
    memcpy(dims + 1, f->dims, f->rank * sizeof dims[0]);
    wf_value_set_type(x, f->dtype, f->rank + 1, dims);
    x->axes[0] = was.axes[0];
    for (size_t i = f->first; i < f->n; i++) {
        snprintf(hint, sizeof hint, "%.800s/%.64s", f->input, f->steps[i].type);
        v = find(f->steps[i].type)->emit(&e, &f->steps[i], v);
    }
    snprintf(hint, sizeof hint, "%.800s/mapped", f->input);
    v = as_it_was(&e, v, &was);
    WF_TRY(wf_emit_end(&e));
    wf_graph_replace_uses(f->g, moved, v);
    return WF_OK;
}

/* What was learnt of the field's records by reading them, for a checkpoint without it. */
static wf_status learn(const wf_job_conf *job, const front *f, wf_learnt_list *out, wf_err *err)
{
    wf_field_spec like = {.name = f->input, .steps = f->steps, .n_steps = f->n}, field;
    wf_learnt rows_of[WF_LEARNT_MOST];
    wf_dataset_spec spec;
    wf_dataset *d = NULL;
    wf_status rc;

    wf_job_data_reference(job, &like, &field, &spec);
    WF_TRY(wf_dataset_open(&spec, &d, err));
    rc = wf_learnt_keep(rows_of, wf_dataset_learnt(d, rows_of), out, err);
    wf_dataset_free(&d);
    return rc;
}

static const wf_learnt *row_of(const wf_learnt_list *learnt, const char *field)
{
    for (size_t i = 0; i < learnt->n; i++)
        if (strcmp(learnt->rows[i].field, field) == 0)
            return &learnt->rows[i];
    return NULL;
}

static wf_status add_front(front *f, const wf_job_conf *job, const wf_learnt_list *learnt,
                           wf_value *x, wf_err *err)
{
    wf_learnt_list found = {0};
    const wf_learnt *row = row_of(learnt, f->input);
    wf_status rc = WF_OK;

    if (!row) {
        rc = wf_err_wrap(err, learn(job, f, &found, err),
                         "nothing is kept of what \"%.64s\" is standardised by, and the training "
                         "data cannot be read",
                         f->input);
        row = rc == WF_OK ? row_of(&found, f->input) : NULL;
        learnt = &found;
    }
    if (rc == WF_OK)
        rc = wf_learnt_give(learnt->rows, learnt->n, f->input, f->steps, f->n, err);
    if (rc == WF_OK) {
        f->dtype = row->dtype;
        f->rank = row->rank;
        memcpy(f->dims, row->dims, sizeof f->dims);
        rc = find_first(f, err);
    }
    if (rc == WF_OK)
        rc = emit_front(f, x, err);
    wf_learnt_close(&found);
    return rc;
}

static bool standardises(const front *f)
{
    for (size_t i = 0; i < f->n; i++)
        if (strcmp(f->steps[i].type, "standardise") == 0)
            return true;
    return false;
}

static void list_name(char names[WF_FRONT_NAMES], const char *name)
{
    size_t n = strlen(names);

    snprintf(names + n, WF_FRONT_NAMES - n, "%s%s", n ? ", " : "", name);
}

/* The new nodes go before their readers, and the values that nobody reads any more go. */
static wf_status tidy(wf_graph *g, wf_err *err)
{
    bool *keep = malloc(g->n_nodes + 1);

    if (!keep)
        return wf_fail_nomem(err, g->n_nodes);
    memset(keep, true, g->n_nodes);
    wf_graph_keep_nodes(g, keep);
    free(keep);
    return wf_graph_sort(g, err);
}

wf_status wf_front_add(wf_graph *g, const wf_job_conf *job, const wf_learnt_list *learnt,
                       char names[WF_FRONT_NAMES], wf_err *err)
{
    names[0] = 0;
    for (size_t i = 0; i < g->n_inputs; i++) {
        front f = {.g = g, .input = g->inputs[i]->name};

        f.n = wf_job_data_steps(job, f.input, f.steps);
        if (!standardises(&f))
            continue;
        WF_TRY(add_front(&f, job, learnt, g->inputs[i], err));
        list_name(names, f.input);
    }
    return names[0] ? tidy(g, err) : WF_OK;
}

bool wf_front_is_there(const wf_graph *g, const char *input)
{
    char name[WF_GRAPH_LONGEST_NAME];

    /* Passes may fuse the nodes; what they subtract stays. */
    snprintf(name, sizeof name, "%.800s/standardise/mean", input);
    return wf_graph_value(g, name);
}
