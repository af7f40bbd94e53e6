/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/past.c - the picture of a cluster that is not up: of each run its last events, and its
 * checkpoints. */
#include "cmd/cli/ask.h"
#include "cmd/cli/picture.h"
#include "cmd/cli/place.h"
#include "cmd/cli/tail.h"
#include "common/base/file.h"
#include "common/base/size.h"
#include "common/ckpt/ckpt.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

/* What has happened before these bytes of a run's events is not looked at. */
enum { EVENT_BYTES = 256 << 10 };

/* ---- events ---- */

/* "failed: the loss is NaN": the state, and why. */
static void take_state(json_t *job, const json_t *event)
{
    const char *text = wf_text_of(event, "text"), *colon = strstr(text, ": ");
    const char *hint = json_string_value(json_object_get(event, "hint"));

    json_object_set_new(job, "state",
                        json_stringn(text, colon ? (size_t)(colon - text) : strlen(text)));
    json_object_set_new(job, "reason", json_string(colon ? colon + 2 : ""));
    json_object_set_new(job, "hint", json_string(hint ? hint : ""));
    if (strcmp(wf_text_of(job, "state"), "compiling") == 0) /* submitted anew */
        json_object_set_new(job, "set", json_string(""));
}

static void take_change(json_t *job, const json_t *event)
{
    const char *before = json_string_value(json_object_get(job, "set"));

    json_object_set_new(job, "set",
                        json_sprintf("%s  %s\n", before ? before : "", wf_text_of(event, "text")));
}

static void take_epoch(json_t *job, const json_t *event)
{
    static const char *const pairs[][2] = {
        {"epoch", "epoch"},         {"eval_epoch", "epoch"},
        {"elapsed_s", "elapsed_s"}, {"learning_rate", "learning_rate"},
        {"metrics", "train"},       {"eval", "val"}};
    unsigned epoch, epochs;

    for (size_t i = 0; i < WF_COUNT(pairs); i++)
        json_object_set(job, pairs[i][0], json_object_get(event, pairs[i][1]));
    if (sscanf(wf_text_of(event, "text"), "epoch %u/%u", &epoch, &epochs) == 2)
        json_object_set_new(job, "epochs", json_integer(epochs));
}

static void take_event(json_t *job, const char *line, size_t n)
{
    json_t *event = json_loadb(line, n, 0, NULL); /* NULL of a line that a crash cut short */
    const char *kind = wf_text_of(event, "event");

    if (strcmp(kind, "job.state") == 0)
        take_state(job, event);
    else if (strcmp(kind, "job.epoch") == 0)
        take_epoch(job, event);
    else if (strcmp(kind, "job.changed") == 0)
        take_change(job, event);
    if (event) {
        json_object_set(job, "last", json_object_get(event, "ts"));
        json_object_set(job, "step", json_object_get(event, "step"));
        json_object_set(job, "generation", json_object_get(event, "generation"));
    }
    json_decref(event);
}

static wf_status take_events(const wf_cluster_conf *conf, const char *run, json_t *job, wf_err *err)
{
    char path[PATH_MAX + 96];
    wf_bytes text = {0};
    const char *at;
    wf_status rc;

    snprintf(path, sizeof path, "%s/jobs/%s/events.jsonl", conf->state_dir, run);
    rc = wf_file_exists(path) ? wf_tail_read(path, EVENT_BYTES, &text, NULL, err) : WF_OK;
    for (at = wf_bytes_str(&text); *at;) {
        size_t n = strcspn(at, "\n");

        take_event(job, at, n);
        at += n + (at[n] != 0);
    }
    wf_bytes_close(&text);
    return rc;
}

/* ---- checkpoints ---- */

