/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/history.c */
#include "runtime/history.h"
#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/compile/compile.h"
#include "common/log/log.h"
#include "runtime/graph_def.h"
#include "runtime/tensorboard.h"

#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* What is no number in JSON was none in the master. */
static double number_of(const json_t *value)
{
    return json_is_null(value) ? (double)NAN : json_number_value(value);
}

/* ---- history.csv ---- */

static void add_names(wf_bytes *b, const json_t *numbers, const char *prefix)
{
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)numbers, name, value)
    {
        wf_bytes_printf(b, ",%s", prefix);
        for (const char *c = name; *c; c++) /* a part of it may be of the model's file */
            wf_bytes_printf(b, "%c", strchr(",\"\r\n", *c) ? '_' : *c);
    }
}

static void add_numbers(wf_bytes *b, const json_t *numbers)
{
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)numbers, name, value)
        wf_bytes_printf(b, ",%.9g", number_of(value));
}

static void write_row(wf_background *b, const char *folder, const json_t *e)
{
    wf_bytes head = {0}, row = {0};
    const json_t *rate = json_object_get(e, "learning_rate");

    wf_bytes_puts(&head, "epoch,step,generation,elapsed_s,learning_rate");
    add_names(&head, json_object_get(e, "train"), "");
    add_names(&head, json_object_get(e, "val"), "val_");
    wf_bytes_puts(&head, "\n");
    wf_bytes_printf(&row, "%lld,%lld,%lld,%.3f,",
                    (long long)json_integer_value(json_object_get(e, "epoch")),
                    (long long)json_integer_value(json_object_get(e, "step")),
                    (long long)json_integer_value(json_object_get(e, "generation")),
                    json_number_value(json_object_get(e, "elapsed_s")));
    if (rate)
        wf_bytes_printf(&row, "%.9g", json_number_value(rate));
    add_numbers(&row, json_object_get(e, "train"));
    add_numbers(&row, json_object_get(e, "val"));
    wf_bytes_puts(&row, "\n");
    wf_background_append(b, folder, "history.csv", &head, &row);
    wf_bytes_close(&head);
    wf_bytes_close(&row);
}

/* ---- TensorBoard ---- */

/* A process or a generation begins files; a name is never used twice. TensorBoard reads a folder in
 * the order of names, in which a process number of more digits may come before one of fewer: the
 * time alone must put them in order, also within a second. */
static void begin_files(wf_history *h, const char *run, int64_t generation, int64_t wall_ns)
{
    char host[HOST_NAME_MAX + 1] = "";

    if (h->file[0] && strcmp(h->run, run) == 0 && h->generation == generation)
        return;
    if (gethostname(host, sizeof host) != 0 || !host[0])
        snprintf(host, sizeof host, "weft");
    host[sizeof host - 1] = 0;
    snprintf(h->run, sizeof h->run, "%s", run);
    h->generation = generation;
    snprintf(h->file, sizeof h->file, "events.out.tfevents.%lld.%09lld.%.64s.%d.%u",
             (long long)(wall_ns / WF_NS_PER_S), (long long)(wall_ns % WF_NS_PER_S), host,
             (int)getpid(), h->files++);
}

static void write_scalars(const wf_history *h, wf_background *b, const char *folder,
                          const char *part, const json_t *numbers, const json_t *rate, int64_t step,
                          int64_t wall_ns)
{
    char place[PATH_MAX + 16];
    double wall_s = (double)wall_ns / WF_NS_PER_S;
    wf_bytes head = {0}, rows = {0};
    const char *name;
    json_t *value;

    if (json_object_size(numbers) == 0)
        return;
    wf_tb_version(&head, wall_s);
    if (h->generation > 1)
        wf_tb_restart(&head, wall_s, step);
    json_object_foreach((json_t *)numbers, name, value)
        wf_tb_scalar(&rows, wall_s, step, name, (float)number_of(value));
    if (rate)
        wf_tb_scalar(&rows, wall_s, step, "learning_rate", (float)json_number_value(rate));
    snprintf(place, sizeof place, "%s/%s", folder, part);
    wf_background_append(b, place, h->file, &head, &rows);
    wf_bytes_close(&head);
    wf_bytes_close(&rows);
}

