/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/rm.c - removes runs with their checkpoints and history. The master that keeps the journal
 * does it: that of the cluster when it is up, and without one a master in this process, which
 * nobody can reach. */
#include "cmd/cli/ask.h"
#include "cmd/cli/cli.h"
#include "cmd/cli/place.h"
#include "cmd/cli/super.h"
#include "cmd/cli/term.h"
#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/rng.h"
#include "common/base/size.h"
#include "common/session/runs.h"
#include "common/wire/wait.h"
#include "runtime/master_loop.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { ANSWER_MS = 10000, TURN_MS = 20 };

/* ---- by the cluster's master ---- */

static wf_status ask_to_forget(const wf_cluster_conf *conf, const char *const names[], size_t n,
                               wf_err *err)
{
    Weft__Ask ask = WEFT__ASK__INIT;
    wf_ask *a = NULL;
    wf_status rc;

    rc = wf_ask_open(conf, &a, err);
    ask.command = "forget";
    for (size_t i = 0; rc == WF_OK && i < n; i++) {
        ask.job = (char *)names[i];
        rc = wf_ask_send(a, &ask, ANSWER_MS, NULL, err);
    }
    wf_ask_close(&a);
    return rc;
}

/* ---- by a master in this process ---- */

/* Until what was decided is on disk: the folders go after that. */
static wf_status settle(wf_master_loop *l, wf_net *net, wf_err *err)
{
    bool any;

    while (!wf_master_durable(l->master)) {
        WF_TRY(wf_master_loop_turn(l, net, wf_now_ns(), &any, err));
        wf_wait(NULL, 0, wf_background_fd(l->background), TURN_MS, NULL);
    }
    return wf_master_loop_turn(l, net, wf_now_ns(), &any, err);
}

/* One that nobody can dial. */
static wf_status make_net(const wf_cluster_conf *conf, wf_master_loop *l, wf_net **out, wf_err *err)
{
    wf_net_conf own = wf_net_defaults();

    own.self = (wf_task){WF_ROLE_MASTER, 0};
    own.incarnation = wf_random_id();
    own.pid = (uint64_t)getpid();
    own.cluster = conf->name;
    wf_master_loop_admit(l, &own);
    WF_TRY(wf_net_new(&own, out, err));
    wf_master_set_net(l->master, *out);
    return WF_OK;
}

static wf_status forget_here(const wf_cluster_conf *conf, const char *state_dir,
                             const char *const names[], size_t n, wf_err *err)
{
    wf_cluster_conf of = *conf;
    wf_master_loop l = {.lock = -1};
    wf_net *net = NULL;
    wf_place_runs places;
    wf_status rc;

    of.state_dir = state_dir;
    WF_TRY(wf_place_runs_of(conf, &places, err));
    rc = wf_master_loop_open(&l, &of, wf_random_id(), "", places.jobs, NULL, wf_disk_posix(), err);
    if (rc == WF_OK)
        rc = make_net(&of, &l, &net, err);
    for (size_t i = 0; rc == WF_OK && i < n; i++)
        rc = wf_master_forget(l.master, names[i], err);
    if (rc == WF_OK)
        rc = settle(&l, net, err);
    if (wf_master_loop_close(&l, false)) {
        wf_net_free(&net, 0);
        wf_master_loop_unlock(&l);
    }
    return rc;
}

/* In the journal of `weft train --local` as well, where there is one. */
static wf_status forget_local(const wf_cluster_conf *conf, const char *const names[], size_t n,
                              wf_err *err)
{
    char folder[PATH_MAX], journal[PATH_MAX + 16];

    if (snprintf(folder, sizeof folder, "%s/local", conf->state_dir) >= (int)sizeof folder)
        return wf_fail(err, WF_INVALID, NULL, "the path %.200s is too long", conf->state_dir);
    snprintf(journal, sizeof journal, "%s/master", folder);
    return wf_file_exists(journal) ? forget_here(conf, folder, names, n, err) : WF_OK;
}

/* ---- the command ---- */

