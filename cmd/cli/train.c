/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/train.c */
#include "cmd/cli/cli.h"
#include "cmd/cli/follow.h"
#include "cmd/cli/place.h"
#include "cmd/cli/submit.h"
#include "cmd/cli/super.h"

#include <stdio.h>

enum { READY_MS = 20000, DOWN_MS = 10000 };

static wf_status train(const wf_cluster_conf *conf, const char *path, bool resume, wf_err *err)
{
    wf_ask *a = NULL;
    char name[65];
    wf_status rc;

    WF_TRY(wf_ask_open(conf, &a, err));
    rc = wf_submit(conf, a, path, resume, name, err);
    if (rc == WF_OK)
        rc = wf_follow(conf, a, name, err);
    wf_ask_close(&a);
    return rc;
}

/* Errors in the job file are found before a cluster is started for it. */
static wf_status check(const char *path, wf_err *err)
{
    wf_job_conf *job = NULL;

    WF_TRY(wf_job_load(path, &job, err));
    wf_job_free(&job);
    return WF_OK;
}

static wf_status run_on(const wf_cluster_conf *conf, const char *path, bool resume, wf_err *err)
{
    bool mine = wf_super_pid(conf) == 0;
    wf_err ignored;
    wf_status rc;

    if (mine) {
        WF_TRY(wf_super_start(conf, err));
        fprintf(stderr, "cluster %s: 1 master, %u ps, %u workers   logs %s/logs\n", conf->name,
                conf->n_ps, conf->n_workers, conf->state_dir);
        WF_TRY(wf_super_wait_ready(conf, READY_MS, err));
    }
    rc = train(conf, path, resume, err);
    if (mine && wf_super_stop(conf, DOWN_MS, &ignored) != WF_OK)
        fprintf(stderr, "warning: %s\n", ignored.what);
    return rc;
}

static wf_status run(int argc, char *argv[], wf_err *err)
{
    const char *cluster = NULL;
    wf_cluster_conf *conf = NULL;
    bool resume = false;
    wf_words words;
    const wf_flag flags[] = {{"resume", 0, .set = &resume}, {"cluster", 0, .value = &cluster}, {0}};
    wf_status rc;

    WF_TRY(wf_args(flags, argc, argv, 1, 1, &words, err));
    WF_TRY(check(words.word[0], err));
    WF_TRY(wf_place_cluster(cluster, true, &conf, err));
    rc = run_on(conf, words.word[0], resume, err);
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