void wf_history_take(wf_history *h, wf_background *b, const char *folder, const char *run,
                     const char *json, int64_t wall_ns)
{
    json_t *e = json_loads(json, 0, NULL);
    const char *kind = json_string_value(json_object_get(e, "event"));
    int64_t step = json_integer_value(json_object_get(e, "step"));

    if (kind && strcmp(kind, "job.epoch") == 0) {
        begin_files(h, run, json_integer_value(json_object_get(e, "generation")), wall_ns);
        write_row(b, folder, e);
        write_scalars(h, b, folder, "train", json_object_get(e, "train"),
                      json_object_get(e, "learning_rate"), step, wall_ns);
        write_scalars(h, b, folder, "eval", json_object_get(e, "val"), NULL, step, wall_ns);
    }
    json_decref(e);
}

/* ---- the job ---- */

/* The model as it is exported; one whose only output is its loss is never, and is as its file. */
static wf_status compile_graph(const wf_job_conf *job, wf_graph **out, wf_err *err)
{
    wf_compile_spec spec;
    wf_compiled *c = NULL;
    wf_model model;
    wf_status rc;

    wf_compile_spec_of_job(job, WF_COMPILE_INFER, NULL, 0, &model, &spec);
    spec.weights = NULL; /* shapes alone are wanted */
    rc = wf_compile_export(&spec, 0, NULL, out, err);
    if (rc == WF_OK || !job->onnx)
        return rc;
    rc = wf_compile(
        &(wf_compile_spec){.onnx_path = job->onnx, .mode = WF_COMPILE_RUN, .is_portable = true}, &c,
        err);
    if (rc == WF_OK)
        *out = wf_compiled_take_graph(c);
    wf_compiled_free(&c);
    return rc;
}

static wf_status add_graph(const char *text, const char *path, double wall_s, wf_bytes *out,
                           wf_err *err)
{
    wf_job_conf *job = NULL;
    wf_graph *g = NULL;
    wf_bytes def = {0};
    wf_status rc;

    WF_TRY(wf_job_parse(text, strlen(text), path, &job, err));
    rc = compile_graph(job, &g, err);
    if (rc == WF_OK)
        rc = wf_graph_def_write(g, &def, err);
    if (rc == WF_OK)
        wf_tb_graph(out, wall_s, &def);
    wf_bytes_close(&def);
    wf_graph_free(&g);
    wf_job_free(&job);
    return rc;
}

void wf_history_describe(wf_background *b, const char *folder, const char *text, const char *path)
{
    /* Before all others in the order of names, in which TensorBoard reads a folder. */
    static const char NAME[] = "events.out.tfevents.0.job";
    char place[PATH_MAX + 16], file[PATH_MAX + 64];
    double wall_s = (double)wf_wall_ns() / WF_NS_PER_S;
    wf_bytes all = {0}, shown = {0};
    wf_err why;

    snprintf(place, sizeof place, "%s/train", folder);
    snprintf(file, sizeof file, "%s/%s", place, NAME);
    if (wf_file_exists(file))
        return;
    wf_bytes_printf(&shown, "```yaml\n%s\n```\n", text);
    wf_tb_version(&all, wall_s);
    wf_tb_text(&all, wall_s, "job", wf_bytes_str(&shown));
    if (add_graph(text, path, wall_s, &all, &why) != WF_OK)
        WF_LOG_WARN("history.no_graph", "why=\"%s\"", why.what);
    wf_background_append(b, place, NAME, &all, &(wf_bytes){0}); /* once: as the file's head */
    wf_bytes_close(&shown);
    wf_bytes_close(&all);
}
