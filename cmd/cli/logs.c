/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/logs.c */
#include "cmd/cli/cli.h"
#include "cmd/cli/place.h"
#include "cmd/cli/term.h"
#include "common/base/file.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "worker/1" and "worker-1" name the same file. */
static wf_status print_log(const wf_cluster_conf *conf, const char *task, unsigned long long lines,
                           wf_err *err)
{
    char path[PATH_MAX], name[64];
    wf_bytes text = {0};
    const char *from;

    snprintf(name, sizeof name, "%s", strcmp(task, "master") == 0 ? "master-0" : task);
    for (char *p = name; *p; p++)
        if (*p == '/')
            *p = '-';
    if (snprintf(path, sizeof path, "%s/logs/%s.log", conf->state_dir, name) >= (int)sizeof path)
        return wf_fail(err, WF_INVALID, NULL, "the path %s is too long", conf->state_dir);
    if (!wf_file_exists(path))
        return wf_fail(err, WF_NOTFOUND, "see the names with: weft status",
                       "there is no log of %s in %s/logs", task, conf->state_dir);
    WF_TRY(wf_file_read(path, (size_t)1 << 30, &text, err));
    from = wf_bytes_str(&text) + text.size;
    for (unsigned long long n = 0; from > wf_bytes_str(&text); from--)
        if (from[-1] == '\n' && n++ == lines)
            break;
    wf_term_print(stdout, "%s", from);
    wf_bytes_close(&text);
    return WF_OK;
}

static wf_status print_every(const wf_cluster_conf *conf, unsigned long long lines, wf_err *err)
{
    char name[32];

    printf("== master\n");
    WF_TRY(print_log(conf, "master", lines, err));
    for (uint32_t i = 0; i < conf->n_ps + conf->n_workers; i++) {
        snprintf(name, sizeof name, i < conf->n_ps ? "ps/%u" : "worker/%u",
                 i < conf->n_ps ? i : i - conf->n_ps);
        wf_term_print(stdout, "== %s\n", name);
        WF_TRY(print_log(conf, name, lines, err));
    }
    return WF_OK;
}

static wf_status run(int argc, char *argv[], wf_err *err)
{
    const char *cluster = NULL, *count = "20";
    wf_cluster_conf *conf = NULL;
    unsigned long long lines;
    wf_words words;
    const wf_flag flags[] = {
        {"lines", 'n', .value = &count}, {"cluster", 0, .value = &cluster}, {0}};
    wf_status rc;

    WF_TRY(wf_args(flags, argc, argv, 0, 1, &words, err));
    WF_TRY(wf_arg_u64("--lines", count, 1, 1000000000, &lines, err));
    WF_TRY(wf_place_cluster(cluster, false, &conf, err));
    rc = words.n ? print_log(conf, words.word[0], lines, err) : print_every(conf, lines, err);
    wf_cluster_free(&conf);
    return rc;
}

const wf_cmd wf_cmd_logs = {
    .name = "logs",
    .help = "the last lines that a task wrote",
    .usage = "weft logs [TASK] [-n LINES] [--cluster FILE]\n\n"
             "The end of a task's log (20 lines unless told), or of every task's.\n\n"
             "  weft logs worker/1 -n 100\n",
    .run = run,
};