/* The weights that a job has ended with may be those of an earlier epoch: their numbers count. */
static void take_metrics(json_t *job, const wf_manifest *m)
{
    json_t *eval = json_object();
    double epoch = 0;

    for (size_t i = 0; i < m->n_metrics; i++)
        if (strncmp(m->metrics[i].name, "val_", 4) == 0)
            json_object_set_new(eval, m->metrics[i].name + 4, json_real(m->metrics[i].value));
        else if (strcmp(m->metrics[i].name, "epoch") == 0)
            epoch = m->metrics[i].value;
    if (epoch >= 1 && epoch != wf_number_of(job, "eval_epoch")) {
        json_object_set(job, "eval", eval);
        json_object_set_new(job, "eval_epoch", json_integer((json_int_t)epoch));
        json_object_set_new(job, "epoch", json_integer((json_int_t)epoch));
        json_object_del(job, "metrics");
    }
    json_decref(eval);
}

static wf_status take_checkpoints(const wf_cluster_conf *conf, const char *run, wf_arena *arena,
                                  json_t *job, wf_err *err)
{
    wf_ckpt_entry *e = NULL;
    wf_ckpt *c = NULL;
    size_t n = 0, i = 0;
    wf_err why;
    wf_status rc = wf_ckpt_list(wf_disk_posix(), conf->checkpoint_dir, run, arena, &e, &n, err);

    if (rc != WF_OK)
        return rc == WF_NOTFOUND ? WF_OK : rc;
    while (i < n && e[i].fault)
        i++;
    if (i == n)
        return WF_OK;
    json_object_set_new(job, "checkpoint", json_integer((json_int_t)e[i].step));
    if (e[i].best != UINT64_MAX)
        json_object_set_new(job, "best", json_integer((json_int_t)e[i].best));
    if (strcmp(wf_text_of(job, "state"), "done") != 0)
        return WF_OK;
    json_object_set_new(job, "step", json_integer((json_int_t)e[i].step));
    if (wf_ckpt_open_entry(wf_disk_posix(), conf->checkpoint_dir, run, &e[i], false, &c, &why) ==
        WF_OK)
        take_metrics(job, wf_ckpt_manifest(c));
    wf_ckpt_close(&c);
    return WF_OK;
}

/* ---- runs ---- */

/* Whether a process holds the lock of `weft train --local`. The system's list is read, since asking
 * by flock would hold the lock itself for a moment. */
static bool trains_here(const wf_cluster_conf *conf)
{
    char path[PATH_MAX + 32], line[256], inode[64];
    bool found = false;
    struct stat st;
    FILE *f;

    snprintf(path, sizeof path, "%s/local/master/lock", conf->state_dir);
    f = stat(path, &st) == 0 ? fopen("/proc/locks", "re") : NULL;
    if (!f)
        return false;
    snprintf(inode, sizeof inode, " %02x:%02x:%" PRIu64 " ", major(st.st_dev), minor(st.st_dev),
             (uint64_t)st.st_ino);
    while (!found && fgets(line, sizeof line, f))
        found = strstr(line, inode) != NULL;
    fclose(f);
    return found;
}

/* Nobody is there who goes on with what was under way. */
static void settle(const wf_cluster_conf *conf, json_t *job, bool trains)
{
    const char *state = wf_text_of(job, "state"), *name = wf_text_of(job, "name");
    static const char *const stay[] = {"queued", "done", "failed", "stopped", "interrupted"};

    char again[PATH_MAX];

    for (size_t i = 0; i < WF_COUNT(stay); i++)
        if (strcmp(state, stay[i]) == 0)
            return;
    if (trains)
        return;
    if (!wf_place_again(conf, name, again))
        snprintf(again, sizeof again, "weft recover %s", name);
    json_object_set_new(job, "state", json_string("interrupted"));
    json_object_set_new(job, "reason", json_string("every process had ended"));
    json_object_set_new(job, "hint", json_sprintf("go on with: %s", again));
}

static wf_status add_run(const wf_cluster_conf *conf, const char *run, bool trains, json_t *jobs,
                         wf_err *err)
{
    char job[WF_RUN_NAME];
    wf_arena *arena = wf_arena_new(0);
    uint32_t number = wf_run_split(run, job);
    json_t *o = json_pack("{s:s, s:i, s:s, s:s, s:n, s:f}", "job", job, "run", (int)number, "name",
                          run, "state", "queued", "checkpoint", "eta_s", -1.0);
    wf_status rc = arena && o ? WF_OK : wf_fail_nomem(err, 0);

    if (rc == WF_OK)
        rc = take_events(conf, run, o, err);
    if (rc == WF_OK)
        rc = take_checkpoints(conf, run, arena, o, err);
    if (rc == WF_OK)
        settle(conf, o, trains);
    wf_arena_free(&arena);
    json_array_append_new(jobs, o);
    return rc;
}

