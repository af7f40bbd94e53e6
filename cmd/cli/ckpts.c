/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/ckpts.c */
#include "cmd/cli/ckpts.h"
#include "cmd/cli/json.h"
#include "cmd/cli/picture.h"
#include "cmd/cli/table.h"
#include "cmd/cli/term.h"
#include "common/base/size.h"
#include "common/ckpt/ckpt.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* Columns of a table that are of metrics. */
enum { MOST_METRICS = 8 };

const char *wf_ckpts_time(int64_t ms, char *text, size_t size)
{
    time_t seconds = (time_t)(ms / 1000);
    struct tm at;

    if (ms <= 0 || !localtime_r(&seconds, &at) || !strftime(text, size, "%F %T", &at))
        snprintf(text, size, "-");
    return text;
}

/* ---- what is known of one ---- */

static uint64_t trained_of(const wf_ckpt_ledger *l)
{
    uint64_t n = 0;

    for (size_t i = 0; i < l->n_finished; i++)
        n += l->finished[i].end - l->finished[i].begin;
    for (size_t i = 0; i < l->n_open; i++)
        n += l->open[i].next - l->open[i].begin;
    return n;
}

/* The epoch, from 1, and the part of it that is trained. What an evaluation said belongs to these
 * weights only if nothing was trained since. */
static void take_manifest(json_t *o, const wf_manifest *m)
{
    const wf_ckpt_ledger *l = &m->ledger;
    double part = l->records ? (double)trained_of(l) / (double)l->records : 0;
    json_t *metrics = json_object();

    json_object_set_new(o, "epoch", json_integer((json_int_t)l->epoch + 1));
    json_object_set_new(o, "part", json_real(part));
    for (size_t i = 0; i < m->n_metrics && l->evaluated && part >= 1; i++)
        if (strcmp(m->metrics[i].name, "epoch") != 0)
            json_object_set_new(metrics, m->metrics[i].name, json_real(m->metrics[i].value));
    json_object_set_new(o, "metrics", metrics);
}

static json_t *entry_json(const char *dir, const char *run, const wf_ckpt_entry *e)
{
    json_t *o =
        json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:b, s:s?}", "name", e->name, "step",
                  (json_int_t)e->step, "generation", (json_int_t)e->generation, "bytes",
                  (json_int_t)e->bytes, "files", (json_int_t)e->n_files, "created_ms",
                  (json_int_t)e->created_ms, "complete", e->fault == NULL, "fault", e->fault);
    wf_ckpt *c = NULL;
    wf_err why;

    if (o && !e->fault &&
        wf_ckpt_open_entry(wf_disk_posix(), dir, run, e, false, &c, &why) == WF_OK)
        take_manifest(o, wf_ckpt_manifest(c));
    wf_ckpt_close(&c);
    return o;
}

/* All of a run, newest first; the newest complete one and the best one are marked. */
static wf_status list(const char *dir, const char *run, wf_arena *arena, json_t **out, wf_err *err)
{
    wf_ckpt_entry *e = NULL;
    uint64_t best = UINT64_MAX;
    bool any = false;
    size_t n = 0;

    *out = json_array();
    WF_TRY(wf_ckpt_list(wf_disk_posix(), dir, run, arena, &e, &n, err));
    for (size_t i = 0; i < n; i++) {
        json_t *o = entry_json(dir, run, &e[i]);
        bool newest = !any && !e[i].fault;

        best = newest ? e[i].best : best;
        any |= newest;
        json_object_set_new(o, "newest", json_boolean(newest));
        json_object_set_new(o, "best", json_boolean(!e[i].fault && e[i].step == best));
        if (json_array_append_new(*out, o) != 0)
            return wf_fail_nomem(err, 0);
    }
    return WF_OK;
}

/* ---- as tables ---- */

/* "3", or "3 (40 %)" of one within an epoch. */
static const char *epoch_text(const json_t *o, char *text, size_t size)
{
    int epoch = (int)wf_number_of(o, "epoch");
    double part = wf_number_of(o, "part");

    if (part < 1)
        snprintf(text, size, "%d (%.0f %%)", epoch, 100 * part);
    else
        snprintf(text, size, "%d", epoch);
    return epoch ? text : "-";
}

static const char *state_text(const json_t *o)
{
    bool newest = json_is_true(json_object_get(o, "newest"));
    bool best = json_is_true(json_object_get(o, "best"));

    if (!json_is_true(json_object_get(o, "complete")))
        return wf_text_of(o, "fault");
    return newest && best ? "newest, best" : newest ? "newest" : best ? "best" : "complete";
}

/* The names of metrics in any of the rows, borrowed. */
static size_t names_of(const json_t *all, const char *names[MOST_METRICS])
{
    json_t *o, *value;
    const char *name;
    size_t n = 0, i;

    json_array_foreach(all, i, o)
    {
        json_object_foreach(json_object_get(o, "metrics"), name, value)
        {
            bool known = n == MOST_METRICS;

            for (size_t k = 0; k < n; k++)
                known |= strcmp(names[k], name) == 0;
            if (!known)
                names[n++] = name;
        }
    }
    return n;
}

