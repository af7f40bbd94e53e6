/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/recover.c */
#include "cmd/cli/cli.h"
#include "cmd/cli/following.h"
#include "cmd/cli/place.h"
#include "cmd/cli/ports.h"
#include "cmd/cli/super.h"
#include "cmd/cli/visit.h"
#include "common/base/disk.h"
#include "common/base/file.h"
#include "common/ckpt/ckpt.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { ANSWER_MS = 10000 };

static wf_status recover(const wf_cluster_conf *conf, const char *job, int64_t from_step,
                         const wf_words *set, wf_err *err)
{
    Weft__Ask ask = WEFT__ASK__INIT;
    wf_ask *a = NULL;
    char again[128];
    wf_status rc;

    WF_TRY(wf_ask_open(conf, &a, err));
    ask.command = "recover";
    ask.job = (char *)job;
    ask.from_step = from_step;
    ask.n_set = set->n;
    ask.set = (char **)set->word;
    rc = wf_ask_send(a, &ask, ANSWER_MS, NULL, err);
    if (rc == WF_OK)
        rc = wf_follow(conf, a, job, wf_recover_command(job, again, sizeof again), err);
    wf_ask_close(&a);
    return rc;
}

/* No cluster knows a run of weft train --local. And none is started for a job that nobody knows:
 * the master of this host would keep its run in these folders. */
static wf_status check_known(const wf_cluster_conf *conf, const char *word, wf_err *err)
{
    char run[WF_RUN_NAME], jobs[PATH_MAX], again[PATH_MAX], hint[PATH_MAX + 32];
    wf_err why;

    if (wf_place_run(conf, word, run, &why) == WF_OK && wf_place_again(conf, run, again)) {
        snprintf(hint, sizeof hint, "go on with: %s", again);
        return wf_fail(err, WF_NOTFOUND, hint, "no cluster has trained %s", run);
    }
    if (wf_super_pid(conf) || !wf_port_is_here(&conf->master) || wf_port_answers(&conf->master))
        return WF_OK;
    WF_TRY(wf_place_run(conf, word, run, err));
    if (snprintf(jobs, sizeof jobs, "%s/jobs/%s", conf->state_dir, run) < (int)sizeof jobs &&
        wf_file_exists(jobs))
        return WF_OK;
    return wf_fail(err, WF_NOTFOUND, "see the names with: weft status",
                   "there is no job named %s in %s/jobs", word, conf->state_dir);
}

/* A job that is over stays as it is where the step was mistyped. Where the folder is not seen from
 * here, the master says so. */
static wf_status check_step(const wf_cluster_conf *conf, const char *word, int64_t step,
                            wf_err *err)
{
    char run[WF_RUN_NAME], folder[PATH_MAX];
    wf_ckpt *c = NULL;
    wf_err why;
    wf_status rc;

    if (step < 0 || wf_place_run(conf, word, run, &why) != WF_OK ||
        snprintf(folder, sizeof folder, "%s/%s", conf->checkpoint_dir, run) >= (int)sizeof folder ||
        !wf_file_exists(folder))
        return WF_OK;
    rc = wf_ckpt_open(wf_disk_posix(), conf->checkpoint_dir, run, (uint64_t)step, false, &c, err);
    wf_ckpt_close(&c);
    return rc == WF_NOTFOUND ? rc : WF_OK;
}

static wf_status run(int argc, char *argv[], wf_err *err)
{
    const char *cluster = NULL, *from = "latest";
    wf_cluster_conf *conf = NULL;
    unsigned long long step = 0;
    int64_t from_step = -1;
    wf_words words, set = {0};
    const wf_flag flags[] = {{"from", 0, .value = &from},
                             {"set", 0, .words = &set},
                             {"cluster", 0, .value = &cluster},
                             {0}};
    wf_visit visit;
    wf_status rc;

    WF_TRY(wf_args(flags, argc, argv, 1, 1, &words, err));
    if (strcmp(from, "latest") != 0) {
        WF_TRY(wf_arg_u64("--from", from, 0, INT64_MAX, &step, err));
        from_step = (int64_t)step;
    }
    WF_TRY(wf_place_cluster(cluster, false, &conf, err));
    rc = check_known(conf, words.word[0], err);
    if (rc == WF_OK)
        rc = check_step(conf, words.word[0], from_step, err);
    if (rc == WF_OK) {
        visit = wf_visit_begin(conf);
        wf_follow_catch();
        rc = wf_visit_start(&visit, conf, err);
        if (rc == WF_OK)
            rc = recover(conf, words.word[0], from_step, &set, err);
        wf_visit_end(&visit, conf);
    }
    wf_cluster_free(&conf);
    return rc;
}

const wf_cmd wf_cmd_recover = {
    .name = "recover",
    .help = "continue a job from its newest checkpoint",
    .usage =
        "weft recover JOB [--from STEP] [--set KEY=VALUE ...] [--cluster FILE]\n"
        "\n"
        "Continues a job that was stopped, has failed, or whose cluster died, from the newest\n"
        "intact checkpoint (weights, optimizer, step, position in the data). Damaged ones are\n"
        "listed. Starts the cluster if it is not up, and shows the progress as \"weft train\" "
        "does.\n"
        "  --from STEP        use the checkpoint of that step instead of the newest\n"
        "  --set KEY=VALUE    change a setting before continuing: epochs, steps, batch,\n"
        "                     checkpoint.every_steps, checkpoint.every_seconds,\n"
        "                     checkpoint.keep, codec, strategy, shard_optimizer,\n"
        "                     optimizer.OPTION, callbacks.NAME.OPTION; may be given several times\n"
        "\n"
        "  weft recover digits\n"
        "  weft recover digits --set optimizer.learning_rate=0.0001 --set epochs=20\n",
    .run = run,
};
