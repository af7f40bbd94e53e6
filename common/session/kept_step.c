/* SPDX-License-Identifier: Apache-2.0 */
/* common/session/kept_step.c */
#include "common/session/kept_step.h"
#include "common/base/file.h"
#include "common/ckpt/json.h"
#include "common/onnx/onnx.h"
#include "common/session/npy.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_STEP_BYTES = 64 << 20 };

/* ---- keeping ---- */

static size_t bytes_of(const wf_kept_step *s)
{
    size_t bytes = s->graph_bytes;

    for (uint32_t i = 0; i < wf_plan_n_inputs(s->plan); i++)
        bytes += s->inputs[i] ? wf_plan_input(s->plan, i)->bytes : 0;
    return bytes;
}

/* Writes content of a port, which may lie on a device. */
static wf_status write_content(const wf_port *p, const void *content, const char *dir,
                               const char *name, wf_err *err)
{
    void *copy;
    wf_status rc;

    if (p->device->is_host)
        return wf_npy_write(dir, name, p->dtype, p->rank, p->dims, content, err);
    copy = malloc(p->bytes + 1);
    if (!copy)
        return wf_fail_nomem(err, p->bytes);
    rc = wf_device_read(p->device, copy, content, p->bytes, err);
    if (rc == WF_OK)
        rc = wf_npy_write(dir, name, p->dtype, p->rank, p->dims, copy, err);
    free(copy);
    return rc;
}

/* Writes an input, and in `file` where: a name is made another's file name by a number. */
static wf_status write_input(const wf_kept_step *s, uint32_t i, const char *folder, char *file,
                             size_t size, wf_err *err)
{
    const wf_port *p = wf_plan_input(s->plan, i);
    const char *kind = p->variable ? "weights" : "inputs";
    char dir[PATH_MAX], path[PATH_MAX], name[300];

    snprintf(name, sizeof name, "%.200s", p->variable ? p->variable : p->name);
    for (char *c = name; *c; c++)
        *c = *c == '/' || *c == ':' ? '_' : *c;
    if (snprintf(dir, sizeof dir, "%s/%s", folder, kind) >= (int)sizeof dir ||
        snprintf(path, sizeof path, "%s/%s.npy", dir, name) >= (int)sizeof path)
        return wf_fail(err, WF_INVALID, NULL, "the path %.200s... is too long", folder);
    if (wf_file_exists(path))
        snprintf(name + strlen(name), sizeof name - strlen(name), "-%" PRIu32, i);
    snprintf(file, size, "%s/%s.npy", kind, name);
    WF_TRY(wf_make_dirs(dir, err));
    return write_content(p, s->inputs[i], dir, name, err);
}

static wf_status write_inputs(const wf_kept_step *s, const char *folder, json_t *list, wf_err *err)
{
    char file[400];

    for (uint32_t i = 0; i < wf_plan_n_inputs(s->plan); i++) {
        const wf_port *p = wf_plan_input(s->plan, i);

        if (!s->inputs[i])
            continue;
        WF_TRY(write_input(s, i, folder, file, sizeof file, err));
        if (json_array_append_new(list, json_pack("{s:s, s:s}", "name",
                                                  p->variable ? p->variable : p->name, "file",
                                                  file)) != 0)
            return wf_fail_nomem(err, 0);
    }
    return WF_OK;
}

static wf_status write_json(const wf_kept_step *s, const char *folder, json_t *inputs, wf_err *err)
{
    json_t *records = json_array(), *all;
    char path[PATH_MAX], *text;
    wf_status rc;

    for (size_t i = 0; i < s->n_records; i++)
        json_array_append_new(records, json_integer((json_int_t)s->records[i]));
    all = json_pack("{s:s, s:I, s:I, s:I, s:I, s:s, s:i, s:O, s:o}", "what", s->what, "seed",
                    (json_int_t)s->key.seed, "epoch", (json_int_t)s->key.epoch, "split",
                    (json_int_t)s->key.split, "batch", (json_int_t)s->key.batch, "compute",
                    wf_compute_name(s->compute), "output", (int)s->output, "inputs", inputs,
                    "records", records);
    text = all ? json_dumps(all, JSON_INDENT(1)) : NULL;
    json_decref(all);
    if (!text)
        return wf_fail_nomem(err, 0);
    rc = snprintf(path, sizeof path, "%s/step.json", folder) < (int)sizeof path
             ? wf_file_write(path, text, strlen(text), err)
             : wf_fail(err, WF_INVALID, NULL, "the path %.200s... is too long", folder);
    free(text);
    return rc;
}

static wf_status write_all(const wf_kept_step *s, const char *folder, wf_err *err)
{
    char path[PATH_MAX];
    json_t *inputs;
    wf_status rc;

    WF_TRY(wf_make_dirs(folder, err));
    if (snprintf(path, sizeof path, "%s/graph.onnx", folder) >= (int)sizeof path)
        return wf_fail(err, WF_INVALID, NULL, "the path %.200s... is too long", folder);
    WF_TRY(wf_file_write(path, s->graph, s->graph_bytes, err));
    inputs = json_array();
    rc = inputs ? write_inputs(s, folder, inputs, err) : wf_fail_nomem(err, 0);
    if (rc == WF_OK)
        rc = write_json(s, folder, inputs, err);
    json_decref(inputs);
    return rc;
}

