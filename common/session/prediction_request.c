/* SPDX-License-Identifier: Apache-2.0 */
/* common/session/prediction_request.c - a request as JSON: for other processes, and to be compared
 * with what is asked for later. */
#include "common/base/file.h"
#include "common/ckpt/json.h"
#include "common/session/prediction_near.h"
#include "common/session/prediction_state.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <xxhash.h>

/* The first key: what tells a request from a job file, which is YAML of other keys. */
static const char BEGIN[] = "{\"weft\": \"prediction\",";

/* ---- written ---- */

/* Requests are the same however their paths are spelled. */
static json_t *path_of(const char *path, bool compared)
{
    char shown[PATH_MAX], here[PATH_MAX];

    if (!compared || !path)
        return json_string(path);
    snprintf(here, sizeof here, "%s%s", strchr(path, '/') ? "" : "./", path);
    wf_path_shown(here, shown);
    return json_string(shown);
}

/* A file, with what changes when it does. */
static json_t *file_of(const char *path)
{
    struct stat st;

    if (stat(path, &st) != 0)
        st = (struct stat){0};
    return json_pack("{s:o, s:I, s:I}", "path", path_of(path, true), "bytes",
                     (json_int_t)st.st_size, "changed_ns",
                     (json_int_t)st.st_mtim.tv_sec * 1000000000 + (json_int_t)st.st_mtim.tv_nsec);
}

static json_t *files_of(const wf_prediction *p)
{
    json_t *out = json_array();

    if (p->ask.model)
        json_array_append_new(out, file_of(p->ask.model));
    for (size_t i = 0; i < p->ask.n_inputs; i++) {
        const wf_sequence *s = p->feeds[i].sequence;
        const char *path;

        for (size_t k = 0; s && (path = wf_sequence_file(s, k)); k++)
            json_array_append_new(out, file_of(path));
        for (size_t k = 0; !s && k < p->ask.inputs[i].n; k++)
            json_array_append_new(out, file_of(p->ask.inputs[i].paths[k]));
    }
    return out;
}

static json_t *inputs_of(const wf_prediction_ask *a, bool compared)
{
    json_t *out = json_array();

    for (size_t i = 0; i < a->n_inputs; i++) {
        json_t *paths = json_array();

        for (size_t k = 0; k < a->inputs[i].n; k++)
            json_array_append_new(paths, path_of(a->inputs[i].paths[k], compared));
        json_array_append_new(out,
                              json_pack("{s:s, s:o}", "name", a->inputs[i].name, "paths", paths));
    }
    return out;
}

/* compared: with another, and not for other processes. */
static json_t *request_of(const wf_prediction_ask *a, bool compared)
{
    json_t *o = json_object();

    json_object_set_new(o, "weft", json_string("prediction"));
    if (a->model) {
        json_object_set_new(o, "model", path_of(a->model, compared));
    } else {
        json_object_set_new(o, "job", json_string(a->job));
        json_object_set_new(o, "job_path", path_of(a->job_path, compared));
        json_object_set_new(o, "run", json_string(a->run));
        json_object_set_new(o, "checkpoint_dir", path_of(a->checkpoint_dir, compared));
        json_object_set_new(o, "step", json_integer(a->step));
    }
    json_object_set_new(o, "inputs", inputs_of(a, compared));
    json_object_set_new(o, "out", path_of(a->out, compared));
    json_object_set_new(o, "batch", json_integer((json_int_t)a->batch));
    json_object_set_new(o, "split_records", json_integer((json_int_t)a->split_records));
    json_object_set_new(o, "records", json_integer((json_int_t)a->records));
    return o;
}

/* Takes o. */
static wf_status write_object(json_t *o, wf_bytes *out, wf_err *err)
{
    char *text = json_dumps(o, JSON_PRESERVE_ORDER);

    json_decref(o);
    if (wf_json_ran_out()) {
        free(text);
        return wf_fail_nomem(err, 0);
    }
    if (!text)
        return wf_fail(err, WF_INVALID, "give paths and names in UTF-8",
                       "the request for a prediction cannot be written as text");
    wf_bytes_puts(out, text);
    free(text);
    return wf_bytes_check(out, err);
}

wf_status wf_prediction_write(const wf_prediction *p, wf_bytes *out, wf_err *err)
{
    char tag[32];
    json_t *o, *near;

    wf_json_begin();
    o = request_of(&p->ask, false);
    near = wf_prediction_near(p);
    if (near)
        json_object_set_new(o, "near", near);
    snprintf(tag, sizeof tag, "%016" PRIx64, p->ask.tag);
    json_object_set_new(o, "tag", json_string(tag));
    return write_object(o, out, err);
}

wf_status wf_prediction_describe(const wf_prediction *p, wf_bytes *out, wf_err *err)
{
    json_t *o;

    wf_json_begin();
    o = request_of(&p->ask, true);
    json_object_set_new(o, "files", files_of(p));
    return write_object(o, out, err);
}

wf_status wf_prediction_make_tag(wf_prediction *p, wf_err *err)
{
    wf_bytes text = {0};
    wf_status rc;

    if (p->ask.tag)
        return WF_OK;
    rc = wf_prediction_describe(p, &text, err);
    if (rc == WF_OK)
        p->ask.tag = XXH3_64bits(text.data, text.size) | 1;
    wf_bytes_close(&text);
    return rc;
}

