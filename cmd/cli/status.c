/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/status.c */
#include "cmd/cli/ask.h"
#include "cmd/cli/cli.h"
#include "cmd/cli/contained.h"
#include "cmd/cli/following.h"
#include "cmd/cli/lost.h"
#include "cmd/cli/picture.h"
#include "cmd/cli/place.h"
#include "cmd/cli/super.h"
#include "cmd/cli/term.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ANSWER_MS = 3000, REDRAW_MS = 1000, PRINT_MS = 10000 };

typedef struct request {
    const wf_cluster_conf *conf;
    const char *job; /* NULL: all */
    bool json, all, watch, placement;
} request;

/* ---- the picture ---- */

/* `job`: of a command about one; NULL: none. */
static wf_status ask(const wf_cluster_conf *conf, const char *command, const char *job,
                     json_t **picture, wf_err *err)
{
    Weft__Ask ask = WEFT__ASK__INIT;
    wf_ask *a = NULL;
    wf_status rc;

    ask.command = (char *)command;
    if (job)
        ask.job = (char *)job;
    WF_TRY(wf_ask_open(conf, &a, err));
    wf_ask_until(a, wf_follow_interrupted);
    rc = wf_ask_send(a, &ask, ANSWER_MS, picture, err);
    wf_ask_close(&a);
    return rc;
}

/* What the master tells; where there is none, what runs have left. */
static wf_status look(const request *r, json_t **picture, wf_err *err)
{
    const wf_cluster_conf *conf = r->conf;
    wf_status rc = wf_super_check_up(conf, err);
    bool up = rc == WF_OK;

    if (rc == WF_OK)
        rc = ask(conf, "status", NULL, picture, err);
    else if (rc == WF_NOTFOUND)
        rc = wf_past_picture(conf, picture, err);
    if (rc != WF_OK)
        return rc;
    json_object_set_new(*picture, "up", json_boolean(up));
    if (up)
        rc = wf_past_complete(conf, *picture, err);
    if (rc == WF_OK && up && !r->job)
        rc = wf_contained_add(conf, r->all || r->json, *picture, err);
    return rc;
}

/* ---- printed ---- */

static wf_status no_such_job(const char *job, wf_err *err)
{
    return wf_fail(err, WF_NOTFOUND, "see the names with: weft status", "there is no job named %s",
                   job);
}

/* A queued job waits for the one that is under way. */
static void name_predecessor(const json_t *picture, json_t *job)
{
    json_t *other;
    size_t i;

    if (strcmp(wf_text_of(job, "state"), "queued") != 0)
        return;
    json_array_foreach(json_object_get(picture, "jobs"), i, other)
    {
        if (other == job || wf_ask_is_over(other) ||
            strcmp(wf_text_of(other, "state"), "queued") == 0)
            continue;
        json_object_set_new(job, "reason",
                            json_sprintf("waits for job %s", wf_text_of(other, "name")));
        return;
    }
}

static wf_status print_text(FILE *f, const request *r, json_t *picture, wf_err *err)
{
    json_t *job = r->job ? wf_ask_job(picture, r->job) : NULL;
    bool up = json_is_true(json_object_get(picture, "up"));

    if (r->job && !job)
        return no_such_job(r->job, err);
    if (up && !job) {
        WF_TRY(wf_picture_tasks(f, picture, err));
        fprintf(f, json_array_size(json_object_get(picture, "jobs")) ? "\n" : "");
    }
    if (job) {
        name_predecessor(picture, job);
        WF_TRY(wf_picture_job(f, r->conf, job, err));
    } else {
        WF_TRY(wf_picture_jobs(f, picture, r->all, err));
        WF_TRY(wf_picture_contained(f, picture, r->all, err));
    }
    if (!up)
        wf_term_print(f,
                      "no cluster is up: nobody listens at %s; start it with: weft up, or "
                      "weft train\n",
                      r->conf->master.address);
    return WF_OK;
}

static wf_status print_json(const request *r, json_t *picture, wf_err *err)
{
    json_t *what = r->job ? wf_ask_job(picture, r->job) : picture;

    if (!what)
        return no_such_job(r->job, err);
    json_dumpf(what, stdout, JSON_INDENT(2) | JSON_ENSURE_ASCII);
    printf("\n");
    return WF_OK;
}

static wf_status print_placement(FILE *f, const request *r, wf_err *err)
{
    json_t *picture = NULL;
    wf_status rc = wf_super_check_up(r->conf, err);

    if (rc == WF_OK)
        rc = ask(r->conf, "placement", r->job, &picture, err);
    if (rc == WF_OK && r->json) {
        json_dumpf(picture, f, JSON_INDENT(2) | JSON_ENSURE_ASCII);
        fprintf(f, "\n");
    } else if (rc == WF_OK) {
        rc = wf_picture_placement(f, picture, err);
    }
    json_decref(picture);
    return rc;
}

static wf_status print_once(FILE *f, const request *r, wf_err *err)
{
    json_t *picture = NULL;
    wf_status rc;

    if (r->placement)
        return print_placement(f, r, err);
    rc = look(r, &picture, err);

    if (rc == WF_OK)
        rc = r->json ? print_json(r, picture, err) : print_text(f, r, picture, err);
    json_decref(picture);
    return rc;
}

/* ---- again and again ---- */

