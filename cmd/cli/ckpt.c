/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/ckpt.c - looks at checkpoints on disk; no cluster need run. */
#include "common/ckpt/ckpt.h"
#include "cmd/cli/ckpts.h"
#include "cmd/cli/cli.h"
#include "cmd/cli/json.h"
#include "cmd/cli/place.h"
#include "cmd/cli/table.h"
#include "cmd/cli/term.h"
#include "common/ckpt/initial.h"
#include "common/session/runs.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

typedef struct request {
    const char *dir, *job, *step; /* step NULL: the newest, or all */
    bool json;
    wf_cluster_conf *conf;
} request;

static void tell(void *arg, uint64_t step, const char *sentence)
{
    (void)arg, (void)step;
    wf_term_print(stderr, "%s\n", sentence);
}

static wf_status open_asked(const request *r, bool verify, wf_ckpt **out, wf_err *err)
{
    unsigned long long step;
    const char *text = r->step;

    if (!text)
        return wf_ckpt_newest(wf_disk_posix(), r->dir, r->job, NULL, UINT64_MAX, tell, NULL, out,
                              err);
    if (strncmp(text, "step-", 5) == 0)
        text += 5;
    WF_TRY(wf_arg_u64("the step", text, 0, INT64_MAX, &step, err));
    return wf_ckpt_open(wf_disk_posix(), r->dir, r->job, step, verify, out, err);
}

static wf_status show_variables(wf_ckpt *c, wf_rows *rows, wf_err *err)
{
    const wf_manifest *m = wf_ckpt_manifest(c);
    static const char *const head[] = {"VARIABLE", "DTYPE",  "SHAPE",  "KIND",
                                       "SLOTS",    "SLICES", "UPDATES"};

    wf_rows_add(rows, head, WF_COUNT(head));
    for (size_t i = 0; i < m->n_variables; i++) {
        const wf_ckpt_variable *v = &m->variables[i];
        int64_t dims[WF_MAX_RANK];
        uint64_t n_rows;
        char shape[128], slots[256] = "", slices[16], updates[24];
        size_t at = 0;

        for (uint32_t k = 0; k < v->n_slots && at < sizeof slots; k++)
            at +=
                (size_t)snprintf(slots + at, sizeof slots - at, "%s%s", k ? "," : "", v->slots[k]);
        memcpy(dims, v->dims, sizeof dims);
        if (v->unbounded) {
            WF_TRY(wf_ckpt_count_rows(c, v, &n_rows, err));
            dims[0] = (int64_t)n_rows;
        }
        snprintf(slices, sizeof slices, "%zu", v->n_slices);
        snprintf(updates, sizeof updates, "%" PRIu64, v->n_slices ? v->slices[0].updates : 0);
        wf_rows_add(rows,
                    (const char *[]){v->name, wf_dtype_name(v->dtype),
                                     wf_dims_str(v->rank, dims, shape, sizeof shape), v->kind,
                                     slots, slices, updates},
                    7);
    }
    return WF_OK;
}

/* "epoch 9: 24 800 of 60 000 records are trained; 2 splits are unfinished". */
static void print_position(const wf_ckpt_ledger *l)
{
    char part[32], all[32];
    uint64_t trained = 0;

    for (size_t i = 0; i < l->n_finished; i++)
        trained += l->finished[i].end - l->finished[i].begin;
    for (size_t i = 0; i < l->n_open; i++)
        trained += l->open[i].next - l->open[i].begin;
    wf_count_text(l->records, all, sizeof all);
    if (trained == l->records)
        wf_term_print(stdout, "\nepoch %" PRIu32 ": all %s records are trained\n", l->epoch + 1,
                      all);
    else
        wf_term_print(stdout,
                      "\nepoch %" PRIu32 ": %s of %s records are trained; %zu split%s unfinished\n",
                      l->epoch + 1, wf_count_text(trained, part, sizeof part), all, l->n_open,
                      l->n_open == 1 ? " is" : "s are");
}