/* All runs of a job, or the one that is named. */
static wf_status find_runs(const wf_cluster_conf *conf, const char *word, wf_arena *arena,
                           const char ***names, size_t *n, wf_err *err)
{
    char job[WF_RUN_NAME];
    wf_place_runs places;
    wf_runs runs = {0};
    uint32_t number = wf_run_split(word, job);

    WF_TRY(wf_place_runs_of(conf, &places, err));
    WF_TRY(wf_runs_list(places.dirs, job, arena, &runs, err));
    *names = wf_arena_array(arena, runs.n + 1, sizeof(**names));
    if (!*names)
        return wf_fail_nomem(err, runs.n * sizeof(**names));
    for (size_t i = 0; i < runs.n; i++) {
        char name[WF_RUN_NAME];

        if (strchr(word, '#') && runs.number[i] != number)
            continue;
        (*names)[*n] = wf_arena_strdup(arena, wf_run_name(job, runs.number[i], name));
        if (!(*names)[(*n)++])
            return wf_fail_nomem(err, sizeof name);
    }
    return *n ? WF_OK
              : wf_fail(err, WF_NOTFOUND, "see the names with: weft status",
                        strchr(word, '#') ? "there is no run %s here" : "there is no job %s here",
                        word);
}

/* The cluster's master removes folders beside its work: once it is said that runs are removed, they
 * are not found any more. */
static void await_removal(const wf_cluster_conf *conf, const char *word, wf_arena *arena)
{
    int64_t until_ns = wf_now_ns() + ANSWER_MS * WF_NS_PER_MS;
    const char **names;
    wf_err ignored;
    size_t n = 0;

    while (wf_now_ns() < until_ns && find_runs(conf, word, arena, &names, &n, &ignored) == WF_OK) {
        wf_wait(NULL, 0, -1, TURN_MS, NULL);
        n = 0;
    }
}

static void print_removed(const char *word, size_t n)
{
    if (strchr(word, '#'))
        wf_term_print(stdout, "%s removed\n", word);
    else
        wf_term_print(stdout, "%zu run%s of %s removed\n", n, n == 1 ? "" : "s", word);
}

static wf_status forget(const wf_cluster_conf *conf, const char *word, wf_err *err)
{
    wf_arena *arena = wf_arena_new(0);
    const char **names = NULL;
    size_t n = 0;
    wf_status rc;
    bool up;

    if (!arena)
        return wf_fail_nomem(err, 0);
    rc = find_runs(conf, word, arena, &names, &n, err);
    up = rc == WF_OK && wf_super_pid(conf);
    if (up)
        rc = ask_to_forget(conf, names, n, err);
    else if (rc == WF_OK)
        rc = forget_here(conf, conf->state_dir, names, n, err);
    if (rc == WF_OK)
        rc = forget_local(conf, names, n, err);
    if (rc == WF_OK && up)
        await_removal(conf, word, arena);
    if (rc == WF_OK)
        print_removed(word, n);
    wf_arena_free(&arena);
    return rc;
}

static wf_status run(int argc, char *argv[], wf_err *err)
{
    const char *cluster = NULL;
    wf_cluster_conf *conf = NULL;
    wf_words words;
    const wf_flag flags[] = {{"cluster", 0, .value = &cluster}, {0}};
    wf_status rc;

    WF_TRY(wf_args(flags, argc, argv, 1, 1, &words, err));
    if (!wf_run_name_ok(words.word[0]))
        return wf_fail(err, WF_USAGE, "name it like digits, or digits#2 for its second run",
                       "\"%.64s\" is no job's name", words.word[0]);
    WF_TRY(wf_place_cluster(cluster, false, &conf, err));
    rc = forget(conf, words.word[0], err);
    wf_cluster_free(&conf);
    return rc;
}

const wf_cmd wf_cmd_rm = {
    .name = "rm",
    .help = "remove a job's runs with their checkpoints",
    .usage =
        "weft rm JOB|JOB#N [--cluster FILE]\n\n"
        "Removes all runs of a job, or the one of that number: checkpoints, history and events.\n"
        "Exported models stay. A run that is being trained must be stopped first.\n\n"
        "  weft rm digits#2\n",
    .ends = true,
    .run = run,
};
