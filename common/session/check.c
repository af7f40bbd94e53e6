/* SPDX-License-Identifier: Apache-2.0 */
/* common/session/check.c */
#include "common/session/check.h"
#include "common/base/file.h"
#include "common/ckpt/pretrained.h"
#include "common/compile/compile.h"
#include "common/optim/rule.h"

/* Where its slices will lie is no matter here: one ps will do. */
static wf_status check_model(const wf_job_conf *job, void (*warn)(void *arg, const char *sentence),
                             void *arg, wf_err *err)
{
    wf_compile_spec spec;
    wf_compiled *c = NULL;
    wf_model model;

    wf_compile_spec_of_job(job, WF_COMPILE_TRAIN, wf_strategy_find("parameter_server"), 1, &model,
                           &spec);
    spec.read_weights = wf_pretrained_read;
    spec.train_metrics = true;
    WF_TRY(wf_compile(&spec, &c, err));
    for (size_t i = 0; warn && i < c->n_warnings; i++)
        warn(arg, c->warnings[i]);
    wf_compiled_free(&c);
    return WF_OK;
}

static wf_status check_optimizer(const wf_job_conf *job, wf_err *err)
{
    wf_opt opt;

    return wf_compile_optimizer_of_job(job, &opt, err);
}

static wf_status check_file(const wf_job_conf *job, int line, const char *path, wf_err *err)
{
    if (!path || wf_file_exists(path))
        return WF_OK;
    return wf_fail(err, WF_NOTFOUND, "correct the path, or make the file",
                   "%s:%d: there is no file %s", job->path, line, path);
}

static wf_status check_files(const wf_job_conf *job, const wf_conf_records *r, wf_err *err)
{
    for (size_t i = 0; i < r->n; i++)
        WF_TRY(check_file(job, r->fields[i].line, r->fields[i].path, err));
    for (size_t i = 0; i < r->n_files; i++)
        WF_TRY(check_file(job, r->line, r->files[i], err));
    return WF_OK;
}

wf_status wf_job_check(const wf_job_conf *job, void (*warn)(void *arg, const char *sentence),
                       void *arg, wf_err *err)
{
    WF_TRY(check_optimizer(job, err));
    WF_TRY(wf_strategy_check_name(job, err));
    WF_TRY(check_model(job, warn, arg, err));
    WF_TRY(check_files(job, &job->train, err));
    return check_files(job, &job->eval, err);
}
