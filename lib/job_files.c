/* SPDX-License-Identifier: Apache-2.0 */
/* lib/job_files.c - a job's model on files, and on memory, that its job file does not name. */
#include "common/base/nearest.h"
#include "common/data/data.h"
#include "common/data/formats.h"
#include "common/session/job_data_conf.h"
#include "lib/lib.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);

    return n >= m && strcmp(text + n - m, end) == 0;
}

/* ---- records ---- */

static wf_status gather_all(const wf_dataset *d, wf_tensor **out, wf_err *err)
{
    const wf_field_info *f = wf_dataset_field(d, 0);
    uint64_t n = wf_dataset_records(d);
    int64_t dims[WF_MAX_RANK];
    uint8_t *to;

    if (f->rank + 1 > WF_MAX_RANK)
        return wf_fail(err, WF_SHAPE, NULL, "%s has %u axes, %d may be", f->path, f->rank + 1,
                       WF_MAX_RANK);
    dims[0] = (int64_t)n;
    memcpy(dims + 1, f->dims, f->rank * sizeof dims[0]);
    WF_TRY(wf_tensor_new(f->dtype, f->rank + 1, dims, out, err));
    to = (*out)->data;
    for (uint64_t at = 0; at < n; at++)
        WF_TRY(wf_dataset_gather(d, 0, &at, 1, to + at * f->record_bytes, err));
    return WF_OK;
}

/* The numbers of a row of libsvm: those of the model's input, where the job does not say it. */
static uint64_t features_of(const wf_job_conf *c, const char *field)
{
    uint64_t n = c->features;

    for (size_t i = 0; n == 0 && i < c->n_inputs; i++) {
        if (strcmp(c->inputs[i].name, field) != 0)
            continue;
        n = 1;
        for (uint32_t k = 0; k < c->inputs[i].rank; k++)
            if (__builtin_mul_overflow(n, (uint64_t)c->inputs[i].dims[k], &n))
                return 0;
    }
    return n;
}

/* A table with the field's columns. Those of a schema that the file may lack are left out, unless
 * it names all columns. */
static wf_status as_table(const wf_job_conf *c, const char *const *path, wf_field_spec *field,
                          wf_dataset_spec *set, wf_err *err)
{
    wf_column_spec *schema = wf_arena_array(c->arena, c->n_schema, sizeof *schema);

    if (!schema)
        return wf_fail_nomem(err, c->n_schema * sizeof *schema);
    for (size_t i = 0; i < c->n_columns; i++)
        if (strcmp(c->columns[i].name, field->name) == 0) {
            field->columns = c->columns[i].columns;
            field->n_columns = c->columns[i].n_columns;
            field->is_row = c->columns[i].is_row;
        }
    wf_job_data_mark_bag(c, 0, field);
    field->bag_ids = NULL; /* which this file may lack */
    for (size_t i = 0; i < c->n_schema; i++) {
        bool named = !c->header;

        for (size_t k = 0; k < field->n_columns; k++)
            named |= strcmp(field->columns[k], c->schema[i].name) == 0;
        if (named)
            schema[set->n_schema++] = c->schema[i];
    }
    set->format = c->format;
    set->files = path;
    set->n_files = 1;
    set->header = c->header;
    set->delimiter = c->delimiter;
    set->skips_bad_lines = c->skips_bad_lines;
    set->features = field->is_bag ? c->features : features_of(c, field->name);
    set->zero_based = c->zero_based;
    set->separator = c->separator;
    set->cuts_bags = c->cuts_bags;
    set->labelled = c->labelled;
    set->sequence_length = c->sequence_length;
    set->sequence_stride = c->sequence_stride;
    set->schema = schema;
    return WF_OK;
}

static wf_status records(const weft_job *j, const weft_list *weights, const char *field,
                         const char *path, wf_dtype dtype, wf_tensor **out, wf_err *err)
{
    wf_map_step steps[WF_DATA_MAX_STEPS + 1];
    wf_field_spec spec = {.name = field, .path = path, .want = dtype, .steps = steps};
    wf_dataset_spec set = {.format = "npy",
                           .fields = &spec,
                           .n_fields = 1,
                           .memory = j->conf->memory},
                    trained;
    wf_field_spec trained_field;
    wf_format_kind kind = WF_FORMAT_MADE;
    wf_dataset *d = NULL;
    wf_status rc;

    WF_TRY(wf_format_kind_of(j->conf->format, &kind, err));
    if (!ends_with(path, ".npy") && kind == WF_FORMAT_ARRAYS)
        set.format = j->conf->format;
    else if (!ends_with(path, ".npy") && kind == WF_FORMAT_TEXT)
        WF_TRY(as_table(j->conf, &path, &spec, &set, err));
    spec.n_steps = wf_job_data_steps(j->conf, field, steps);
    if (weights)
        WF_TRY(wf_learnt_give(weights->learnt.rows, weights->learnt.n, field, steps, spec.n_steps,
                              err));
    if (wf_job_data_reference(j->conf, &spec, &trained_field, &trained))
        set.reference = &trained;
    rc = wf_dataset_open(&set, &d, err);
    if (rc == WF_OK)
        rc = gather_all(d, out, err);
    wf_dataset_free(&d);
    return rc;
}

