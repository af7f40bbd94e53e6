/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/submit.c */
#include "cmd/cli/submit.h"
#include "cmd/cli/cli.h"
#include "cmd/cli/library.h"
#include "cmd/cli/picture.h"
#include "cmd/cli/place.h"
#include "cmd/cli/super.h"
#include "cmd/cli/term.h"
#include "common/base/disk.h"
#include "common/ckpt/ckpt.h"
#include "common/compile/compile.h"
#include "common/session/runs.h"
#include "common/session/same.h"
#include "master/callbacks/callbacks.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ANSWER_MS = 10000 };

/* The text of the file with what the options change. */
static wf_status read_text(const char *path, const wf_submit_options *o, wf_bytes *text,
                           wf_err *err)
{
    char name[WF_RUN_NAME + 4];

    WF_TRY(wf_job_read(path, text, err));
    if (o->name && !wf_job_name_ok(o->name))
        return wf_fail(err, WF_USAGE, "a name is made of a-z, 0-9, '.', '_' and '-'",
                       "\"%.80s\" is no name for a job", o->name);
    if (o->name)
        snprintf(name, sizeof name, "job=%s", o->name);
    for (size_t i = 0; i < o->set.n + (o->name != NULL); i++) {
        const char *change = i < o->set.n ? o->set.word[i] : name;
        char *next = NULL;

        WF_TRY(wf_job_change(wf_bytes_str(text), change, false, &next, err));
        wf_bytes_close(text);
        *text = (wf_bytes){0};
        wf_bytes_add(text, next, strlen(next));
        free(next);
        WF_TRY(wf_bytes_check(text, err));
    }
    return WF_OK;
}

static wf_status check_callbacks(const wf_job_conf *job, const wf_job_facts *facts, wf_err *err)
{
    const char *names[WF_CHECK_METRICS];
    wf_callbacks c;
    wf_opt opt;

    for (uint32_t i = 0; i < facts->n_metrics; i++)
        names[i] = facts->metrics[i];
    WF_TRY(wf_compile_optimizer_of_job(job, &opt, err));
    return wf_callbacks_init(&c, job, names, facts->n_metrics,
                             opt.schedule ? (double)NAN : opt.values[0], err);
}

/* A batch so large that an epoch is a step, or that some workers get none. */
static void warn_of_batch(const wf_submission *s)
{
    uint64_t batch = (uint64_t)s->job->batch, records = s->facts.train_records;
    uint64_t steps = (records + batch - 1) / batch;
    uint64_t workers = wf_job_is_divided(s->job) ? 1 : s->options.workers; /* that read records */
    char text[320], a[32], b[32];

    if (batch > records)
        snprintf(text, sizeof text,
                 "the batch of %s is larger than the %s training records: each epoch is one step; "
                 "a smaller batch trains better",
                 wf_count_text(batch, a, sizeof a), wf_count_text(records, b, sizeof b));
    else
        snprintf(text, sizeof text,
                 "a batch of %s for each of %" PRIu64 " workers is more than the %s training "
                 "records: not all of them train in each epoch; a smaller batch trains better",
                 wf_count_text(batch, a, sizeof a), workers, wf_count_text(records, b, sizeof b));
    if (records && (batch > records || steps < workers))
        wf_library_warn(NULL, text);
}

wf_status wf_submission_open(const char *path, const wf_submit_options *options, wf_submission *s,
                             wf_err *err)
{
    const wf_checks checks = {.warn = options->warned ? NULL : wf_library_warn,
                              .data = true,
                              .cluster = options->cluster};

    *s = (wf_submission){.path = path, .options = *options};
    WF_TRY(read_text(path, options, &s->text, err));
    WF_TRY(wf_job_parse(wf_bytes_str(&s->text), s->text.size, path, &s->job, err));
    WF_TRY(wf_job_check(s->job, &checks, &s->facts, err));
    warn_of_batch(s);
    return check_callbacks(s->job, &s->facts, err);
}

void wf_submission_close(wf_submission *s)
{
    wf_job_free(&s->job);
    wf_bytes_close(&s->text);
}

/* Where the newest checkpoint of a run was made. */
typedef struct place_in_run {
    bool is_known;
    uint64_t step;
    bool within; /* an epoch */
} place_in_run;

static bool is_within(const wf_ckpt_ledger *l)
{
    return l->n_open > 0 ||
           (l->n_finished > 0 && (l->finished[0].begin > 0 || l->finished[0].end < l->records));
}