static wf_status show_text(wf_ckpt *c, wf_err *err)
{
    const wf_manifest *m = wf_ckpt_manifest(c);
    wf_rows rows = {0};
    char when[32];
    uint64_t bytes = 0;
    char size[32];
    wf_status rc;

    for (size_t i = 0; i < m->n_files; i++)
        bytes += m->files[i].bytes;
    wf_term_print(stdout, "%s  job %s  generation %" PRIu32 "  step %" PRIu64 "  %s\n",
                  wf_ckpt_name(c), m->job, m->cut.generation, m->global_step,
                  wf_ckpts_time(m->created_ms, when, sizeof when));
    wf_term_print(stdout, "%s in %zu files  pause %" PRIu64 " ms  graph %s  written by weft %s\n",
                  wf_bytes_text(bytes, size, sizeof size), m->n_files, m->pause_ms, m->digest,
                  m->weft);
    wf_term_print(stdout, "optimizer %s", m->rule);
    for (size_t i = 0; i < m->n_options; i++)
        wf_term_print(stdout, "  %s %g", m->options[i].name, m->options[i].value);
    print_position(&m->ledger);
    for (size_t i = 0; i < m->n_metrics; i++)
        wf_term_print(stdout, "%s%s %.6g", i ? "  " : "", m->metrics[i].name, m->metrics[i].value);
    wf_term_print(stdout, "%s\n", m->n_metrics ? "\n" : "");
    rc = show_variables(c, &rows, err);
    if (rc == WF_OK)
        return wf_rows_print(&rows, stdout, err);
    wf_rows_close(&rows);
    return rc;
}

static wf_status show(const request *r, wf_err *err)
{
    wf_bytes text = {0};
    wf_ckpt *c = NULL;
    wf_status rc;

    WF_TRY(open_asked(r, false, &c, err));
    if (r->json) {
        rc = wf_manifest_encode(wf_ckpt_manifest(c), &text, err);
        if (rc == WF_OK)
            rc = wf_json_print(json_loadb(wf_bytes_str(&text), text.size, 0, NULL),
                               JSON_INDENT(2) | JSON_ENSURE_ASCII, err);
    } else {
        rc = show_text(c, err);
    }
    wf_bytes_close(&text);
    wf_ckpt_close(&c);
    return rc;
}

static void print_bad(const wf_err *why)
{
    wf_term_print(stdout, "bad  %s%s%s\n", why->what, why->hint[0] ? "; " : "", why->hint);
}

static wf_status verify_one(const request *r, const wf_ckpt_entry *e, size_t *bad)
{
    wf_ckpt *c = NULL;
    wf_err why = {0};
    wf_status rc = wf_ckpt_open_entry(wf_disk_posix(), r->dir, r->job, e, true, &c, &why);

    if (rc == WF_OK)
        wf_term_print(stdout, "ok   %s  %zu files verified\n", e->name,
                      wf_ckpt_manifest(c)->n_files);
    else
        print_bad(&why);
    *bad += rc != WF_OK;
    wf_ckpt_close(&c);
    return rc;
}

/* The first values, which a recovery before the first checkpoint begins from. */
static wf_status verify_initial(const request *r, size_t *seen, size_t *bad)
{
    bool has_sum = false;
    wf_err why = {0};
    wf_status rc = wf_initial_verify(wf_disk_posix(), r->dir, r->job, &has_sum, &why);

    if (rc == WF_NOTFOUND)
        return WF_OK;
    if (rc == WF_OK)
        wf_term_print(stdout, "ok   %s  %s\n", WF_INITIAL_NAME,
                      has_sum ? "the initial values" : "its structure; it has no checksum");
    else
        print_bad(&why);
    *seen += 1;
    *bad += rc != WF_OK;
    return rc;
}

