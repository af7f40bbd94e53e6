/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/train.c */
#include "cmd/cli/cli.h"
#include "cmd/cli/follow.h"
#include "cmd/cli/place.h"
#include "cmd/cli/submit.h"
#include "cmd/cli/super.h"
#include "cmd/cli/term.h"
#include "common/base/size.h"
#include "common/base/subnormal.h"
#include "common/kernels/pool.h"
#include "runtime/fit.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Down: longer than the supervisor gives its tasks before it kills them. */
enum { READY_MS = 20000, DOWN_MS = 20000 };

static uint32_t count_threads(void)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);

    return n < 1 ? 1 : (uint32_t)WF_MIN(n, (long)WF_POOL_MAX);
}

/* In this process, beside no cluster; a copy of the job is kept where other commands look for it.
 */
static wf_status run_local(const wf_cluster_conf *conf, const wf_submission *s, bool resume,
                           wf_err *err)
{
    char again[PATH_MAX + 64];
    const wf_fit_conf how = {.state_dir = conf->state_dir,
                             .checkpoint_dir = conf->checkpoint_dir,
                             .threads = count_threads(),
                             .loss_log = getenv("WEFT_LOSS_LOG")};
    wf_fit *f = NULL;
    wf_ask_way way;
    wf_ask *a = NULL;
    wf_status rc;

    wf_follow_catch();
    snprintf(again, sizeof again, "weft train --local %.*s --resume", PATH_MAX, s->path);
    wf_flush_subnormals(); /* as every worker does */
    rc = wf_fit_open(&how, &f, err);
    if (rc == WF_OK) {
        way = (wf_ask_way){.arg = f, .dial = wf_fit_dial, .wait = wf_fit_wait, .here = true};
        rc = wf_ask_open_by(wf_fit_cluster(f), &way, &a, err);
    }
    if (rc == WF_OK)
        rc = wf_submit(conf, a, s, resume, err);
    if (rc == WF_OK)
        rc = wf_follow(wf_fit_cluster(f), a, s->job->name, again, err);
    wf_ask_close(&a);
    wf_fit_close(&f);
    return rc;
}

static wf_status train(const wf_cluster_conf *conf, const wf_submission *s, bool resume,
                       wf_err *err)
{
    char again[128];

    wf_ask *a = NULL;
    wf_status rc;

    WF_TRY(wf_ask_open(conf, &a, err));
    rc = wf_submit(conf, a, s, resume, err);
    if (rc == WF_OK)
        rc = wf_follow(conf, a, s->job->name, wf_recover_command(s->job->name, again, sizeof again),
                       err);
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
    bool resume = false, local = false;
    wf_words words;
    const wf_flag flags[] = {{"resume", 0, .set = &resume},
                             {"local", 0, .set = &local},
                             {"cluster", 0, .value = &cluster},
                             {0}};
    wf_status rc;

    WF_TRY(wf_args(flags, argc, argv, 1, 1, &words, err));
    /* Errors in the job are found before a cluster is started for it. */
    rc = wf_submission_open(words.word[0], &s, err);
    if (rc == WF_OK)
        rc = wf_place_cluster(cluster, true, &conf, err);
    if (rc == WF_OK)
        rc = local ? run_local(conf, &s, resume, err) : run_on(conf, &s, resume, err);
    wf_submission_close(&s);
    wf_cluster_free(&conf);
    return rc;
}

const wf_cmd wf_cmd_train = {
    .name = "train",
    .help = "train a job and follow it to its end",
    .usage =
        "weft train JOB.yaml [--resume] [--local] [--cluster FILE]\n\n"
        "Submits the job, shows its progress, and exits with its result. When no cluster is\n"
        "up, one is started for the job (./cluster.yaml, else 2 ps and 2 workers on this\n"
        "host) and taken down after it. Ctrl-C stops the job with a checkpoint.\n"
        "  --resume   the job exists: go on with it from its newest checkpoint\n"
        "  --local    train in this process, without a cluster; whatever \"strategy\" the job\n"
        "             names, it is local: checkpoints are those of the cluster of this folder\n\n"
        "  weft train examples/digits.yaml\n",
    .run = run,
};