static int by_last(const void *a, const void *b)
{
    json_t *const *x = a, *const *y = b;
    int order = strcmp(wf_text_of(*x, "last"), wf_text_of(*y, "last"));

    return order ? order : strcmp(wf_text_of(*x, "name"), wf_text_of(*y, "name"));
}

static wf_status sort(json_t *jobs, json_t **out, wf_err *err)
{
    size_t n = json_array_size(jobs), i;
    json_t **list = calloc(n + 1, sizeof(*list)), *job;

    *out = json_array();
    if (!list)
        return wf_fail_nomem(err, n * sizeof(*list));
    json_array_foreach(jobs, i, job) list[i] = job;
    qsort(list, n, sizeof(*list), by_last);
    for (i = 0; i < n; i++)
        json_array_append(*out, list[i]);
    free(list);
    return WF_OK;
}

/* The names of all runs that have left a folder, as keys. */
static wf_status list_runs(const wf_cluster_conf *conf, json_t *names, wf_err *err)
{
    wf_arena *arena = wf_arena_new(0);
    wf_place_runs places;
    char job[WF_RUN_NAME];
    wf_status rc = arena ? wf_place_runs_of(conf, &places, err) : wf_fail_nomem(err, sizeof places);

    for (size_t d = 0; rc == WF_OK && places.dirs[d]; d++) {
        const char *const *found = NULL;
        size_t n = 0;

        rc = wf_disk_list(wf_disk_posix(), places.dirs[d], arena, &found, &n, err);
        rc = rc == WF_NOTFOUND ? WF_OK : rc;
        for (size_t i = 0; i < n; i++)
            if (wf_run_name_ok(found[i]) && wf_run_split(found[i], job) > 0)
                json_object_set_new(names, found[i], json_true());
    }
    wf_arena_free(&arena);
    return rc;
}

wf_status wf_past_picture(const wf_cluster_conf *conf, json_t **out, wf_err *err)
{
    json_t *names = json_object(), *jobs = json_array(), *sorted = NULL, *value;
    bool trains = trains_here(conf);
    const char *run;
    wf_status rc = list_runs(conf, names, err);

    json_object_foreach(names, run, value)
    {
        if (rc == WF_OK)
            rc = add_run(conf, run, trains, jobs, err);
    }
    if (rc == WF_OK)
        rc = sort(jobs, &sorted, err);
    *out = rc == WF_OK ? json_pack("{s:[], s:O}", "tasks", "jobs", sorted) : NULL;
    if (rc == WF_OK && !*out)
        rc = wf_fail_nomem(err, 0);
    json_decref(sorted);
    json_decref(names);
    json_decref(jobs);
    return rc;
}

wf_status wf_past_complete(const wf_cluster_conf *conf, json_t *picture, wf_err *err)
{
    static const char *const keys[] = {"epochs",    "metrics",       "eval",
                                       "elapsed_s", "learning_rate", "best"};
    json_t *job, *past = json_array(), *value;
    wf_status rc = WF_OK;
    size_t i;

    json_array_foreach(json_object_get(picture, "jobs"), i, job)
    {
        if (rc != WF_OK || !wf_ask_is_over(job) || wf_number_of(job, "epochs") > 0)
            continue;
        json_array_clear(past);
        rc = add_run(conf, wf_text_of(job, "name"), false, past, err);
        for (size_t k = 0; k < WF_COUNT(keys); k++) {
            value = json_object_get(job, keys[k]);
            if (!json_object_size(value) && json_number_value(value) == 0)
                json_object_set(job, keys[k], json_object_get(json_array_get(past, 0), keys[k]));
        }
    }
    json_decref(past);
    return rc;
}
