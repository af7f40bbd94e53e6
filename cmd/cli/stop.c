/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/stop.c */
#include "cmd/cli/cli.h"
#include "cmd/cli/following.h"
#include "cmd/cli/place.h"
#include "cmd/cli/super.h"
#include "cmd/cli/visit.h"

#include <stdio.h>

static wf_status stop(const wf_cluster_conf *conf, const char *job, wf_err *err)
{
    enum { ANSWER_MS = 10000 };
    Weft__Ask ask = WEFT__ASK__INIT;
    wf_ask *a = NULL;
    char again[128];
    wf_status rc;

    WF_TRY(wf_super_check_up(conf, err));
    WF_TRY(wf_ask_open(conf, &a, err));
    ask.command = "stop";
    ask.job = (char *)job;
    rc = wf_ask_send(a, &ask, ANSWER_MS, NULL, err);
    if (rc == WF_OK)
        rc = wf_follow(conf, a, job, wf_recover_command(job, again, sizeof again), err);
    wf_ask_close(&a);
    return rc == WF_STOPPED ? WF_OK : rc; /* that is what was asked for */
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
    WF_TRY(wf_place_cluster(cluster, false, &conf, err));
    visit = wf_visit_begin(conf);
    rc = stop(conf, words.word[0], err);
    wf_visit_end(&visit, conf);
    wf_cluster_free(&conf);
    return rc;
}

const wf_cmd wf_cmd_stop = {
    .name = "stop",
    .help = "stop a job, with a checkpoint",
    .usage =
        "weft stop JOB [--cluster FILE]\n"
        "\n"
        "Stops a job after the current step, writes a checkpoint, and returns when it is on disk.\n"
        "\"weft recover JOB\" continues from there.\n"
        "\n"
        "  weft stop digits\n",
    .run = run,
    .ends = true,
};
