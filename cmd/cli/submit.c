/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/submit.c */
#include "cmd/cli/submit.h"
#include "cmd/cli/cli.h"
#include "cmd/cli/place.h"
#include "common/base/file.h"
#include "common/compile/compile.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ANSWER_MS = 10000 };

/* The model compiles for this cluster, before anything is asked of the master. */
static wf_status check_model(const wf_job_conf *job, uint32_t n_ps, wf_err *err)
{
    wf_compile_spec spec;
    wf_compiled *c = NULL;
    wf_model model;

    wf_compile_spec_of_job(job, WF_COMPILE_TRAIN, n_ps, &model, &spec);
    WF_TRY(wf_compile(&spec, &c, err));
    for (size_t i = 0; i < c->n_warnings; i++)
        fprintf(stderr, "warning: %s\n", c->warnings[i]);
    wf_compiled_free(&c);
    return WF_OK;
}

static wf_status check_files(const wf_job_conf *job, const wf_conf_field f[], size_t n, wf_err *err)
{
    for (size_t i = 0; i < n; i++)
        if (f[i].path && !wf_file_exists(f[i].path))
            return wf_fail(err, WF_NOTFOUND, "mend the path, or make the file",
                           "%s:%d: there is no file %s", job->path, f[i].line, f[i].path);
    return WF_OK;
}

static wf_status ask_submit(wf_ask *a, const wf_bytes *text, const char *path, const char *name,
                            bool resume, wf_err *err)
{
    Weft__Ask ask = WEFT__ASK__INIT;
    char full[PATH_MAX];

    if (!realpath(path, full))
        return wf_fail(err, WF_NOTFOUND, NULL, "cannot find %s", path);
    ask.command = "submit";
    ask.job = (char *)name;
    ask.text = (char *)wf_bytes_str(text);
    ask.path = full;
    ask.resume = resume;
    return wf_ask_send(a, &ask, ANSWER_MS, NULL, err);
}

wf_status wf_submit(const wf_cluster_conf *conf, wf_ask *a, const char *path, bool resume,
                    char name[65], wf_err *err)
{
    wf_job_conf *job = NULL;
    wf_bytes text = {0};
    wf_status rc;

    WF_TRY(wf_file_read(path, WF_CONF_MAX_BYTES, &text, err));
    rc = wf_job_load(path, &job, err);
    if (rc == WF_OK)
        rc = check_model(job, conf->n_ps, err);
    if (rc == WF_OK)
        rc = check_files(job, job->train, job->n_train, err);
    if (rc == WF_OK)
        rc = check_files(job, job->eval, job->n_eval, err);
    if (rc == WF_OK) {
        snprintf(name, 65, "%s", job->name);
        rc = ask_submit(a, &text, path, name, resume, err);
    }
    if (rc == WF_OK)
        rc = wf_place_keep_job(conf, name, wf_bytes_str(&text), text.size, path, err);
    wf_job_free(&job);
    wf_bytes_close(&text);
    return rc;
}

static wf_status run(int argc, char *argv[], wf_err *err)
{
    const char *cluster = NULL;
    wf_cluster_conf *conf = NULL;
    wf_ask *a = NULL;
    bool resume = false;
    wf_words words;
    const wf_flag flags[] = {{"resume", 0, .set = &resume}, {"cluster", 0, .value = &cluster}, {0}};
    char name[65];
    wf_status rc;

    WF_TRY(wf_args(flags, argc, argv, 1, 1, &words, err));
    WF_TRY(wf_place_cluster(cluster, false, &conf, err));
    rc = wf_ask_open(conf, &a, err);
    if (rc == WF_OK)
        rc = wf_submit(conf, a, words.word[0], resume, name, err);
    if (rc == WF_OK)
        printf("job %s is submitted   follow it with: weft status %s\n", name, name);
    wf_ask_close(&a);
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
