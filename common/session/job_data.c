/* SPDX-License-Identifier: Apache-2.0 */
/* common/session/job_data.c */
#include "common/session/job_data.h"
#include "common/data/listing.h"

#include <stdio.h>
#include <string.h>

/* Whether a record of the field is one of the input, but for axes of one number. */
static bool same_but_ones(const wf_value *input, const wf_field_info *f)
{
    uint32_t i = 0, k = 1, rank = input->rank < 1 ? 0 : (uint32_t)input->rank;

    if (rank == 0)
        return false;
    while (true) {
        while (i < f->rank && f->dims[i] == 1)
            i++;
        while (k < rank && input->axes[k].size == 1)
            k++;
        if (i == f->rank || k == rank)
            return i == f->rank && k == rank;
        if (input->axes[k++].size != f->dims[i++])
            return false;
    }
}

void wf_job_data_dims(const wf_value *input, const wf_field_info *f, uint64_t records,
                      uint32_t *rank, int64_t dims[])
{
    bool relaid = same_but_ones(input, f);

    *rank = relaid ? (uint32_t)input->rank : f->rank + 1;
    dims[0] = (int64_t)records;
    for (uint32_t i = 1; i < *rank; i++)
        dims[i] = relaid ? input->axes[i].size : f->dims[i - 1];
}

/* Records that do not fit: of labels the commonest mistake is the loss for the other way to write
 * classes, as numbers or one-hot. */
static wf_status unfit_labels(const wf_field_info *f, const wf_field_spec *spec,
                              const wf_value *input, wf_err *err)
{
    bool sparse = strncmp(spec->loss, "sparse_", 7) == 0;
    char have[128], want[160], hint[256] = "check the labels, and the units of the last layer";
    int64_t classes = input->rank > 1 ? input->axes[input->rank - 1].size : 0;

    wf_dims_str(f->rank, f->dims, have, sizeof have);
    if (sparse && (int32_t)f->rank == input->rank)
        return wf_fail(err, WF_SHAPE,
                       "use loss: categorical_crossentropy, or save the class numbers",
                       "the labels \"%s\" in %s are one-hot (%s%s), and %s takes class numbers",
                       f->name, f->path, wf_dtype_name(f->dtype), have, spec->loss);
    if (strncmp(spec->loss, "categorical_", 12) == 0 && (int32_t)f->rank + 2 == input->rank) {
        snprintf(hint, sizeof hint, "%swrite map: {%.64s: [{one_hot: %lld}]}",
                 strcmp(spec->loss, "categorical_crossentropy") == 0
                     ? "use loss: sparse_categorical_crossentropy, or "
                     : "",
                 f->name, (long long)classes);
        return wf_fail(
            err, WF_SHAPE, hint,
            "the labels \"%s\" in %s are class numbers, one a record, and %s takes %lld numbers "
            "a record, one for each class",
            f->name, f->path, spec->loss, (long long)classes);
    }
    return wf_fail(err, WF_SHAPE, hint,
                   "a record of the labels \"%s\" in %s is %s%s, and %s takes %s", f->name, f->path,
                   wf_dtype_name(f->dtype), have, spec->loss,
                   wf_value_str(input, want, sizeof want));
}

static wf_status check_record(const wf_dataset *d, const wf_value *input, const wf_field_spec *spec,
                              wf_err *err)
{
    const wf_field_info *f = wf_dataset_field(d, (uint32_t)wf_dataset_find(d, input->name));
    char have[128], want[160];
    bool fits = input->rank == (int32_t)f->rank + 1;

    if (same_but_ones(input, f))
        return WF_OK;
    for (uint32_t i = 0; fits && i < f->rank; i++)
        fits = input->axes[i + 1].size < 0 || input->axes[i + 1].size == f->dims[i];
    if (fits)
        return WF_OK;
    if (spec->loss)
        return unfit_labels(f, spec, input, err);
    return wf_fail(err, WF_SHAPE, "add a reshape to data.map, or change the model's input",
                   "a record of \"%s\" in %s is %s%s, the model's input is %s", f->name, f->path,
                   wf_dtype_name(f->dtype), wf_dims_str(f->rank, f->dims, have, sizeof have),
                   wf_value_str(input, want, sizeof want));
}