static wf_status verify(const request *r, wf_err *err)
{
    wf_arena *arena = wf_arena_new(0);
    wf_ckpt_entry *entries = NULL;
    unsigned long long step = 0;
    const char *only = r->step;
    size_t n = 0, bad = 0, seen = 0;
    wf_status rc;

    if (!arena)
        return wf_fail_nomem(err, 0);
    if (only && strncmp(only, "step-", 5) == 0)
        only += 5;
    rc = only ? wf_arg_u64("the step", only, 0, INT64_MAX, &step, err) : WF_OK;
    if (rc == WF_OK)
        rc = wf_ckpt_list(wf_disk_posix(), r->dir, r->job, arena, &entries, &n, err);
    for (size_t i = 0; rc == WF_OK && i < n; i++) {
        if (only && entries[i].step != step)
            continue;
        seen++;
        if (verify_one(r, &entries[i], &bad) == WF_NOMEM)
            rc = wf_fail_nomem(err, 0);
    }
    if (rc == WF_OK && !only && verify_initial(r, &seen, &bad) == WF_NOMEM)
        rc = wf_fail_nomem(err, 0);
    if (rc == WF_OK && seen == 0)
        rc = wf_fail(err, WF_NOTFOUND, "see \"weft ckpt ls\"", "job \"%s\" has no such checkpoint",
                     r->job);
    if (rc == WF_OK && bad)
        rc = wf_fail(err, WF_CORRUPT, "recovery passes over them by itself",
                     "%zu of %zu files and folders of job \"%s\" do not verify", bad, seen, r->job);
    wf_arena_free(&arena);
    return rc;
}

static wf_status run(int argc, char *argv[], wf_err *err)
{
    request r = {0};
    const char *cluster = NULL, *what;
    char run[WF_RUN_NAME];
    wf_words words;
    const wf_flag flags[] = {{"json", 0, .set = &r.json},
                             {"dir", 0, .value = &r.dir},
                             {"cluster", 0, .value = &cluster},
                             {0}};
    wf_status rc;

    WF_TRY(wf_args(flags, argc, argv, 1, 3, &words, err));
    what = words.word[0];
    r.job = words.n > 1 ? words.word[1] : NULL;
    r.step = words.n > 2 ? words.word[2] : NULL;
    if (!r.job && strcmp(what, "ls") != 0)
        return wf_fail(err, WF_USAGE, "see \"weft help ckpt\"", "weft ckpt %s wants a job's name",
                       what);
    if (r.job && !wf_run_name_ok(r.job))
        return wf_fail(err, WF_USAGE, "name it like digits, or digits#2 for its second run",
                       "\"%.64s\" is no job's name", r.job);
    if (!r.dir) {
        WF_TRY(wf_place_cluster(cluster, false, &r.conf, err));
        r.dir = r.conf->checkpoint_dir;
    }
    if (r.job) {
        const char *const dirs[] = {r.dir, NULL};

        rc = wf_runs_find(dirs, r.job, run, err);
        if (rc != WF_OK) {
            wf_cluster_free(&r.conf);
            return rc;
        }
        r.job = run;
    }
    if (strcmp(what, "ls") == 0)
        rc = r.job ? wf_ckpts_print(r.dir, r.job, r.json, err)
                   : wf_ckpts_print_runs(r.dir, r.json, err);
    else if (strcmp(what, "show") == 0)
        rc = show(&r, err);
    else if (strcmp(what, "verify") == 0)
        rc = verify(&r, err);
    else
        rc = wf_fail(err, WF_USAGE, "it is ls, show or verify", "weft ckpt has no \"%.32s\"", what);
    wf_cluster_free(&r.conf);
    return rc;
}

const wf_cmd wf_cmd_ckpt = {
    .name = "ckpt",
    .help = "list, show and verify checkpoints on disk",
    .usage =
        "weft ckpt ls [JOB] [--json]            list the runs, or a job's checkpoints, newest "
        "first\n"
        "weft ckpt show JOB [STEP] [--json]     show a checkpoint; without STEP the newest\n"
        "weft ckpt verify JOB [STEP]            read and check every byte; without STEP of all\n"
        "\n"
        "JOB is the job's newest run, or a run like digits#2. Reads the checkpoint folder; the\n"
        "cluster need not be up. ls shows the epoch of each checkpoint, and the metrics if its\n"
        "weights were evaluated.\n"
        "  --dir DIR        the folder; otherwise checkpoint_dir of the cluster here\n"
        "  --cluster FILE   the cluster; otherwise ./cluster.yaml, or the local one\n"
        "\n"
        "  weft ckpt ls mnist-mlp\n"
        "  weft ckpt verify mnist-mlp 12000\n",
    .run = run,
};
