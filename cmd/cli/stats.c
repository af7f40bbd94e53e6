/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/stats.c */
#include "cmd/cli/stats.h"
#include "cmd/cli/json.h"
#include "cmd/cli/table.h"
#include "cmd/cli/term.h"
#include "common/base/size.h"
#include "common/base/text.h"
#include "common/conf/conf.h"
#include "common/data/data.h"
#include "common/data/formats.h"
#include "common/data/survey.h"
#include "common/session/job_data_conf.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { CELL = 48, NAME = 256 };

/* ---- what is read ---- */

static wf_status survey_spec(const wf_dataset_spec *spec, wf_survey *out, wf_err *err)
{
    wf_dataset *d = NULL;
    wf_status rc = wf_dataset_open(spec, &d, err);

    if (rc == WF_OK)
        rc = wf_dataset_survey(d, out, err);
    wf_dataset_free(&d);
    return rc;
}

/* Arrays: one, or all of an npz file or a folder of images, each a field by its name. */
static wf_status survey_arrays(const char *format, const char *path, wf_survey *out, wf_err *err)
{
    static const char *const of_images[] = {"class"};
    wf_arena *a = wf_arena_new(0);
    wf_field_spec fields[WF_DATA_MAX_FIELDS] = {{.name = "values", .path = path, .want = WF_F64}};
    const char *const *names = of_images;
    size_t n = 0, at = 0;
    wf_status rc = a ? WF_OK : wf_fail_nomem(err, 1);

    if (rc == WF_OK && !strchr(path, '#') && strcmp(format, "npz") == 0)
        rc = wf_npz_names(path, a, &names, &n, err);
    else if (!strchr(path, '#') && strcmp(format, "images") == 0)
        n = at = 1; /* behind the pixels */
    if (rc == WF_OK && at + n > WF_DATA_MAX_FIELDS)
        rc = wf_fail(err, WF_USAGE, "name one array, FILE.npz#NAME",
                     "%s has %zu arrays, %d are shown", path, n, WF_DATA_MAX_FIELDS);
    for (size_t i = 0; rc == WF_OK && i < n; i++) {
        wf_field_spec *f = &fields[at + i];

        *f = (wf_field_spec){
            .name = names[i], .path = wf_arena_printf(a, "%s#%s", path, names[i]), .want = WF_F64};
        if (!f->path)
            rc = wf_fail_nomem(err, strlen(path));
    }
    if (rc == WF_OK)
        rc = survey_spec(&(wf_dataset_spec){.format = format,
                                            .fields = fields,
                                            .n_fields = WF_MAX(at + n, (size_t)1)},
                         out, err);
    wf_arena_free(&a);
    return rc;
}

static wf_status survey_file(const char *format, const char *path, wf_survey *out, wf_err *err)
{
    wf_libsvm_facts facts;
    wf_text_facts text;

    if (strcmp(format, "csv") == 0)
        return wf_csv_survey(path, out, err);
    if (strcmp(format, "libsvm") == 0)
        return wf_libsvm_survey(path, out, &facts, err);
    if (strcmp(format, "text") == 0)
        return wf_text_survey(path, out, &text, err);
    return survey_arrays(format, path, out, err);
}

/* The training data of a job, or another file in its place, through data.map. */
static wf_status survey_job(const wf_job_conf *job, const char *file, wf_survey *out, wf_err *err)
{
    static wf_map_step steps[WF_DATA_MAX_FIELDS][WF_DATA_MAX_STEPS + 1];
    wf_field_spec fields[WF_DATA_MAX_FIELDS];
    wf_dataset_spec spec = {0}, trained;
    wf_format_kind kind;
    bool learns = false;

    WF_TRY(wf_format_kind_of(job->format, &kind, err));
    if (kind == WF_FORMAT_MADE || (file && kind != WF_FORMAT_TEXT))
        return wf_fail(err, WF_USAGE,
                       file ? "leave the file out: the job names one for each field"
                            : "name a file, without --job",
                       "the job's data is %s", job->format);
    if (job->train.n > WF_DATA_MAX_FIELDS)
        return wf_fail(err, WF_USAGE, NULL, "%s: %zu data fields, %d are allowed", job->path,
                       job->train.n, WF_DATA_MAX_FIELDS);
    for (size_t i = 0; i < job->train.n; i++) {
        wf_field_spec like = {.name = job->train.fields[i].name, .want = WF_F64, .steps = steps[i]};

        like.n_steps = wf_job_data_steps(job, like.name, steps[i]);
        learns |= wf_job_data_reference(job, &like, &fields[i], &spec);
    }
    spec.fields = fields;
    spec.n_fields = job->train.n;
    spec.marks_gaps = true;
    trained = spec;
    if (file) {
        spec.files = &file;
        spec.n_files = 1;
        spec.held_out = 0;
        spec.reference = learns ? &trained : NULL;
    }
    return survey_spec(&spec, out, err);
}

/* ---- how it is shown ---- */

