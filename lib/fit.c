/* SPDX-License-Identifier: Apache-2.0 */
/* lib/fit.c - a job trained in the calling thread. Its master is asked for how far it is as a
 * command would ask, for the JSON that `weft status` shows. */
#include "runtime/fit.h"
#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/subnormal.h"
#include "common/session/check.h"
#include "common/session/runs.h"
#include "lib/lib.h"

#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REPORT_MS = 200 };

typedef struct fitting {
    const weft_job *job;
    const weft_fit_options *options;
    const char *folder, *checkpoint_dir;
    char run[WF_RUN_NAME];
    wf_fit *fit;
    weft_report report; /* the newest */
    wf_job_marks marks; /* as of the newest report */
    int64_t reported_ns;
    bool asked_to_stop;
} fitting;

static double number(const json_t *o, const char *key)
{
    return json_number_value(json_object_get(o, key));
}

static uint32_t read_metrics(const json_t *from, weft_metric to[])
{
    const char *name;
    json_t *value;
    uint32_t n = 0;

    json_object_foreach((json_t *)from, name, value)
    {
        if (n == WEFT_MAX_METRICS)
            break;
        snprintf(to[n].name, sizeof to[n].name, "%s", name);
        to[n++].value = json_number_value(value);
    }
    return n;
}

static void read_report(const json_t *job, const wf_job_marks *m, weft_report *r)
{
    *r = (weft_report){.state = m->state,
                       .run = (uint32_t)number(job, "run"),
                       .step = (uint64_t)number(job, "step"),
                       .epoch = m->epoch,
                       .epochs = (uint32_t)number(job, "epochs"),
                       .part = number(job, "part"),
                       .samples_per_sec = number(job, "samples_per_sec"),
                       .eval_epoch = m->eval_epoch,
                       .checkpoint = m->checkpoint};
    r->n_metrics = read_metrics(json_object_get(job, "metrics"), r->metrics);
    r->n_eval = read_metrics(json_object_get(job, "eval"), r->eval);
}

/* Why the job ended other than by being done. */
static wf_status read_end(const json_t *job, const char *state, wf_err *err)
{
    const char *reason = json_string_value(json_object_get(job, "reason"));
    const char *hint = json_string_value(json_object_get(job, "hint"));
    const char *name = json_string_value(json_object_get(job, "job"));

    if (strcmp(state, "done") == 0)
        return WF_OK;
    if (strcmp(state, "failed") == 0)
        return wf_fail(err, WF_INVALID, hint, "job %s failed: %s", name, reason);
    return wf_fail(err, WF_STOPPED, "go on with it by resume", "job %s: %s", name, reason);
}

/* Takes a picture of the job: the report, and when it is over how it ended. */
static wf_status look(fitting *f, wf_err *err)
{
    char *text = wf_master_status(wf_fit_master(f->fit), wf_now_ns());
    json_t *picture = text ? json_loads(text, 0, NULL) : NULL, *job = NULL, *each;
    wf_status rc = WF_OK;
    size_t i;

    json_array_foreach(json_object_get(picture, "jobs"), i, each)
    {
        if (strcmp(json_string_value(json_object_get(each, "name")), f->run) == 0)
            job = each;
    }
    if (job)
        read_report(job, &f->marks, &f->report);
    if (!job)
        rc = wf_fail_nomem(err, 0);
    else if (f->marks.is_over)
        rc = read_end(job, f->marks.state, err);
    json_decref(picture);
    free(text);
    return rc;
}

/* Reports what is new or due. */
static wf_status report(fitting *f, wf_err *err)
{
    uint32_t every_ms = f->options->report_ms ? f->options->report_ms : REPORT_MS;
    int64_t now_ns = wf_now_ns();
    wf_job_marks m = {0};
    wf_status rc;

    wf_master_marks(wf_fit_master(f->fit), f->run, &m);
    if (m.state == f->marks.state && m.epoch == f->marks.epoch &&
        m.eval_epoch == f->marks.eval_epoch && m.checkpoint == f->marks.checkpoint &&
        now_ns - f->reported_ns < every_ms * WF_NS_PER_MS)
        return WF_OK;
    f->marks = m;
    f->reported_ns = now_ns;
    rc = look(f, err);
    if (f->options->report && f->options->report(f->options->arg, &f->report) &&
        !f->asked_to_stop && rc == WF_OK && !m.is_over) {
        f->asked_to_stop = true;
        rc = wf_master_stop(wf_fit_master(f->fit), f->run, err);
    }
    return rc;
}