static place_in_run find_place(const wf_cluster_conf *conf, const char *run)
{
    wf_arena *arena = wf_arena_new(0);
    place_in_run place = {0};
    wf_ckpt_entry *e = NULL;
    wf_ckpt *c = NULL;
    size_t n = 0, i = 0;
    wf_err why;

    if (arena &&
        wf_ckpt_list(wf_disk_posix(), conf->checkpoint_dir, run, arena, &e, &n, &why) != WF_OK)
        n = 0;
    while (i < n && e[i].fault)
        i++;
    if (i < n && wf_ckpt_open_entry(wf_disk_posix(), conf->checkpoint_dir, run, &e[i], false, &c,
                                    &why) == WF_OK)
        place = (place_in_run){true, e[i].step, is_within(&wf_ckpt_manifest(c)->ledger)};
    wf_ckpt_close(&c);
    wf_arena_free(&arena);
    return place;
}

static wf_status check_steps(const wf_submission *s, const place_in_run *at, const char *run,
                             wf_err *err)
{
    if (!at->is_known || !s->job->steps || s->job->steps >= at->step)
        return WF_OK;
    return wf_fail(err, WF_USAGE, "give more of them, or train a new run without --resume",
                   "%s has made %" PRIu64 " steps, and \"steps\" is %" PRIu64, run, at->step,
                   s->job->steps);
}

/* What the run was submitted with here is compared; where there is no copy, the master compares
 * digests when it restores. */
static wf_status check_same(const wf_cluster_conf *conf, const wf_submission *s, const char *run,
                            wf_err *err)
{
    char path[PATH_MAX], same[WF_RUN_NAME];
    wf_bytes text = {0};
    place_in_run at = find_place(conf, run);
    wf_job_conf *before = NULL;
    wf_err ignored;
    wf_status rc;

    WF_TRY(check_steps(s, &at, run, err));
    rc = wf_place_job(conf, run, path, same, &text, &ignored);
    if (rc == WF_OK)
        rc = wf_job_parse(wf_bytes_str(&text), text.size, path, &before, &ignored);
    wf_bytes_close(&text);
    rc = rc == WF_OK ? wf_job_same_model(before, s->job, run, err) : WF_OK;
    if (rc == WF_OK && before)
        rc = wf_job_same_order(before, s->job, at.within, run, err);
    if (rc == WF_OK && before && at.is_known)
        rc = wf_job_same_slots(before, s->job, run, err);
    wf_job_free(&before);
    return rc;
}

/* A resumed run that has trained all its epochs ends at once: that is said, or it looks trained. */
static void say_if_complete(const wf_cluster_conf *conf, const json_t *job, const wf_submission *s)
{
    uint32_t epoch = (uint32_t)wf_number_of(job, "epoch");
    uint64_t step = (uint64_t)wf_number_of(job, "step");
    bool steps = s->job->steps && step >= s->job->steps;

    if (!s->options.resume || strcmp(wf_text_of(job, "state"), "done") != 0 ||
        (!steps && (epoch < s->job->epochs || find_place(conf, s->run).within)))
        return;
    wf_term_print(stderr, "%s is complete: all its %s are trained; to train on, add --set %s=N\n",
                  s->run, steps ? "steps" : "epochs", steps ? "steps" : "epochs");
}

static wf_status choose_run(const wf_cluster_conf *conf, json_t *picture, wf_submission *s,
                            wf_err *err)
{
    const json_t *job = wf_ask_job(picture, s->job->name);
    const json_t *number = json_object_get(job, "run");
    wf_place_runs runs;

    WF_TRY(wf_place_runs_of(conf, &runs, err));
    WF_TRY(wf_runs_choose(runs.dirs, s->job->name, job ? json_integer_value(number) : -1,
                          s->options.resume, s->run, err));
    say_if_complete(conf, job, s);
    return WF_OK;
}

wf_status wf_submission_check_resume(const wf_cluster_conf *conf, const wf_submission *s,
                                     wf_err *err)
{
    char run[WF_RUN_NAME];

    if (!s->options.resume)
        return WF_OK;
    WF_TRY(wf_place_run(conf, s->job->name, run, err));
    return check_same(conf, s, run, err);
}