/* The oldest folder of kept steps; how many there are in *n. */
static void find_oldest(const char *run_dir, char oldest[PATH_MAX], uint32_t *n)
{
    DIR *d = opendir(run_dir);
    struct timespec least = {0};
    const struct dirent *e;

    *n = 0;
    while (d && (e = readdir(d))) {
        char path[PATH_MAX];
        struct stat st;

        if (strncmp(e->d_name, "nan-", 4) != 0 ||
            snprintf(path, sizeof path, "%s/%s", run_dir, e->d_name) >= (int)sizeof path ||
            stat(path, &st) != 0)
            continue;
        if (++*n > 1 && (st.st_mtim.tv_sec > least.tv_sec ||
                         (st.st_mtim.tv_sec == least.tv_sec && st.st_mtim.tv_nsec > least.tv_nsec)))
            continue;
        least = st.st_mtim;
        snprintf(oldest, PATH_MAX, "%s", path);
    }
    if (d)
        closedir(d);
}

static wf_status drop_old(const char *run_dir, wf_err *err)
{
    char oldest[PATH_MAX] = "";
    uint32_t n;

    for (find_oldest(run_dir, oldest, &n); n > WF_KEPT_STEPS; find_oldest(run_dir, oldest, &n))
        WF_TRY(wf_remove_tree(oldest, err));
    return WF_OK;
}

/* Gives the finished folder its name. */
static wf_status publish(const wf_kept_step *s, const char *run_dir, const char *made,
                         char path[PATH_MAX], wf_err *err)
{
    snprintf(path, PATH_MAX, "%.*s/nan-%" PRIu32, PATH_MAX - 64, run_dir, s->step);
    if (rename(made, path) == 0)
        return WF_OK;
    if (errno == EEXIST || errno == ENOTEMPTY)
        snprintf(path + strlen(path), 16, "-%" PRIu32, s->worker);
    return rename(made, path) == 0 ? WF_OK
                                   : wf_fail_errno(err, errno, NULL, "cannot make %s", path);
}

wf_status wf_kept_step_write(const wf_kept_step *s, const char *run_dir, char path[PATH_MAX],
                             wf_err *err)
{
    char made[PATH_MAX];
    wf_status rc;

    if (bytes_of(s) > WF_KEPT_BYTES)
        return wf_fail(err, WF_FULL, NULL, "they take %zu MiB, and %zu are allowed",
                       bytes_of(s) >> 20, WF_KEPT_BYTES >> 20);
    if (snprintf(made, sizeof made, "%s/.nan-%ld", run_dir, (long)getpid()) >=
        (int)sizeof made - 64)
        return wf_fail(err, WF_INVALID, NULL, "the path %.200s... is too long", run_dir);
    rc = write_all(s, made, err);
    if (rc == WF_OK)
        rc = publish(s, run_dir, made, path, err);
    if (rc != WF_OK)
        (void)!wf_remove_tree(made, NULL);
    return rc == WF_OK ? drop_old(run_dir, err) : rc;
}

/* ---- running it again ---- */

typedef struct told {
    json_t *json;
    wf_graph *graph;
} told;

static wf_status spoilt(const char *folder, const char *what, wf_err *err)
{
    return wf_fail(err, WF_CORRUPT, "train again to have it made anew",
                   "%s holds no whole step: %s", folder, what);
}

/* WF_COMPUTES: none that weft writes. */
static wf_compute compute_told(const told *t)
{
    const char *name = json_string_value(json_object_get(t->json, "compute"));

    return name ? wf_compute_of(name) : WF_COMPUTES;
}

static wf_status read_told(const char *folder, told *t, wf_err *err)
{
    char path[PATH_MAX];
    wf_bytes text = {0};
    wf_status rc;

    if (snprintf(path, sizeof path, "%s/step.json", folder) >= (int)sizeof path - 16)
        return wf_fail(err, WF_INVALID, NULL, "the path %.200s... is too long", folder);
    if (!wf_file_exists(path))
        return wf_fail(err, WF_NOTFOUND, "name a folder nan-STEP of a run, or an ONNX file",
                       "%s holds no step: there is no step.json in it", folder);
    rc = wf_file_read(path, MOST_STEP_BYTES, &text, err);
    if (rc == WF_OK)
        rc = wf_json_read(wf_bytes_str(&text), text.size, path, 0, &t->json, err);
    wf_bytes_close(&text);
    if (rc == WF_OK && (!json_is_string(json_object_get(t->json, "what")) ||
                        !json_is_array(json_object_get(t->json, "inputs"))))
        rc = spoilt(folder, "step.json does not name its inputs and what was bad", err);
    if (rc == WF_OK && compute_told(t) == WF_COMPUTES)
        rc = spoilt(folder, "step.json does not name what it is computed in", err);
    snprintf(path, sizeof path, "%s/graph.onnx", folder);
    return rc == WF_OK ? wf_onnx_read(path, &t->graph, err) : rc;
}

