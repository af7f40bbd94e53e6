/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/train.c */
#include "cmd/cli/cli.h"
#include "cmd/cli/follow.h"
#include "cmd/cli/place.h"
#include "cmd/cli/submit.h"
#include "cmd/cli/super.h"
#include "cmd/cli/term.h"

#include <stdio.h>

/* Down: longer than the supervisor gives its tasks before it kills them. */
enum { READY_MS = 20000, DOWN_MS = 20000 };

static wf_status train(const wf_cluster_conf *conf, const wf_submission *s, bool resume,
                       wf_err *err)
{
    wf_ask *a = NULL;
    wf_status rc;

    WF_TRY(wf_ask_open(conf, &a, err));
    rc = wf_submit(conf, a, s, resume, err);
    if (rc == WF_OK)
        rc = wf_follow(conf, a, s->job->name, err);
    wf_ask_close(&a);
    return rc;
}

static wf_status run_on(const wf_cluster_conf *conf, const wf_submission *s, bool resume,
                        wf_err *err)
{
    bool mine = wf_super_pid(conf) == 0;
    wf_err ignored;
    wf_status rc = WF_OK;

    if (mine) {
        wf_follow_catch(); /* or the cluster would stay up, with nobody to end it */
        WF_TRY(wf_super_start(conf, err));
        wf_term_print(stderr, "cluster %s: 1 master, %u ps, %u workers   logs %s/logs\n",
                      conf->name, conf->n_ps, conf->n_workers, conf->state_dir);
        rc = wf_super_wait_ready(conf, READY_MS, err);
    }
    if (rc == WF_OK)
        rc = train(conf, s, resume, err);
    if (mine && wf_super_stop(conf, DOWN_MS, &ignored) != WF_OK)
        wf_term_print(stderr, "warning: %s\n", ignored.what);
    return rc;
}

static wf_status run(int argc, char *argv[], wf_err *err)
{
    const char *cluster = NULL;
    wf_cluster_conf *conf = NULL;
    wf_submission s = {0};
    bool resume = false;
    wf_words words;
    const wf_flag flags[] = {{"resume", 0, .set = &resume}, {"cluster", 0, .value = &cluster}, {0}};
    wf_status rc;

    WF_TRY(wf_args(flags, argc, argv, 1, 1, &words, err));
    /* Errors in the job are found before a cluster is started for it. */
    rc = wf_submission_open(words.word[0], &s, err);
    if (rc == WF_OK)
        rc = wf_place_cluster(cluster, true, &conf, err);
    if (rc == WF_OK)
        rc = run_on(conf, &s, resume, err);
    wf_submission_close(&s);
    wf_cluster_free(&conf);
    return rc;
}

const wf_cmd wf_cmd_train = {
    .name = "train",
    .help = "train a job and follow it to its end",
    .usage = "weft train JOB.yaml [--resume] [--cluster FILE]\n\n"
             "Submits the job, shows its progress, and exits with its result. When no cluster is\n"
             "up, one is started for the job (./cluster.yaml, else 2 ps and 2 workers on this\n"
             "host) and taken down after it. Ctrl-C stops the job with a checkpoint.\n"
             "  --resume   the job exists: go on with it from its newest checkpoint\n\n"
             "  weft train examples/digits.yaml\n",
    .run = run,
};