/* Each for itself: one that cannot go now goes after the next training. */
static wf_status drop_old_runs(const wf_cluster_conf *conf, wf_ask *a, const wf_submission *s,
                               wf_err *err)
{
    Weft__Ask ask = WEFT__ASK__INIT;
    wf_arena *arena = wf_arena_new(0);
    char name[WF_RUN_NAME];
    wf_place_runs places;
    wf_runs old = {0};
    wf_err why;
    wf_status rc = arena ? WF_OK : wf_fail_nomem(err, 0);

    if (rc == WF_OK)
        rc = wf_place_runs_of(conf, &places, err);
    if (rc == WF_OK)
        rc = wf_runs_surplus(places.dirs, s->run, s->job->keep_runs, arena, &old, err);
    ask.command = "forget";
    for (size_t i = old.n; rc == WF_OK && i > 0; i--) {
        ask.job = (char *)wf_run_name(s->job->name, old.number[i - 1], name);
        if (wf_ask_send(a, &ask, ANSWER_MS, NULL, &why) != WF_OK)
            wf_term_print(stderr, "warning: old run %s stays: %s\n", name, why.what);
    }
    wf_arena_free(&arena);
    return rc;
}

static wf_status hand_over(const wf_cluster_conf *conf, wf_ask *a, wf_submission *s, wf_err *err)
{
    Weft__Ask ask = WEFT__ASK__INIT;
    const char *text = wf_bytes_str(&s->text);
    char full[PATH_MAX];

    if (!realpath(s->path, full))
        return wf_fail(err, WF_NOTFOUND, NULL, "cannot find %s", s->path);
    ask.command = "submit";
    ask.job = s->run;
    ask.text = (char *)text;
    ask.path = full;
    ask.resume = s->options.resume;
    WF_TRY(wf_ask_send(a, &ask, ANSWER_MS, NULL, err));
    return wf_place_keep_job(conf, s->run,
                             &(wf_place_copy){text, s->text.size, s->path, s->options.again}, err);
}

wf_status wf_submit(const wf_cluster_conf *conf, wf_ask *a, wf_submission *s, wf_err *err)
{
    Weft__Ask ask = WEFT__ASK__INIT;
    json_t *picture = NULL;
    wf_status rc;

    ask.command = "status";
    rc = wf_ask_send(a, &ask, ANSWER_MS, &picture, err);
    if (rc == WF_OK)
        rc = choose_run(conf, picture, s, err);
    json_decref(picture);
    if (rc == WF_OK)
        rc = hand_over(conf, a, s, err);
    return rc == WF_OK && s->options.prune ? drop_old_runs(conf, a, s, err) : rc;
}

static wf_status submit(const wf_cluster_conf *conf, wf_submission *s, wf_err *err)
{
    wf_ask *a = NULL;
    wf_status rc;

    WF_TRY(wf_super_check_up(conf, err));
    WF_TRY(wf_ask_open(conf, &a, err));
    rc = wf_submit(conf, a, s, err);
    if (rc == WF_OK)
        wf_term_print(stdout, "job %s is submitted   follow it with: weft follow %s\n", s->run,
                      s->job->name);
    wf_ask_close(&a);
    return rc;
}

static wf_status run(int argc, char *argv[], wf_err *err)
{
    wf_submit_options o = {.prune = true};
    const char *cluster = NULL;
    wf_cluster_conf *conf = NULL;
    wf_submission s = {0};
    wf_words words;
    const wf_flag flags[] = {{"resume", 0, .set = &o.resume},
                             {"name", 0, .value = &o.name},
                             {"set", 0, .words = &o.set},
                             {"cluster", 0, .value = &cluster},
                             {0}};
    wf_status rc;

    WF_TRY(wf_args(flags, argc, argv, 1, 1, &words, err));
    WF_TRY(wf_place_cluster(cluster, false, &conf, err));
    o.workers = conf->n_workers;
    o.cluster = conf;
    rc = wf_submission_open(words.word[0], &o, &s, err);
    if (rc == WF_OK)
        rc = wf_submission_check_resume(conf, &s, err);
    if (rc == WF_OK)
        rc = submit(conf, &s, err);
    wf_submission_close(&s);
    wf_cluster_free(&conf);
    return rc;
}

const wf_cmd wf_cmd_submit = {
    .name = "submit",
    .help = "submit a job to a cluster that is up, and return",
    .usage =
        "weft submit JOB.yaml [--resume] [--name NAME] [--set KEY=VALUE ...] [--cluster FILE]\n"
        "\n"
        "Checks the job and gives it to the master as a new run. Jobs run one after the other.\n"
        "  --resume          continue the job's newest run from its newest checkpoint\n"
        "  --name NAME       the job's name, instead of the one in the file\n"
        "  --set KEY=VALUE   a number or word, instead of the one in the file; may be given\n"
        "                    several times\n"
        "\n"
        "  weft submit examples/digits.yaml && weft follow digits\n",
    .run = run,
};