weft_code weft_job_records(const weft_job *j, const weft_list *weights, const char *field,
                           const char *path, weft_dtype dtype, weft_tensor **out, weft_error *error)
{
    wf_tensor *t = NULL;
    wf_err err = {0};
    wf_status rc;

    WF_LIB_NEED(out);
    *out = NULL;
    WF_LIB_NEED(j);
    WF_LIB_NEED(field);
    WF_LIB_NEED(path);
    rc = records(j, weights, field, path, (wf_dtype)dtype, &t, &err);
    if (rc == WF_OK)
        rc = wf_lib_give(&t, out, &err);
    wf_tensor_free(&t);
    return wf_lib_end(rc, &err, error);
}

/* ---- memory ---- */

weft_code weft_job_feed(weft_job *j, const char *name, const weft_tensor *t, weft_error *error)
{
    wf_tensor *taken = NULL;
    wf_err err = {0};
    wf_status rc;

    WF_LIB_NEED(j);
    WF_LIB_NEED(name);
    rc = wf_lib_take(t, name, &taken, &err);
    if (rc == WF_OK)
        rc = wf_memory_put(&j->memory, name, &taken, &err);
    wf_tensor_free(&taken);
    return wf_lib_end(rc, &err, error);
}

/* ---- evaluation ---- */

static wf_status text_files(wf_job_conf *c, size_t n, const char *const paths[], wf_err *err)
{
    const wf_conf_records *like = c->eval.n ? &c->eval : &c->train;
    const char **files = wf_arena_array(c->arena, n, sizeof *files);

    if (!files)
        return wf_fail_nomem(err, n * sizeof *files);
    for (size_t i = 0; i < n; i++) {
        files[i] = wf_arena_strdup(c->arena, paths[i]);
        if (!files[i])
            return wf_fail_nomem(err, strlen(paths[i]));
    }
    c->eval = (wf_conf_records){
        .fields = like->fields, .n = like->n, .files = files, .n_files = n, .line = like->line};
    return WF_OK;
}

static wf_status find_field(const wf_conf_field fields[], size_t n, const char *name, size_t *at,
                            wf_err *err)
{
    const char *names[WF_DATA_MAX_FIELDS];
    char hint[WF_NEAREST_HINT];
    size_t shown = 0;

    for (*at = 0; *at < n; ++*at) {
        if (strcmp(fields[*at].name, name) == 0)
            return WF_OK;
        if (shown < WF_COUNT(names))
            names[shown++] = fields[*at].name;
    }
    return wf_fail(err, WF_USAGE, wf_nearest_hint(name, names, shown, NULL, hint),
                   "the job's data has no field \"%.64s\"", name);
}

/* Fields that are not named keep their file of data.eval. */
static wf_status field_files(wf_job_conf *c, size_t n, const char *const names[],
                             const char *const paths[], wf_err *err)
{
    const wf_conf_records *like = c->eval.n ? &c->eval : &c->train;
    wf_conf_field *fields = wf_arena_array(c->arena, like->n + 1, sizeof *fields);
    bool given[WF_DATA_MAX_FIELDS] = {0};

    if (!fields)
        return wf_fail_nomem(err, like->n * sizeof *fields);
    for (size_t i = 0; i < like->n; i++)
        fields[i] = like->fields[i];
    for (size_t i = 0; i < n; i++) {
        size_t at;

        WF_TRY(find_field(fields, like->n, names[i], &at, err));
        fields[at] = (wf_conf_field){.name = fields[at].name,
                                     .path = wf_arena_strdup(c->arena, paths[i]),
                                     .line = fields[at].line};
        if (!fields[at].path)
            return wf_fail_nomem(err, strlen(paths[i]));
        if (at < WF_COUNT(given))
            given[at] = true;
    }
    for (size_t i = 0; i < like->n && !c->eval.n; i++)
        if (i >= WF_COUNT(given) || !given[i])
            return wf_fail(err, WF_USAGE, "name a file for it too",
                           "the job has no eval data, and \"%.64s\" is given no file",
                           fields[i].name);
    c->eval = (wf_conf_records){.fields = fields, .n = like->n, .line = like->line};
    return WF_OK;
}

static wf_status eval_files(weft_job *j, size_t n, const char *const names[],
                            const char *const paths[], wf_err *err)
{
    wf_format_kind kind;

    WF_TRY(wf_format_kind_of(j->conf->format, &kind, err));
    if (kind == WF_FORMAT_MADE)
        return wf_fail(err, WF_USAGE, "name files in the job file",
                       "the job's data is %s, and reads no files", j->conf->format);
    for (size_t i = 0; i < n; i++)
        if ((kind == WF_FORMAT_TEXT) != !names[i])
            return wf_fail(err, WF_USAGE, names[i] ? "give the file alone" : "write FIELD=FILE",
                           "\"%.64s\": %s files hold %s", paths[i], j->conf->format,
                           names[i] ? "all fields" : "one field each");
    return kind == WF_FORMAT_TEXT ? text_files(j->conf, n, paths, err)
                                  : field_files(j->conf, n, names, paths, err);
}

weft_code weft_job_eval_files(weft_job *j, size_t n, const char *const names[],
                              const char *const paths[], weft_error *error)
{
    wf_err err = {0};

    WF_LIB_NEED(j);
    WF_LIB_NEED(names);
    WF_LIB_NEED(paths);
    return wf_lib_end(n ? eval_files(j, n, names, paths, &err) : WF_OK, &err, error);
}