/* Runs that are more than the job keeps go, the oldest first of all. */
static wf_status drop_old_runs(fitting *f, const char *const dirs[], wf_err *err)
{
    const wf_job_conf *job = f->job->conf;
    wf_arena *arena = wf_arena_new(0);
    char name[WF_RUN_NAME];
    wf_runs old = {0};
    wf_status rc;

    rc = arena ? wf_runs_surplus(dirs, f->run, job->keep_runs, arena, &old, err)
               : wf_fail_nomem(err, 0);
    for (size_t i = old.n; rc == WF_OK && i > 0; i--)
        rc = wf_master_forget(wf_fit_master(f->fit),
                              wf_run_name(job->name, old.number[i - 1], name), err);
    wf_arena_free(&arena);
    return rc;
}

static wf_status submit(fitting *f, const char *path, wf_err *err)
{
    const wf_job_conf *job = f->job->conf;
    char jobs[PATH_MAX];
    const char *const dirs[] = {jobs, f->checkpoint_dir, NULL};

    snprintf(jobs, sizeof jobs, "%.*s/jobs", PATH_MAX - 8, f->folder);
    WF_TRY(wf_runs_choose(dirs, job->name, wf_master_newest_run(wf_fit_master(f->fit), job->name),
                          f->options->resume, f->run, err));
    WF_TRY(wf_master_submit(wf_fit_master(f->fit), f->run, f->job->text, path, f->options->resume,
                            err));
    return drop_old_runs(f, dirs, err);
}

static wf_status train(fitting *f, wf_err *err)
{
    WF_TRY(submit(f, f->job->full, err));
    while (!f->marks.is_over) {
        WF_TRY(wf_fit_turn(f->fit, REPORT_MS, err));
        WF_TRY(report(f, err));
    }
    return WF_OK;
}

/* The folder, made if it is not there, as an absolute path. */
static wf_status find_folder(const char *wanted, char full[PATH_MAX], wf_err *err)
{
    WF_TRY(wf_make_dirs(wanted, err));
    if (!realpath(wanted, full))
        return wf_fail_errno(err, errno, NULL, "cannot find %s", wanted);
    return WF_OK;
}

static wf_status fit(fitting *f, wf_err *err)
{
    const weft_fit_options *o = f->options;
    char folder[PATH_MAX], checkpoints[PATH_MAX + 16];
    wf_job_facts facts;
    wf_status rc;

    WF_TRY(wf_job_check(f->job->conf, &(wf_checks){0}, &facts, err));
    WF_TRY(find_folder(o->folder ? o->folder : ".weft", folder, err));
    if (o->checkpoint_dir)
        WF_TRY(find_folder(o->checkpoint_dir, checkpoints, err));
    else
        snprintf(checkpoints, sizeof checkpoints, "%s/checkpoints", folder);
    f->folder = folder;
    f->checkpoint_dir = checkpoints;
    rc = wf_fit_open(&(wf_fit_conf){.state_dir = folder,
                                    .checkpoint_dir = checkpoints,
                                    .threads = wf_lib_threads(o->threads),
                                    .device = o->device,
                                    .memory = f->job->conf->memory,
                                    .temporary = o->temporary != 0,
                                    .optimizer = o->optimizer ? &o->optimizer->named : NULL},
                     &f->fit, err);
    if (rc == WF_OK)
        rc = train(f, err);
    wf_fit_close(&f->fit);
    return rc;
}

weft_code weft_fit(const weft_job *j, const weft_fit_options *options, weft_report *last,
                   weft_error *error)
{
    static const weft_fit_options defaults;
    fitting f = {.job = j, .options = options ? options : &defaults, .marks = {.checkpoint = -1}};
    const uint64_t control = wf_subnormals();
    wf_err err = {0};
    wf_status rc;

    if (last)
        *last = (weft_report){.state = "", .checkpoint = -1};
    WF_LIB_NEED(j);
    f.report = (weft_report){.state = "", .checkpoint = -1};
    wf_flush_subnormals();
    rc = fit(&f, &err);
    wf_restore_subnormals(control);
    if (last)
        *last = f.report;
    return wf_lib_end(rc, &err, error);
}
