/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/submit.c */
#include "cmd/cli/submit.h"
#include "cmd/cli/cli.h"
#include "cmd/cli/library.h"
#include "cmd/cli/place.h"
#include "cmd/cli/super.h"
#include "cmd/cli/term.h"
#include "common/base/file.h"
#include "common/session/check.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ANSWER_MS = 10000 };

wf_status wf_submission_open(const char *path, wf_submission *s, wf_err *err)
{
    *s = (wf_submission){.path = path};
    WF_TRY(wf_job_load(path, &s->job, err));
    WF_TRY(wf_file_read(path, WF_CONF_MAX_BYTES, &s->text, err));
    return wf_job_check(s->job, wf_library_warn, NULL, err);
}

void wf_submission_close(wf_submission *s)
{
    wf_job_free(&s->job);
    wf_bytes_close(&s->text);
}

wf_status wf_submit(const wf_cluster_conf *conf, wf_ask *a, const wf_submission *s, bool resume,
                    wf_err *err)
{
    Weft__Ask ask = WEFT__ASK__INIT;
    const char *text = wf_bytes_str(&s->text);
    char full[PATH_MAX];

    if (!realpath(s->path, full))
        return wf_fail(err, WF_NOTFOUND, NULL, "cannot find %s", s->path);
    ask.command = "submit";
    ask.job = (char *)s->job->name;
    ask.text = (char *)text;
    ask.path = full;
    ask.resume = resume;
    WF_TRY(wf_ask_send(a, &ask, ANSWER_MS, NULL, err));
    return wf_place_keep_job(conf, s->job->name, text, s->text.size, s->path, err);
}

static wf_status submit(const wf_cluster_conf *conf, const wf_submission *s, bool resume,
                        wf_err *err)
{
    wf_ask *a = NULL;
    wf_status rc;

    WF_TRY(wf_super_check_up(conf, err));
    WF_TRY(wf_ask_open(conf, &a, err));
    rc = wf_submit(conf, a, s, resume, err);
    if (rc == WF_OK)
        wf_term_print(stdout, "job %s is submitted   follow it with: weft status %s\n",
                      s->job->name, s->job->name);
    wf_ask_close(&a);
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
    WF_TRY(wf_place_cluster(cluster, false, &conf, err));
    rc = wf_submission_open(words.word[0], &s, err);
    if (rc == WF_OK)
        rc = submit(conf, &s, resume, err);
    wf_submission_close(&s);
    wf_cluster_free(&conf);
    return rc;
}

const wf_cmd wf_cmd_submit = {
    .name = "submit",
    .help = "hand a job to a cluster that is up, and return",
    .usage = "weft submit JOB.yaml [--resume] [--cluster FILE]\n\n"
             "Checks the job here and hands it to the master; jobs run one after the other.\n"
             "  --resume   the job exists: go on with it from its newest checkpoint\n\n"
             "  weft submit examples/digits.yaml && weft status digits\n",
    .run = run,
};
