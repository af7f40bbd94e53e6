/* SPDX-License-Identifier: Apache-2.0 */
/* common/session/input_files.c */
#include "common/session/input_files.h"
#include "common/data/formats.h"
#include "common/data/listing.h"
#include "common/session/job_data_conf.h"

#include <inttypes.h>
#include <string.h>

static void begin(wf_input_files *out, const char *name, const char *const paths[], size_t n,
                  wf_dtype want)
{
    *out = (wf_input_files){0};
    out->field = (wf_field_spec){.name = name,
                                 .path = paths[0],
                                 .more = paths + 1,
                                 .n_more = n - 1,
                                 .want = want,
                                 .steps = out->steps};
    out->set.fields = &out->field;
    out->set.n_fields = 1;
}

static void put_files(wf_input_files *out, const char *format, const char *const paths[], size_t n)
{
    out->set.format = format;
    out->set.files = paths;
    out->set.n_files = n;
}

/* ---- of a job ---- */

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
static wf_status as_table(const wf_job_conf *c, const char *const paths[], size_t n, wf_arena *a,
                          wf_input_files *out, wf_err *err)
{
    wf_column_spec *schema = wf_arena_array(a, c->n_schema, sizeof *schema);
    wf_field_spec *field = &out->field;
    wf_dataset_spec *set = &out->set;

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
    put_files(out, c->format, paths, n);
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

/* The format of arrays that the file's name says, or NULL. */
static const char *array_format(const char *path)
{
    static const char *const by_name[][2] = {
        {".npy", "npy"}, {".npz", "npz"}, {".tfrecord", "tfrecord"}, {"-ubyte", "idx"}};

    for (size_t i = 0; i < WF_COUNT(by_name); i++)
        if (strstr(path, by_name[i][0]))
            return by_name[i][1];
    return NULL;
}

wf_status wf_input_of_job(const wf_job_conf *job, const wf_learnt_list *learnt, const char *field,
                          const char *const paths[], size_t n, wf_dtype want, wf_arena *a,
                          wf_input_files *out, wf_err *err)
{
    wf_format_kind kind = WF_FORMAT_MADE;
    const char *arrays = array_format(paths[0]);

    WF_TRY(wf_format_kind_of(job->format, &kind, err));
    begin(out, field, paths, n, want);
    out->set.memory = job->memory;
    if (kind == WF_FORMAT_TEXT && !arrays)
        WF_TRY(as_table(job, paths, n, a, out, err));
    else
        out->set.format = arrays ? arrays : kind == WF_FORMAT_ARRAYS ? job->format : "npy";
    out->field.n_steps = wf_job_data_steps(job, field, out->steps);
    if (learnt)
        WF_TRY(wf_learnt_give(learnt->rows, learnt->n, field, out->steps, out->field.n_steps, err));
    if (wf_job_data_reference(job, &out->field, &out->trained_field, &out->trained))
        out->set.reference = &out->trained;
    return WF_OK;
}

/* ---- of a model alone ---- */

/* The names between the commas of "a,b". */
static wf_status split_names(const char *text, wf_arena *a, const char *const **out, size_t *n,
                             wf_err *err)
{
    char *copy = wf_arena_strdup(a, text), *name;
    const char **names;
    size_t most = 1;

    for (const char *c = text; *c; c++)
        most += *c == ',';
    names = wf_arena_array(a, most, sizeof *names);
    if (!copy || !names)
        return wf_fail_nomem(err, strlen(text));
    for (*n = 0; (name = strsep(&copy, ","));)
        names[(*n)++] = name;
    *out = names;
    return WF_OK;
}

static wf_status csv_columns(wf_input_files *out, const wf_csv_head *head, const char *named,
                             const char *file, uint64_t width, wf_arena *a, wf_err *err)
{
    wf_column_spec *schema;

    if (named) {
        WF_TRY(split_names(named, a, &out->field.columns, &out->field.n_columns, err));
    } else {
        out->field.columns = head->names;
        out->field.n_columns = head->n;
    }
    out->field.is_row = out->field.n_columns > 1;
    if (width && out->field.n_columns != width)
        return wf_fail(err, WF_USAGE, "name the columns, in order: FILE.csv#AGE,INCOME",
                       "%s gives %zu columns, and input \"%.64s\" takes %" PRIu64, file,
                       out->field.n_columns, out->field.name, width);
    if (head->header)
        return WF_OK;
    schema = wf_arena_array(a, head->n, sizeof *schema);
    if (!schema)
        return wf_fail_nomem(err, head->n * sizeof *schema);
    for (size_t i = 0; i < head->n; i++)
        schema[i].name = head->names[i];
    out->set.schema = schema;
    out->set.n_schema = head->n;
    return WF_OK;
}

/* csv files: a path may end with "#NAMES", which is of all of them. */
static wf_status as_csv(wf_input_files *out, const char *const paths[], size_t n, uint64_t width,
                        wf_arena *a, wf_err *err)
{
    const char **files = wf_arena_array(a, n, sizeof *files), *named = NULL;
    wf_csv_head head = {0};

    if (!files)
        return wf_fail_nomem(err, n * sizeof *files);
    for (size_t i = 0; i < n; i++) {
        const char *mark = strrchr(paths[i], '#');

        files[i] = mark ? wf_arena_printf(a, "%.*s", (int)(mark - paths[i]), paths[i]) : paths[i];
        named = mark ? mark + 1 : named;
        if (!files[i])
            return wf_fail_nomem(err, strlen(paths[i]));
    }
    WF_TRY(wf_csv_read_head(files[0], a, &head, err));
    put_files(out, "csv", files, n);
    out->set.header = head.header;
    out->set.delimiter = head.delimiter;
    return csv_columns(out, &head, named, files[0], width, a, err);
}

static wf_status as_libsvm(wf_input_files *out, const char *const paths[], size_t n, uint64_t width)
{
    static const char *const columns[] = {"features"};

    put_files(out, "libsvm", paths, n);
    out->field.columns = columns;
    out->field.n_columns = 1;
    out->set.features = width;
    return WF_OK;
}

wf_status wf_input_of_model(const char *input, const char *const paths[], size_t n, wf_dtype want,
                            uint64_t width, wf_arena *a, wf_input_files *out, wf_err *err)
{
    const char *format = wf_format_guess(paths[0]);

    if (strcmp(format, "csv") == 0 || strcmp(format, "libsvm") == 0) {
        begin(out, input, paths, n, want);
        return format[0] == 'c' ? as_csv(out, paths, n, width, a, err)
                                : as_libsvm(out, paths, n, width);
    }
    if (strcmp(format, "text") == 0)
        return wf_fail(err, WF_UNSUPPORTED, "give the job that trained it, which has its words",
                       "%s is text, and the model of input \"%.64s\" takes numbers", paths[0],
                       input);
    begin(out, input, paths, n, WF_NONE);
    out->set.format = format;
    return WF_OK;
}
