/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/train.c */
#include "cmd/cli/cli.h"
#include "cmd/cli/following.h"
#include "cmd/cli/library.h"
#include "cmd/cli/place.h"
#include "cmd/cli/submit.h"
#include "cmd/cli/super.h"
#include "cmd/cli/term.h"
#include "cmd/cli/visit.h"
#include "common/base/size.h"
#include "common/base/subnormal.h"
#include "common/compile/compile.h"
#include "common/kernels/pool.h"
#include "runtime/fit.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static uint32_t count_threads(void)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);

    return n < 1 ? 1 : (uint32_t)WF_MIN(n, (long)WF_POOL_MAX);
}

/* The devices of the stages of a model that is divided in this process. Where that cannot be, it
 * trains whole, and the user hears of it. */
static size_t stages_here(const wf_submission *s, const char *device,
                          const char *devices[WF_STAGES_MOST])
{
    size_t n = device ? 0 : wf_stages_devices(s->job, devices);
    char text[PATH_MAX + 256];

    if (!wf_job_is_divided(s->job) || n)
        return n;
    snprintf(
        text, sizeof text,
        "%s:%d: \"place\" has no effect: --local is one worker, which trains the whole model%s; "
        "for stages here let place name devices alone, like cpu:0 and cpu:1",
        s->path, s->job->place_line, device ? " on the one --device" : "");
    wf_library_warn(NULL, text);
    return 0;
}

/* The command that goes on with a run of this process. */
static wf_status compose_again(const wf_submission *s, const char *device, wf_bytes *out,
                               wf_err *err)
{
    wf_bytes_printf(out, "weft train --local %s --resume", s->path);
    if (device)
        wf_bytes_printf(out, " --device %s", device);
    if (s->options.name)
        wf_bytes_printf(out, " --name %s", s->options.name);
    for (size_t i = 0; i < s->options.set.n; i++)
        wf_bytes_printf(out, " --set %s", s->options.set.word[i]);
    return wf_bytes_check(out, err);
}

/* In this process, beside no cluster; a copy of the job is kept where other commands look for it.
 */
