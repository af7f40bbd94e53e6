/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/up.c */
#include "cmd/cli/cli.h"
#include "cmd/cli/place.h"
#include "cmd/cli/super.h"
#include "cmd/cli/term.h"
#include "cmd/cli/visit.h"

#include <stdio.h>

static wf_status start(const wf_cluster_conf *conf, int64_t timeout_ms, wf_err *err)
{
    WF_TRY(wf_super_start(conf, err));
    wf_visit_keep(conf);
    WF_TRY(wf_super_wait_ready(conf, timeout_ms, err));
    wf_term_print(
        stdout,
        "cluster %s is up: 1 master, %u ps, %u workers   logs %s/logs   \"weft down\" ends it\n",
        conf->name, conf->n_ps, conf->n_workers, conf->state_dir);
    return WF_OK;
}

static wf_status run(int argc, char *argv[], wf_err *err)
{
    const char *cluster = NULL, *timeout = "20";
    wf_cluster_conf *conf = NULL;
    unsigned long long seconds;
    bool foreground = false, if_down = false;
    wf_words words;
    const wf_flag flags[] = {{"foreground", 'f', .set = &foreground},
                             {"if-down", 0, .set = &if_down},
                             {"timeout", 0, .value = &timeout},
                             {"cluster", 0, .value = &cluster},
                             {0}};
    wf_status rc;

    WF_TRY(wf_args(flags, argc, argv, 0, 1, &words, err));
    WF_TRY(wf_arg_u64("--timeout", timeout, 1, 3600, &seconds, err));
    WF_TRY(wf_place_cluster(words.n ? words.word[0] : cluster, true, &conf, err));
    if (conf->http)
        wf_term_print(stderr,
                      "warning: the page at %s is not built yet; \"weft status\" shows the same\n",
                      conf->http);
    if (if_down && wf_super_pid(conf))
        rc = wf_super_wait_ready(conf, (int64_t)seconds * 1000, err);
    else if (foreground)
        rc = wf_super_run(conf, -1, err);
    else
        rc = start(conf, (int64_t)seconds * 1000, err);
    wf_cluster_free(&conf);
    return rc;
}

const wf_cmd wf_cmd_up = {
    .name = "up",
    .help = "start the cluster, return when it is ready",
    .usage =
        "weft up [cluster.yaml] [--foreground] [--timeout SECONDS]\n"
        "\n"
        "Starts the tasks that cluster.yaml assigns to this host and returns when all are ready.\n"
        "A background supervisor restarts any that die. Without a file: ./cluster.yaml, otherwise\n"
        "a local cluster of 1 master, 2 ps and 2 workers in .weft.\n"
        "  -f, --foreground   stay in the foreground; Ctrl-C ends the cluster\n"
        "  --if-down          do nothing if the cluster is up already\n"
        "  --timeout SECONDS  how long to wait for the last task (20)\n"
        "\n"
        "The output of task ps/1 is in STATE_DIR/logs/ps-1.log.\n"
        "\n"
        "  weft up && weft train examples/digits.yaml && weft down\n",
    .run = run,
};
