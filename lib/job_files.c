/* SPDX-License-Identifier: Apache-2.0 */
/* lib/job_files.c - a job's model on files, and on memory, that its job file does not name. */
#include "common/base/nearest.h"
#include "common/data/data.h"
#include "common/data/formats.h"
#include "common/session/input_files.h"
#include "lib/lib.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static wf_status records(const weft_job *j, const weft_list *weights, const char *field,
                         const char *path, wf_dtype dtype, wf_tensor **out, wf_err *err)
{
    wf_input_files files;
    wf_dataset *d = NULL;
    wf_status rc;

    rc = wf_input_of_job(j->conf, weights ? &weights->learnt : NULL, field, &path, 1, dtype,
                         j->conf->arena, &files, err);
    if (rc == WF_OK)
        rc = wf_dataset_open(&files.set, &d, err);
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
