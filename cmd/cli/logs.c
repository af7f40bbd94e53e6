/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/logs.c */
#include "cmd/cli/cli.h"
#include "cmd/cli/log_files.h"
#include "cmd/cli/place.h"
#include "cmd/cli/term.h"

#include <stdio.h>
#include <string.h>

typedef struct request {
    const wf_cluster_conf *conf;
    const char *word; /* NULL: all tasks */
    unsigned long long lines;
    bool all, follow;
} request;

/* Line by line with the task in front, or under a headline. */
static void print_text(const wf_log_file *log, const char *text, bool several, bool follow)
{
    if (several && !follow)
        wf_term_print(stdout, "== %s\n", log->task);
    for (; several && follow && *text; text += strcspn(text, "\n"), text += *text != 0)
        wf_term_print(stdout, "%-10s %.*s\n", log->task, (int)strcspn(text, "\n"), text);
    wf_term_print(stdout, "%s", text);
}

/* Of several tasks some may run on other hosts, or have written nothing yet. */
static wf_status print_logs(const request *r, wf_log_file logs[], size_t n, wf_err *err)
{
    size_t found = 0;

    for (size_t i = 0; i < n; i++) {
        wf_bytes text = {0};
        wf_status rc = wf_log_tail(r->conf, &logs[i], r->lines, r->all, &text, err);

        found += rc != WF_NOTFOUND;
        if (rc == WF_OK)
            print_text(&logs[i], wf_bytes_str(&text), n > 1, r->follow);
        wf_bytes_close(&text);
        if (rc != WF_OK && rc != WF_NOTFOUND)
            return rc;
    }
    if (found || r->follow)
        return WF_OK;
    return wf_fail(err, WF_NOTFOUND, "logs are on the host of their task, once it was started",
                   "there is no log of %s in %s/logs", r->word ? r->word : "any task",
                   r->conf->state_dir);
}

static wf_status run(int argc, char *argv[], wf_err *err)
{
    const char *cluster = NULL, *count = "20";
    wf_cluster_conf *conf = NULL;
    wf_log_file *logs = NULL;
    wf_arena *arena = NULL;
    request r = {0};
    wf_words words;
    size_t n = 0;
    const wf_flag flags[] = {{"lines", 'n', .value = &count},
                             {"follow", 'f', .set = &r.follow},
                             {"all", 'a', .set = &r.all},
                             {"cluster", 0, .value = &cluster},
                             {0}};
    wf_status rc;

    WF_TRY(wf_args(flags, argc, argv, 0, 1, &words, err));
    WF_TRY(wf_arg_u64("--lines", count, 1, 1000000000, &r.lines, err));
    WF_TRY(wf_place_cluster(cluster, false, &conf, err));
    r.conf = conf;
    r.word = words.n ? words.word[0] : NULL;
    arena = wf_arena_new(0);
    rc = arena ? wf_log_files(conf, r.word, arena, &logs, &n, err) : wf_fail_nomem(err, 0);
    if (rc == WF_OK)
        rc = print_logs(&r, logs, n, err);
    if (rc == WF_OK && r.follow)
        rc = wf_log_follow(logs, n, err);
    wf_arena_free(&arena);
    wf_cluster_free(&conf);
    return rc;
}

const wf_cmd wf_cmd_logs = {
    .name = "logs",
    .help = "the last lines that tasks wrote, and those to come",
    .usage =
        "weft logs [TASK] [-f] [-n LINES] [--all] [--cluster FILE]\n"
        "\n"
        "Prints the last 20 lines of a task's log, or of all logs. TASK is a task like worker/1, "
        "a\n"
        "role (ps: all of them), master or supervisor. Lines from before the last start of the\n"
        "cluster are left out.\n"
        "  --follow, -f       also print new lines, until Ctrl-C; with several tasks each line\n"
        "                     begins with its task\n"
        "  --lines, -n LINES  the number of lines of each log\n"
        "  --all, -a          also lines of earlier starts of the cluster\n"
        "\n"
        "  weft logs worker/1 -n 100\n"
        "  weft logs ps -f\n",
    .run = run,
};
