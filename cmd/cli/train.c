/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/train.c */
#include "cmd/cli/cli.h"
#include "cmd/cli/following.h"
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
static wf_status run_local(const wf_cluster_conf *conf, wf_submission *s, wf_err *err)
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

    s->options.prune = wf_super_pid(conf) == 0; /* a run of theirs may be among the old ones */
    wf_follow_catch();
    snprintf(again, sizeof again, "weft train --local %.*s --resume", PATH_MAX, s->path);
    wf_flush_subnormals(); /* as every worker does */
    rc = wf_fit_open(&how, &f, err);
    if (rc == WF_OK) {
        way = (wf_ask_way){.arg = f, .dial = wf_fit_dial, .wait = wf_fit_wait, .here = true};
        rc = wf_ask_open_by(wf_fit_cluster(f), &way, &a, err);
    }
    if (rc == WF_OK)
        rc = wf_submit(conf, a, s, err);
    if (rc == WF_OK)
        rc = wf_follow(wf_fit_cluster(f), a, s->run, again, err);
    wf_ask_close(&a);
    wf_fit_close(&f);
    return rc;
}

static wf_status train(const wf_cluster_conf *conf, wf_submission *s, wf_err *err)
{
    char again[128];
    wf_ask *a = NULL;
    wf_status rc;

    WF_TRY(wf_ask_open(conf, &a, err));
    rc = wf_submit(conf, a, s, err);
    if (rc == WF_OK)
        rc = wf_follow(conf, a, s->run, wf_recover_command(s->run, again, sizeof again), err);
    wf_ask_close(&a);
    return rc;
}

static wf_status run_on(const wf_cluster_conf *conf, wf_submission *s, wf_err *err)
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
        rc = train(conf, s, err);
    if (mine && wf_super_stop(conf, DOWN_MS, &ignored) != WF_OK)
        wf_term_print(stderr, "warning: %s\n", ignored.what);
    return rc;
}

static void print_facts(const wf_submission *s)
{
    const wf_job_facts *f = &s->facts;
    char parameters[32], records[32];

    wf_term_print(
        stdout, "%s: job %s is right: %s parameters in %lu variables, %s records", s->path,
        s->job->name, wf_count_text(f->parameters, parameters, sizeof parameters),
        (unsigned long)f->variables, wf_count_text(f->train_records, records, sizeof records));
    if (f->eval_records)
        wf_term_print(stdout, ", %s for evaluation",
                      wf_count_text(f->eval_records, records, sizeof records));
    wf_term_print(stdout, "\n");
}

static wf_status run(int argc, char *argv[], wf_err *err)
{
    wf_submit_options o = {.prune = true};
    const char *cluster = NULL;
    wf_cluster_conf *conf = NULL;
    wf_submission s = {0};
    bool local = false, check = false;
    wf_words words;
    const wf_flag flags[] = {{"resume", 0, .set = &o.resume},
                             {"local", 0, .set = &local},
                             {"check", 0, .set = &check},
                             {"name", 0, .value = &o.name},
                             {"set", 0, .words = &o.set},
                             {"cluster", 0, .value = &cluster},
                             {0}};
    wf_status rc;

    WF_TRY(wf_args(flags, argc, argv, 1, 1, &words, err));
    /* Errors in the job are found before a cluster is started for it. */
    rc = wf_submission_open(words.word[0], &o, &s, err);
    if (rc == WF_OK && check)
        print_facts(&s);
    if (rc == WF_OK && !check)
        rc = wf_place_cluster(cluster, true, &conf, err);
    if (rc == WF_OK && !check)
        rc = wf_submission_check_resume(conf, &s, err);
    if (rc == WF_OK && !check)
        rc = local ? run_local(conf, &s, err) : run_on(conf, &s, err);
    wf_submission_close(&s);
    wf_cluster_free(&conf);
    return rc;
}

const wf_cmd wf_cmd_train = {
    .name = "train",
    .help = "train a job and follow it to its end",
    .usage =
        "weft train JOB.yaml [--resume] [--local] [--check] [--name NAME] [--set KEY=VALUE ...]\n\n"
        "Checks the job and its data, submits it as a new run, shows its progress, and exits with\n"
        "its result. When no cluster is up, one is started for the job (./cluster.yaml, else 2 ps\n"
        "and 2 workers on this host) and taken down after it. Ctrl-C stops the job with a\n"
        "checkpoint.\n"
        "  --resume          go on with the job's newest run from its newest checkpoint\n"
        "  --local           train in this process, without a cluster; checkpoints are kept where\n"
        "                    the cluster of this folder keeps them\n"
        "  --check           check the job and its data, and train nothing\n"
        "  --name NAME       the job's name, in place of the file's\n"
        "  --set KEY=VALUE   a number or word in place of the file's: seed, batch,\n"
        "                    optimizer.OPTION, checkpoint.keep ...; may be given again\n"
        "  --cluster FILE    the cluster; else ./cluster.yaml, else the local one\n\n"
        "  weft train examples/digits.yaml\n"
        "  weft train examples/digits.yaml --set optimizer.learning_rate=0.01\n",
    .run = run,
};