static const char *number(double x, char text[CELL])
{
    snprintf(text, CELL, "%.6g", x);
    return text;
}

/* The cells of a column: more than one of a record where it stands for a row of numbers. */
static uint64_t cells_of(const wf_survey *s, const wf_survey_column *c)
{
    return WF_MAX(s->records, c->numbers + c->empty);
}

static const char *kind_of(const wf_survey_column *c, uint64_t words)
{
    if (words)
        return c->numbers ? "mixed" : "words";
    if (c->numbers == 0)
        return "empty";
    return c->wholes == c->numbers ? "whole" : "number";
}

static wf_status print_table(const char *title, const char *format, const wf_survey *s, wf_err *err)
{
    wf_rows t = {0};

    wf_term_print(stdout, "%s  %s  %" PRIu64 " records\n", title, format, s->records);
    wf_rows_add(&t,
                (const char *[]){"COLUMN", "KIND", "LEAST", "MOST", "MEAN", "DEVIATION", "MISSING",
                                 "DISTINCT"},
                8);
    for (uint32_t i = 0; i < s->n_columns; i++) {
        const wf_survey_column *c = &s->columns[i];
        uint64_t cells = cells_of(s, c), words = cells - c->numbers - c->empty;
        char least[CELL], most[CELL], mean[CELL], deviation[CELL], missing[CELL], distinct[CELL];
        bool exact;
        uint64_t different = wf_distinct_count(&c->values, &exact);

        snprintf(missing, CELL, "%.4g%%", 100 * (double)c->empty / (double)cells);
        snprintf(distinct, CELL, "%s%" PRIu64, exact ? "" : "about ", different);
        wf_rows_add(
            &t,
            (const char *[]){
                c->name, kind_of(c, words), c->numbers ? number(c->least, least) : NULL,
                c->numbers ? number(c->most, most) : NULL,
                c->numbers ? number(c->mean, mean) : NULL,
                c->numbers ? number(sqrt(c->squares / (double)c->numbers), deviation) : NULL,
                missing, distinct},
            8);
    }
    return wf_rows_print(&t, stdout, err);
}

/* Text that may be no UTF-8. */
static json_t *text_of(const char *text)
{
    char copy[4 * NAME + 1];
    json_t *o = json_string(text);

    if (o)
        return o;
    wf_text_escape(text, false, copy, sizeof copy);
    return json_string(copy);
}

static json_t *column_json(const wf_survey *s, const wf_survey_column *c)
{
    uint64_t cells = cells_of(s, c), words = cells - c->numbers - c->empty;
    json_t *o = json_object();
    bool exact;

    json_object_set_new(o, "name", text_of(c->name));
    json_object_set_new(o, "kind", json_string(kind_of(c, words)));
    json_object_set_new(o, "numbers", json_integer((json_int_t)c->numbers));
    json_object_set_new(o, "words", json_integer((json_int_t)words));
    json_object_set_new(o, "missing", json_integer((json_int_t)c->empty));
    json_object_set_new(o, "missing_share", json_real((double)c->empty / (double)cells));
    if (c->numbers && isfinite(c->least) && isfinite(c->most)) {
        json_object_set_new(o, "least", json_real(c->least));
        json_object_set_new(o, "most", json_real(c->most));
        json_object_set_new(o, "mean", json_real(c->mean));
        json_object_set_new(o, "deviation", json_real(sqrt(c->squares / (double)c->numbers)));
    }
    json_object_set_new(o, "distinct",
                        json_integer((json_int_t)wf_distinct_count(&c->values, &exact)));
    json_object_set_new(o, "distinct_is_exact", json_boolean(exact));
    return o;
}

static wf_status print_json(const char *title, const char *format, const wf_survey *s, wf_err *err)
{
    json_t *o = json_object(), *list = json_array();

    for (uint32_t i = 0; i < s->n_columns; i++)
        json_array_append_new(list, column_json(s, &s->columns[i]));
    json_object_set_new(o, "source", text_of(title));
    json_object_set_new(o, "format", json_string(format));
    json_object_set_new(o, "records", json_integer((json_int_t)s->records));
    json_object_set_new(o, "columns", list);
    return wf_json_print(o, JSON_INDENT(2) | JSON_REAL_PRECISION(9) | JSON_ENSURE_ASCII, err);
}

wf_status wf_stats(const char *file, const char *job, bool json, wf_err *err)
{
    const char *format = file ? wf_format_guess(file) : NULL;
    wf_job_conf *conf = NULL;
    wf_survey s = {0};
    wf_status rc;

    if (job) {
        rc = wf_job_load(job, &conf, err);
        if (rc == WF_OK) {
            format = conf->format;
            rc = survey_job(conf, file, &s, err);
        }
    } else {
        rc = survey_file(format, file, &s, err);
    }
    if (rc == WF_OK)
        rc = (json ? print_json : print_table)(file ? file : job, format, &s, err);
    wf_survey_close(&s);
    wf_job_free(&conf);
    return rc;
}
