/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/follow.c */
#include "cmd/cli/cli.h"
#include "cmd/cli/following.h"
#include "cmd/cli/place.h"
#include "cmd/cli/super.h"
#include "cmd/cli/visit.h"

static wf_status follow(const wf_cluster_conf *conf, const char *job, wf_err *err)
{
    wf_ask *a = NULL;
    char again[128];
    wf_status rc;

    WF_TRY(wf_super_check_up(conf, err));
    WF_TRY(wf_ask_open(conf, &a, err));
    rc = wf_follow(conf, a, job, wf_recover_command(job, again, sizeof again), err);
    wf_ask_close(&a);
    return rc;
}

static wf_status run(int argc, char *argv[], wf_err *err)
{
    const char *cluster = NULL;
    wf_cluster_conf *conf = NULL;
    wf_visit visit;
    wf_words words;
    const wf_flag flags[] = {{"cluster", 0, .value = &cluster}, {0}};
    wf_status rc;

    WF_TRY(wf_args(flags, argc, argv, 1, 1, &words, err));
    if (!wf_run_name_ok(words.word[0]))
        return wf_fail(err, WF_USAGE, "name it like digits, or digits#2 for its second run",
                       "\"%.64s\" is no job's name", words.word[0]);
    WF_TRY(wf_place_cluster(cluster, false, &conf, err));
    visit = wf_visit_begin(conf);
    rc = follow(conf, words.word[0], err);
    wf_visit_end(&visit, conf);
    wf_cluster_free(&conf);
    return rc;
}

const wf_cmd wf_cmd_follow = {
    .name = "follow",
    .help = "show the progress of a submitted job until it ends",
    .usage =
        "weft follow JOB|JOB#N [--cluster FILE]\n"
        "\n"
        "Shows the progress of a job (its newest run, or the given one) as \"weft train\" does, "
        "and\n"
        "exits with its result. Ctrl-C stops the job with a checkpoint; a second Ctrl-C only ends\n"
        "this command.\n"
        "\n"
        "  weft follow digits\n",
    .run = run,
};