uint64_t wf_prediction_digest(const wf_prediction *p)
{
    uint64_t digest = XXH3_64bits_withSeed(&p->records, sizeof p->records, p->ask.tag);

    for (size_t i = 0; i < p->ask.n_inputs; i++) {
        const wf_sequence *s = p->feeds[i].sequence;
        const char *path;

        for (size_t k = 0; s && (path = wf_sequence_file(s, k)); k++) {
            struct stat st;
            uint64_t bytes = stat(path, &st) == 0 ? (uint64_t)st.st_size : 0;

            digest = XXH3_64bits_withSeed(path, strlen(path), digest);
            digest = XXH3_64bits_withSeed(&bytes, sizeof bytes, digest);
        }
    }
    return digest | 1;
}

/* ---- read ---- */

bool wf_prediction_is(const char *text)
{
    return strncmp(text, BEGIN, strlen(BEGIN)) == 0;
}

static wf_status wrong(const char *key, wf_err *err)
{
    return wf_fail(err, WF_INVALID, "let all programs be of one release of weft",
                   "a request for a prediction without a right \"%s\"", key);
}

static wf_status take_text(const json_t *o, const char *key, wf_arena *a, const char **out,
                           wf_err *err)
{
    const json_t *value = json_object_get(o, key);

    if (!json_is_string(value) || json_string_length(value) == 0 ||
        strlen(json_string_value(value)) != json_string_length(value))
        return wrong(key, err);
    *out = wf_arena_strdup(a, json_string_value(value));
    return *out ? WF_OK : wf_fail_nomem(err, json_string_length(value));
}

static wf_status take_number(const json_t *o, const char *key, int64_t least, int64_t *out,
                             wf_err *err)
{
    const json_t *value = json_object_get(o, key);

    if (!json_is_integer(value) || json_integer_value(value) < least ||
        json_integer_value(value) > INT64_C(1) << 48)
        return wrong(key, err);
    *out = json_integer_value(value);
    return WF_OK;
}

static wf_status take_paths(const json_t *list, wf_arena *a, struct wf_prediction_input *in,
                            wf_err *err)
{
    size_t n = json_array_size(list);
    const char **paths = wf_arena_array(a, n + 1, sizeof *paths);

    if (n == 0 || n > WF_PREDICTION_FILES)
        return wrong("paths", err);
    if (!paths)
        return wf_fail_nomem(err, n * sizeof *paths);
    for (size_t i = 0; i < n; i++) {
        const json_t *path = json_array_get(list, i);

        if (!json_is_string(path) || json_string_value(path)[0] != '/')
            return wrong("paths", err);
        paths[i] = wf_arena_strdup(a, json_string_value(path));
        if (!paths[i])
            return wf_fail_nomem(err, json_string_length(path));
    }
    in->paths = paths;
    in->n = n;
    return WF_OK;
}

static wf_status take_inputs(const json_t *list, wf_arena *a, wf_prediction_ask *out, wf_err *err)
{
    size_t n = json_array_size(list);

    if (n > WF_PREDICTION_INPUTS)
        return wrong("inputs", err);
    for (size_t i = 0; i < n; i++) {
        const json_t *row = json_array_get(list, i);
        struct wf_prediction_input *in = &out->inputs[i];

        WF_TRY(take_text(row, "name", a, &in->name, err));
        WF_TRY(take_paths(json_object_get(row, "paths"), a, in, err));
        for (size_t k = 0; k < i; k++)
            if (strcmp(out->inputs[k].name, in->name) == 0)
                return wrong("inputs", err);
        out->n_inputs++;
    }
    return WF_OK;
}

static wf_status take(const json_t *o, wf_arena *a, wf_prediction_ask *out, wf_err *err)
{
    int64_t batch = 0, split = 0, records = 0;
    const char *tag = "";

    if (json_object_get(o, "model")) {
        WF_TRY(take_text(o, "model", a, &out->model, err));
    } else {
        WF_TRY(take_text(o, "job", a, &out->job, err));
        WF_TRY(take_text(o, "job_path", a, &out->job_path, err));
        WF_TRY(take_text(o, "run", a, &out->run, err));
        WF_TRY(take_text(o, "checkpoint_dir", a, &out->checkpoint_dir, err));
        WF_TRY(take_number(o, "step", 0, &out->step, err));
        if (!wf_run_name_ok(out->run))
            return wrong("run", err);
    }
    WF_TRY(take_inputs(json_object_get(o, "inputs"), a, out, err));
    WF_TRY(take_text(o, "out", a, &out->out, err));
    WF_TRY(take_number(o, "batch", 1, &batch, err));
    WF_TRY(take_number(o, "split_records", 1, &split, err));
    WF_TRY(take_number(o, "records", 1, &records, err));
    WF_TRY(take_text(o, "tag", a, &tag, err));
    WF_TRY(wf_prediction_take_near(json_object_get(o, "near"), a, out, err));
    if (strlen(tag) != 16 || sscanf(tag, "%16" SCNx64, &out->tag) != 1 || out->tag == 0)
        return wrong("tag", err);
    out->batch = (uint64_t)batch;
    out->split_records = (uint64_t)split;
    out->records = (uint64_t)records;
    return out->out[0] == '/' ? WF_OK : wrong("out", err);
}

wf_status wf_prediction_read(const char *text, size_t size, wf_arena *a, wf_prediction_ask *out,
                             wf_err *err)
{
    json_t *o = NULL;
    wf_status rc;

    *out = (wf_prediction_ask){0};
    if (size > WF_PREDICTION_TEXT)
        return wf_fail(err, WF_INVALID, NULL, "a request of %zu bytes; %d may be", size,
                       WF_PREDICTION_TEXT);
    rc = wf_json_read(text, size, "the request for a prediction", 0, &o, err);
    if (rc == WF_OK)
        rc = take(o, a, out, err);
    json_decref(o);
    return rc;
}
