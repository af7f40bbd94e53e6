/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/down.c */
#include "cmd/cli/cli.h"
#include "cmd/cli/place.h"
#include "cmd/cli/super.h"
#include "cmd/cli/term.h"

#include <stdio.h>

/* Longer than the supervisor gives its tasks before it kills them. */
static const int64_t DOWN_MS = 20000;

static wf_status run(int argc, char *argv[], wf_err *err)
{
    const char *cluster = NULL;
    wf_cluster_conf *conf = NULL;
    wf_words words;
    const wf_flag flags[] = {{"cluster", 0, .value = &cluster}, {0}};
    wf_status rc;

    WF_TRY(wf_args(flags, argc, argv, 0, 1, &words, err));
    WF_TRY(wf_place_cluster(words.n ? words.word[0] : cluster, false, &conf, err));
    rc = wf_super_stop(conf, DOWN_MS, err);
    if (rc == WF_OK)
        wf_term_print(stdout, "cluster %s is down\n", conf->name);
    wf_cluster_free(&conf);
    return rc;
}

const wf_cmd wf_cmd_down = {
    .name = "down",
    .help = "end the cluster",
    .usage =
        "weft down [cluster.yaml]\n\n"
        "Ends the supervisor of this host and with it every task: first asking, and after 10 s\n"
        "by force. Checkpoints stay; \"weft recover JOB\" goes on from them.\n\n"
        "  weft down\n",
    .run = run,
    .ends = true,
};