static wf_status read_inputs(const char *folder, const told *t, wf_replay *r, wf_err *err)
{
    json_t *list = json_object_get(t->json, "inputs"), *row;
    size_t i, n = json_array_size(list);

    r->inputs = calloc(n + 1, sizeof(*r->inputs));
    if (!r->inputs)
        return wf_fail_nomem(err, n * sizeof(*r->inputs));
    r->n_inputs = n;
    json_array_foreach(list, i, row)
    {
        const char *file = json_string_value(json_object_get(row, "file"));
        char path[PATH_MAX];

        if (!file || !json_string_value(json_object_get(row, "name")) || strstr(file, "..") ||
            snprintf(path, sizeof path, "%s/%s", folder, file) >= (int)sizeof path)
            return spoilt(folder, "step.json does not name an input's file", err);
        WF_TRY(wf_npy_read(path, &r->inputs[i], err));
    }
    return WF_OK;
}

static const char *name_at(const told *t, size_t i)
{
    return json_string_value(
        json_object_get(json_array_get(json_object_get(t->json, "inputs"), i), "name"));
}

static wf_status make_plan(const told *t, wf_pool *pool, wf_replay *r, wf_err *err)
{
    wf_plan_shape *shapes = calloc(r->n_inputs + 1, sizeof *shapes);
    wf_plan_options o = {.pool = pool, .shapes = shapes, .compute = compute_told(t)};
    wf_status rc;

    if (!shapes)
        return wf_fail_nomem(err, r->n_inputs * sizeof *shapes);
    for (size_t i = 0; i < r->n_inputs; i++) {
        const wf_value *v = wf_graph_value(t->graph, name_at(t, i));

        if (!v || !v->is_input)
            continue;
        shapes[o.n_shapes] = (wf_plan_shape){.name = v->name, .rank = r->inputs[i]->rank};
        memcpy(shapes[o.n_shapes++].dims, r->inputs[i]->dims, r->inputs[i]->rank * sizeof(int64_t));
    }
    rc = wf_plan_new(t->graph, &o, &r->plan, err);
    free(shapes);
    return rc;
}

static wf_status bind_inputs(const char *folder, const told *t, wf_replay *r, wf_err *err)
{
    for (size_t i = 0; i < r->n_inputs; i++) {
        int64_t at = wf_plan_find_input(r->plan, name_at(t, i));
        const wf_port *p = at >= 0 ? wf_plan_input(r->plan, (uint32_t)at) : NULL;

        if (!p || p->dtype != r->inputs[i]->dtype || p->elems != wf_elems(r->inputs[i]))
            return spoilt(folder, "an input does not fit its graph", err);
        wf_plan_bind_input(r->plan, (uint32_t)at, r->inputs[i]->data);
    }
    return WF_OK;
}

static uint64_t number(const told *t, const char *key)
{
    return (uint64_t)json_integer_value(json_object_get(t->json, key));
}

static wf_status find_blame(const char *folder, const told *t, wf_replay *r, wf_err *err)
{
    wf_step_key key = {number(t, "seed"), number(t, "epoch"), number(t, "split"),
                       number(t, "batch")};
    const char *what = json_string_value(json_object_get(t->json, "what"));
    char source[500];
    wf_blame blame;

    if (number(t, "output") >= wf_plan_n_outputs(r->plan))
        return spoilt(folder, "step.json does not name its bad output", err);
    WF_TRY(wf_plan_blame(r->plan, &key, (uint32_t)number(t, "output"), &blame, err));
    WF_TRY(wf_plan_run(r->plan, &key, NULL, NULL, err));
    wf_blame_text(&blame, source, sizeof source);
    snprintf(r->said, sizeof r->said, "%.300s; %s", what,
             source[0] ? source : "here it makes no bad value");
    return WF_OK;
}

wf_status wf_replay_open(const char *folder, wf_pool *pool, wf_replay *out, wf_err *err)
{
    told t = {0};
    wf_status rc;

    *out = (wf_replay){0};
    rc = read_told(folder, &t, err);
    if (rc == WF_OK)
        rc = read_inputs(folder, &t, out, err);
    if (rc == WF_OK)
        rc = wf_err_wrap(err, make_plan(&t, pool, out, err), "%s/graph.onnx", folder);
    if (rc == WF_OK)
        rc = bind_inputs(folder, &t, out, err);
    if (rc == WF_OK)
        rc = find_blame(folder, &t, out, err);
    wf_graph_free(&t.graph);
    json_decref(t.json);
    return rc;
}

void wf_replay_close(wf_replay *r)
{
    wf_plan_free(&r->plan);
    for (size_t i = 0; i < r->n_inputs; i++)
        wf_tensor_free(&r->inputs[i]);
    free(r->inputs);
    *r = (wf_replay){0};
}