/* What came of the last look, as text: *text is the caller's. A master that is away may come back.
 */
static wf_status draw(const request *r, char **text, wf_err *err)
{
    size_t size = 0;
    FILE *f = open_memstream(text, &size);
    wf_err why;
    wf_status rc;

    if (!f)
        return wf_fail_nomem(err, 0);
    rc = print_once(f, r, &why);
    if (rc == WF_TIMEOUT || rc == WF_IO)
        wf_term_print(f, "%s%s%s\n", why.what, why.hint[0] ? "; " : "", why.hint);
    else if (rc != WF_OK)
        *err = why;
    if (fclose(f) != 0)
        return wf_fail_nomem(err, 0);
    return rc == WF_TIMEOUT || rc == WF_IO ? WF_OK : rc;
}

/* Over what was there, as far as the terminal has room: no line is broken. */
static void show(const char *text)
{
    wf_term term = wf_term_of(stdout);

    printf("\033[H");
    for (int row = 1; *text && row < term.rows; row++) {
        size_t n = strcspn(text, "\n");

        printf("%.*s\033[K\n", (int)wf_text_fits(text, n, (size_t)term.columns), text);
        text += n + (text[n] != 0);
    }
    printf("\033[J");
    fflush(stdout);
}

static void on_resize(int number)
{
    (void)number; /* the wait ends, and the picture is drawn for the new width */
}

static wf_status watch(const request *r, wf_err *err)
{
    struct sigaction resize = {.sa_handler = on_resize};
    bool tty = wf_term_of(stdout).tty;
    wf_status rc = WF_OK;

    wf_follow_catch();
    sigaction(SIGWINCH, &resize, NULL);
    if (tty)
        printf("\033[2J");
    while (rc == WF_OK && !wf_follow_interrupted()) {
        char *text = NULL;

        rc = draw(r, &text, err);
        if (rc == WF_OK && tty)
            show(text);
        else if (rc == WF_OK)
            printf("%s\n", text);
        free(text);
        if (fflush(stdout) != 0)
            return wf_fail_errno(err, errno, NULL, "cannot write the picture");
        if (rc == WF_OK && !wf_follow_interrupted())
            poll(NULL, 0, tty ? REDRAW_MS : PRINT_MS);
    }
    return wf_follow_interrupted() ? WF_OK : rc;
}

/* Another folder's cluster has the address that this folder's would have. */
static void warn_of_other(const wf_cluster_conf *conf)
{
    char file[PATH_MAX];

    if (!wf_super_pid(conf) && wf_lost_owner(conf->master.address, file) &&
        strcmp(file, conf->path) != 0)
        wf_term_print(stderr,
                      "warning: the cluster of this folder is not up; this is that of %s, which "
                      "has the same address %s\n",
                      file, conf->master.address);
}

static wf_status run(int argc, char *argv[], wf_err *err)
{
    const char *cluster = NULL, *named = NULL;
    wf_cluster_conf *conf = NULL;
    request r = {0};
    wf_words words;
    const wf_flag flags[] = {{"all", 'a', .set = &r.all},
                             {"json", 0, .set = &r.json},
                             {"watch", 'w', .set = &r.watch},
                             {"job", 0, .value = &named},
                             {"placement", 0, .set = &r.placement},
                             {"cluster", 0, .value = &cluster},
                             {0}};
    wf_status rc;

    WF_TRY(wf_args(flags, argc, argv, 0, 1, &words, err));
    if (named && words.n)
        return wf_fail(err, WF_USAGE, "leave one of them out",
                       "two jobs are named, %.64s and %.64s", words.word[0], named);
    if (r.json && r.watch)
        return wf_fail(err, WF_USAGE, "ask again and again with: weft status --json",
                       "--watch is for people, and --json for programs");
    r.job = words.n ? words.word[0] : named;
    WF_TRY(wf_place_cluster(cluster, false, &conf, err));
    r.conf = conf;
    if (!r.watch)
        warn_of_other(conf);
    rc = r.watch ? watch(&r, err) : print_once(stdout, &r, err);
    wf_cluster_free(&conf);
    return rc;
}

const wf_cmd wf_cmd_status = {
    .name = "status",
    .help = "tasks and jobs as they are now, or as they ended",
    .usage =
        "weft status [JOB] [--watch] [--all] [--placement] [--json] [--cluster FILE]\n"
        "\n"
        "Without JOB: the tasks with their state, process, rate and, after a restart, the reason;\n"
        "and the jobs, running ones first, with the ten that ended last; and variables of "
        "sessions,\n"
        "with those sessions that used their container in the last ten minutes.\n"
        "With JOB (the job's newest run, or a run like digits#2): its state, rate, learning rate,\n"
        "checkpoints, last epochs, and what failures have cost.\n"
        "If no cluster is up, the jobs are read from their files.\n"
        "  --watch, -w  repeat every second until Ctrl-C (every ten seconds into a pipe)\n"
        "  --all, -a    show all jobs that have ended, and all variables of sessions\n"
        "  --job JOB    the same as JOB\n"
        "  --placement  what each ps holds of the running job, what is pulled from it and pushed "
        "to\n"
        "               it, its share against the mean (HOT: too much), and where variables are\n"
        "  --json       for programs\n"
        "\n"
        "  weft status digits\n"
        "  weft status --watch\n",
    .run = run,
};