static wf_status run_local(const wf_cluster_conf *conf, wf_submission *s, const char *device,
                           wf_err *err)
{
    const char *devices[WF_STAGES_MOST];
    const wf_fit_conf how = {.state_dir = conf->state_dir,
                             .checkpoint_dir = conf->checkpoint_dir,
                             .threads = count_threads(),
                             .device = device,
                             .devices = devices,
                             .n_devices = stages_here(s, device, devices),
                             .loss_log = getenv("WEFT_LOSS_LOG")};
    wf_bytes again = {0};
    wf_fit *f = NULL;
    wf_ask_way way;
    wf_ask *a = NULL;
    wf_status rc = compose_again(s, device, &again, err);

    s->options.again = wf_bytes_str(&again);
    s->options.prune = wf_super_pid(conf) == 0; /* a run of theirs may be among the old ones */
    wf_follow_catch();
    wf_flush_subnormals(); /* as every worker does */
    if (rc == WF_OK)
        rc = wf_fit_open(&how, &f, err);
    if (rc == WF_OK) {
        way = (wf_ask_way){.arg = f, .dial = wf_fit_dial, .wait = wf_fit_wait, .here = true};
        rc = wf_ask_open_by(wf_fit_cluster(f), &way, &a, err);
    }
    if (rc == WF_OK)
        rc = wf_submit(conf, a, s, err);
    if (rc == WF_OK)
        rc = wf_follow(wf_fit_cluster(f), a, s->run, wf_bytes_str(&again), err);
    wf_ask_close(&a);
    wf_fit_close(&f);
    wf_bytes_close(&again);
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

static wf_status detach(const wf_cluster_conf *conf, wf_submission *s, wf_err *err)
{
    wf_ask *a = NULL;
    wf_status rc;

    WF_TRY(wf_ask_open(conf, &a, err));
    rc = wf_submit(conf, a, s, err);
    wf_ask_close(&a);
    if (rc == WF_OK)
        wf_term_print(stdout, "job %s is submitted   follow it with: weft follow %s\n", s->run,
                      s->job->name);
    return rc;
}

static wf_status run_on(const wf_cluster_conf *conf, wf_submission *s, bool detached, wf_err *err)
{
    wf_visit visit = wf_visit_begin(conf);
    wf_status rc;

    wf_follow_catch(); /* or the cluster would stay up, with nobody to end it */
    rc = wf_visit_start(&visit, conf, err);
    if (rc == WF_OK)
        rc = detached ? detach(conf, s, err) : train(conf, s, err);
    wf_visit_end(&visit, conf);
    return rc;
}

static void print_facts(const wf_submission *s)
{
    const wf_job_facts *f = &s->facts;
    char parameters[32], records[32];

    wf_term_print(
        stdout, "%s: job %s is valid: %s parameters in %lu variables, %s records%s", s->path,
        s->job->name, wf_count_text(f->parameters, parameters, sizeof parameters),
        (unsigned long)f->variables, wf_count_text(f->train_records, records, sizeof records),
        s->job->grows ? " so far" : "");
    if (f->eval_records)
        wf_term_print(stdout, ", %s for evaluation",
                      wf_count_text(f->eval_records, records, sizeof records));
    wf_term_print(stdout, "\n");
}

static wf_status run(int argc, char *argv[], wf_err *err)
{
    wf_submit_options o = {.prune = true};
    const char *cluster = NULL, *device = NULL;
    wf_cluster_conf *conf = NULL, *known = NULL;
    wf_submission s = {0};
    bool local = false, check = false, detached = false;
    wf_words words;
    const wf_flag flags[] = {{"resume", 0, .set = &o.resume},
                             {"local", 0, .set = &local},
                             {"check", 0, .set = &check},
                             {"detach", 'd', .set = &detached},
                             {"name", 0, .value = &o.name},
                             {"set", 0, .words = &o.set},
                             {"cluster", 0, .value = &cluster},
                             {"device", 0, .value = &device},
                             {0}};
    wf_status rc;

    WF_TRY(wf_args(flags, argc, argv, 1, 1, &words, err));
    if (local && detached)
        return wf_fail(err, WF_USAGE, "leave one of the two out",
                       "--detach leaves a job to a cluster, and --local trains without one");
    if (device && !local)
        return wf_fail(err, WF_USAGE, "name it under devices of a worker in cluster.yaml",
                       "--device is for --local");
    /* Errors in the job are found before a cluster is started for it. */
    o.workers = local ? 1 : wf_place_workers(cluster, &known);
    o.cluster = known;
    rc = wf_submission_open(words.word[0], &o, &s, err);
    if (rc == WF_OK && check)
        print_facts(&s);
    if (rc == WF_OK && !check)
        rc = wf_place_cluster(cluster, true, &conf, err);
    if (rc == WF_OK && !check)
        rc = wf_submission_check_resume(conf, &s, err);
    if (rc == WF_OK && !check)
        rc = local ? run_local(conf, &s, device, err) : run_on(conf, &s, detached, err);
    wf_submission_close(&s);
    wf_cluster_free(&known);
    wf_cluster_free(&conf);
    return rc;
}

const wf_cmd wf_cmd_train = {
    .name = "train",
    .help = "train a job, and show its progress until it ends",
    .usage =
        "weft train JOB.yaml [--resume] [--local] [--check] [--name NAME] [--set KEY=VALUE ...]\n"
        "\n"
        "Checks the job and its data, submits it as a new run, shows its progress, and exits with\n"
        "its result. When no cluster is up, one is started (./cluster.yaml, otherwise 2 ps and 2\n"
        "workers on this host); it ends with the last command that uses it. Ctrl-C, SIGTERM and a\n"
        "closed terminal stop the job with a checkpoint.\n"
        "  --resume          continue the job's newest run from its newest checkpoint\n"
        "  --local           train in this process, without a cluster; checkpoints are kept where\n"
        "                    the cluster of this folder keeps them; a job whose place names "
        "devices\n"
        "                    alone (cpu:0, cpu:1) has a stage on each\n"
        "  --device NAME     with --local: where to compute, like cuda:0 (default: cpu)\n"
        "  --check           check the job and its data, and train nothing\n"
        "  -d, --detach      return when the job is submitted; the cluster stays up\n"
        "  --name NAME       the job's name, instead of the one in the file\n"
        "  --set KEY=VALUE   a number or word, instead of the one in the file: seed, batch,\n"
        "                    optimizer.OPTION, checkpoint.keep ...; may be given several times\n"
        "  --cluster FILE    the cluster; otherwise ./cluster.yaml, or the local one\n"
        "\n"
        "  weft train examples/digits.yaml\n"
        "  weft train examples/digits.yaml --set optimizer.learning_rate=0.01\n",
    .run = run,
};