static wf_status check_inputs(const wf_job_data *from, const wf_graph *g, wf_dataset *d,
                              wf_err *err)
{
    for (size_t i = 0; i < g->n_inputs; i++) {
        int at = wf_dataset_find(d, g->inputs[i]->name);
        const wf_field_spec *f = at < 0 ? NULL : &from->fields[at];

        if (!f)
            continue; /* the places of a table: wf_job_data_of finds data for all feeds */
        WF_TRY(check_record(d, g->inputs[i], f, err));
        if (f->classes > 0 && !f->may_ignore) /* else the kernel looks at each */
            WF_TRY(wf_dataset_check_labels(d, (uint32_t)at, f->classes, err));
        if (f->is_share)
            WF_TRY(wf_dataset_check_shares(d, (uint32_t)at, err));
    }
    return WF_OK;
}

wf_status wf_job_data_give(wf_job_data *d, const wf_learnt_list *learnt, wf_err *err)
{
    for (size_t i = 0; i < d->spec.n_fields; i++)
        WF_TRY(wf_learnt_give(learnt->rows, learnt->n, d->fields[i].name, d->steps[i],
                              d->fields[i].n_steps, err));
    return WF_OK;
}

wf_status wf_job_data_patterns(const wf_job_data *d, wf_arena *a, const char *const **out,
                               size_t *n, wf_err *err)
{
    const char *path = d->spec.n_fields ? d->fields[0].path : NULL;
    const char **one;

    *out = d->spec.files;
    *n = d->spec.n_files;
    if (*n || !path)
        return WF_OK;
    one = wf_arena_array(a, 1, sizeof *one);
    if (one) /* all fields name the same files, and each an array of its own in them */
        one[0] = wf_arena_printf(a, "%.*s", (int)(wf_listed_member(path) - path), path);
    if (!one || !one[0])
        return wf_fail_nomem(err, strlen(path));
    *out = one;
    *n = 1;
    return WF_OK;
}

wf_status wf_job_data_take_files(wf_job_data *d, const char *const paths[], size_t n, wf_arena *a,
                                 wf_err *err)
{
    if (d->spec.n_files) {
        d->spec.files = paths;
        d->spec.n_files = n;
        return WF_OK;
    }
    for (size_t i = 0; n && i < d->spec.n_fields; i++) {
        wf_field_spec *f = &d->fields[i];
        const char *member = f->path ? wf_listed_member(f->path) : "";
        const char **own = wf_arena_array(a, n, sizeof *own);

        if (!own)
            return wf_fail_nomem(err, n * sizeof *own);
        for (size_t k = 0; k < n; k++) {
            own[k] = wf_arena_printf(a, "%s%s", paths[k], member);
            if (!own[k])
                return wf_fail_nomem(err, strlen(paths[k]));
        }
        f->path = own[0];
        f->more = own + 1;
        f->n_more = n - 1;
    }
    return WF_OK;
}

/* What the job file says does not fit what the data files hold. */
static wf_status in_file(const wf_job_data *d, wf_status rc, wf_err *err)
{
    return rc == WF_SHAPE || rc == WF_USAGE ? wf_err_wrap(err, rc, "%s:%d", d->path, d->line) : rc;
}

wf_status wf_job_data_check(const wf_job_data *d, const wf_graph *graph, wf_dataset *data,
                            wf_err *err)
{
    return in_file(d, check_inputs(d, graph, data, err), err);
}

wf_status wf_job_data_open(const wf_job_data *d, const wf_graph *graph, wf_dataset **out,
                           wf_err *err)
{
    wf_status rc = in_file(d, wf_dataset_open(&d->spec, out, err), err);

    if (rc == WF_OK)
        rc = wf_job_data_check(d, graph, *out, err);
    if (rc != WF_OK)
        wf_dataset_free(out);
    return rc;
}