static void add_row(wf_rows *rows, const char *first, const json_t *o, const char *const names[],
                    size_t n)
{
    char epoch[32], numbers[MOST_METRICS][32], generation[16], size[32], when[32];
    const char *cells[6 + MOST_METRICS] = {first, epoch_text(o, epoch, sizeof epoch)};

    for (size_t k = 0; k < n; k++) {
        const json_t *value = json_object_get(json_object_get(o, "metrics"), names[k]);

        snprintf(numbers[k], sizeof numbers[k], json_is_number(value) ? "%.4f" : "-",
                 json_number_value(value));
        cells[2 + k] = numbers[k];
    }
    snprintf(generation, sizeof generation, "%d", (int)wf_number_of(o, "generation"));
    cells[2 + n] = generation;
    cells[3 + n] = wf_bytes_text((unsigned long long)wf_number_of(o, "bytes"), size, sizeof size);
    cells[4 + n] = wf_ckpts_time((int64_t)json_integer_value(json_object_get(o, "created_ms")),
                                 when, sizeof when);
    cells[5 + n] = state_text(o);
    wf_rows_add(rows, cells, 6 + n);
}

static void add_head(wf_rows *rows, const char *first, const char *const names[], size_t n)
{
    const char *cells[6 + MOST_METRICS] = {first, "EPOCH"};

    for (size_t k = 0; k < n; k++)
        cells[2 + k] = names[k];
    cells[2 + n] = "GEN";
    cells[3 + n] = "BYTES";
    cells[4 + n] = "CREATED";
    cells[5 + n] = "STATE";
    wf_rows_add(rows, cells, 6 + n);
}

wf_status wf_ckpts_print(const char *dir, const char *run, bool json, wf_err *err)
{
    const char *names[MOST_METRICS];
    wf_arena *arena = wf_arena_new(0);
    json_t *all = NULL, *o;
    wf_rows rows = {0};
    size_t n, i;
    wf_status rc = arena ? list(dir, run, arena, &all, err) : wf_fail_nomem(err, 0);

    if (rc == WF_OK && json) {
        rc = wf_json_print(json_incref(all), JSON_INDENT(2) | JSON_ENSURE_ASCII, err);
    } else if (rc == WF_OK) {
        n = names_of(all, names);
        add_head(&rows, "NAME", names, n);
        json_array_foreach(all, i, o) add_row(&rows, wf_text_of(o, "name"), o, names, n);
        rc = wf_rows_print(&rows, stdout, err);
    }
    json_decref(all);
    wf_arena_free(&arena);
    return rc;
}

/* ---- all runs ---- */

static const char *name_marked(const json_t *all, const char *mark)
{
    json_t *o;
    size_t i;

    json_array_foreach(all, i, o)
    {
        if (json_is_true(json_object_get(o, mark)))
            return wf_text_of(o, "name");
    }
    return "-";
}

static void add_run(wf_rows *rows, json_t *to, const char *run, json_t *all)
{
    char count[24];

    snprintf(count, sizeof count, "%zu", json_array_size(all));
    wf_rows_add(rows,
                (const char *[]){run, count, name_marked(all, "newest"), name_marked(all, "best")},
                4);
    json_array_append_new(to, json_pack("{s:s, s:O}", "run", run, "checkpoints", all));
}

wf_status wf_ckpts_print_runs(const char *dir, bool json, wf_err *err)
{
    wf_arena *arena = wf_arena_new(0);
    const char *const *names = NULL;
    json_t *runs = json_array();
    wf_rows rows = {0};
    size_t n = 0;
    wf_status rc =
        arena ? wf_disk_list(wf_disk_posix(), dir, arena, &names, &n, err) : wf_fail_nomem(err, 0);

    if (rc == WF_NOTFOUND)
        rc = wf_fail(err, rc, "train a job first", "there are no checkpoints in %s", dir);
    wf_rows_add(&rows, (const char *[]){"RUN", "CHECKPOINTS", "NEWEST", "BEST"}, 4);
    for (size_t i = 0; rc == WF_OK && i < n; i++) {
        json_t *all = NULL;

        if (names[i][0] == '.')
            continue;
        rc = list(dir, names[i], arena, &all, err);
        if (rc == WF_OK)
            add_run(&rows, runs, names[i], all);
        json_decref(all);
    }
    if (rc == WF_OK && json)
        rc = wf_json_print(json_incref(runs), JSON_INDENT(2) | JSON_ENSURE_ASCII, err);
    else if (rc == WF_OK)
        rc = wf_rows_print(&rows, stdout, err);
    wf_rows_close(&rows);
    json_decref(runs);
    wf_arena_free(&arena);
    return rc;
}
