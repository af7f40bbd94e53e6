/* SPDX-License-Identifier: Apache-2.0 */
/* lib/job.c - jobs: their files, checkpoints and evaluation. */
#include "common/compile/compile.h"
#include "common/session/check.h"
#include "common/session/evaluate.h"
#include "common/session/runs.h"
#include "common/session/weights.h"
#include "lib/lib.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A file need not be there. */
static wf_status find_path(const char *given, char **out, wf_err *err)
{
    char full[PATH_MAX], here[PATH_MAX] = "";

    if (!realpath(given, full)) {
        if (given[0] != '/' && !getcwd(here, sizeof here))
            return wf_fail_errno(err, errno, NULL, "cannot tell the working folder");
        if (snprintf(full, PATH_MAX, "%s%s%s", here, here[0] ? "/" : "", given) >= PATH_MAX)
            return wf_fail(err, WF_INVALID, NULL, "the path %.200s is too long", given);
    }
    *out = strdup(full);
    return *out ? WF_OK : wf_fail_nomem(err, strlen(full));
}

static wf_status parse(const char *text, size_t size, const char *path, weft_job **out, wf_err *err)
{
    weft_job *j = calloc(1, sizeof *j);
    char *copy = size < WF_CONF_MAX_BYTES ? malloc(size + 1) : NULL;
    wf_status rc;

    if (size >= WF_CONF_MAX_BYTES)
        rc = wf_fail(err, WF_INVALID, NULL, "%s: a job file has less than %d bytes, not %zu", path,
                     WF_CONF_MAX_BYTES, size);
    else if (!j || !copy)
        rc = wf_fail_nomem(err, size);
    else
        rc = wf_job_parse(text, size, path, &j->conf, err);
    if (rc != WF_OK) {
        free(copy);
        free(j);
        return rc;
    }
    rc = find_path(path, &j->full, err);
    if (rc != WF_OK) {
        wf_job_free(&j->conf);
        free(copy);
        free(j);
        return rc;
    }
    memcpy(copy, text, size);
    copy[size] = 0;
    j->conf->memory = &j->memory;
    j->text = copy;
    j->size = size;
    *out = j;
    return WF_OK;
}

static wf_status read_job(const char *path, weft_job **out, wf_err *err)
{
    wf_bytes text = {0};
    wf_status rc;

    rc = wf_job_read(path, &text, err);
    if (rc == WF_OK)
        rc = parse(wf_bytes_str(&text), text.size, path, out, err);
    wf_bytes_close(&text);
    return rc;
}

weft_code weft_job_open(const char *path, weft_job **out, weft_error *error)
{
    wf_err err = {0};

    WF_LIB_NEED(out);
    *out = NULL;
    WF_LIB_NEED(path);
    return wf_lib_end(read_job(path, out, &err), &err, error);
}

weft_code weft_job_parse(const char *text, size_t size, const char *path, weft_job **out,
                         weft_error *error)
{
    wf_err err = {0};

    WF_LIB_NEED(out);
    *out = NULL;
    WF_LIB_NEED(text);
    return wf_lib_end(parse(text, size, path ? path : "job.yaml", out, &err), &err, error);
}

weft_code weft_job_check(const weft_job *j, weft_error *error)
{
    wf_job_facts facts;
    wf_err err = {0};

    WF_LIB_NEED(j);
    return wf_lib_end(wf_job_check(j->conf, &(wf_checks){0}, &facts, &err), &err, error);
}

void weft_job_free(weft_job **j)
{
    if (!j || !*j)
        return;
    wf_job_free(&(*j)->conf);
    wf_memory_close(&(*j)->memory);
    free((*j)->text);
    free((*j)->full);
    free(*j);
    *j = NULL;
}

const char *weft_job_name(const weft_job *j)
{
    return j ? j->conf->name : "";
}

void weft_job_set_run(weft_job *j, uint32_t run)
{
    if (j)
        j->run = run;
}

/* ---- checkpoints ---- */

static wf_status read_weights(const weft_job *j, const char *dir, int64_t step,
                              wf_ckpt_passed_over *told, void *arg, wf_weights *w, wf_err *err)
{
    const char *const dirs[] = {dir, NULL};
    char run[WF_RUN_NAME];

    wf_run_name(j->conf->name, j->run, run);
    WF_TRY(wf_runs_find(dirs, run, run, err));
    return wf_weights_read(dir, run, j->conf, step, told, arg, w, err);
}

typedef struct listener {
    void (*tell)(void *arg, const char *sentence);
    void *arg;
} listener;

static void passed(void *arg, uint64_t step, const char *sentence)
{
    const listener *l = arg;

    (void)step;
    if (l->tell)
        l->tell(l->arg, sentence);
}

static wf_status check_step(int64_t step, wf_err *err)
{
    if (step >= WEFT_STEP_BEST)
        return WF_OK;
    return wf_fail(err, WF_INVALID, "take WEFT_STEP_NEWEST or WEFT_STEP_BEST", "%lld is no step",
                   (long long)step);
}

/* `optimizer` NULL: its state is not wanted. */
static wf_status read_state(const weft_job *j, const char *dir, int64_t step, listener *l,
                            weft_list **weights, weft_list **optimizer, wf_err *err)
{
    wf_weights w = {.wants_optimizer = optimizer != NULL};
    wf_status rc = check_step(step, err);

    if (rc == WF_OK)
        rc = read_weights(j, dir, step, passed, l, &w, err);
    if (rc == WF_OK)
        rc = wf_lib_list(&w.list, w.from, weights, err);
    if (rc == WF_OK) {
        (*weights)->learnt = w.learnt;
        w.learnt = (wf_learnt_list){0};
    }
    if (rc == WF_OK && optimizer)
        rc = wf_lib_list(&w.optimizer, w.from, optimizer, err);
    if (rc != WF_OK)
        weft_list_free(weights);
    wf_weights_close(&w);
    return rc;
}

weft_code weft_job_weights(const weft_job *j, const char *checkpoint_dir, int64_t step,
                           void (*passed_over)(void *arg, const char *sentence), void *arg,
                           weft_list **out, weft_error *error)
{
    listener l = {passed_over, arg};
    wf_err err = {0};

    WF_LIB_NEED(out);
    *out = NULL;
    WF_LIB_NEED(j);
    WF_LIB_NEED(checkpoint_dir);
    return wf_lib_end(read_state(j, checkpoint_dir, step, &l, out, NULL, &err), &err, error);
}

weft_code weft_job_state(const weft_job *j, const char *checkpoint_dir, int64_t step,
                         weft_list **weights, weft_list **optimizer, weft_error *error)
{
    listener nobody = {0};
    wf_err err = {0};

    WF_LIB_NEED(weights);
    *weights = NULL;
    WF_LIB_NEED(optimizer);
    *optimizer = NULL;
    WF_LIB_NEED(j);
    WF_LIB_NEED(checkpoint_dir);
    return wf_lib_end(read_state(j, checkpoint_dir, step, &nobody, weights, optimizer, &err), &err,
                      error);
}

static wf_status list(const char *dir, const char *job, weft_checkpoint **out, size_t *n,
                      wf_err *err)
{
    wf_arena *a = wf_arena_new(0);
    const char *const dirs[] = {dir, NULL};
    char run[WF_RUN_NAME];
    wf_ckpt_entry *entries;
    wf_status rc = a ? WF_OK : wf_fail_nomem(err, 0);

    if (rc == WF_OK && !wf_run_name_ok(job))
        rc = wf_fail(err, WF_USAGE, NULL, "\"%.80s\" is no name of a job", job);
    if (rc == WF_OK)
        rc = wf_runs_find(dirs, job, run, err);
    if (rc == WF_OK)
        rc = wf_ckpt_list(wf_disk_posix(), dir, run, a, &entries, n, err);
    if (rc == WF_OK) {
        *out = calloc(*n + 1, sizeof **out);
        rc = *out ? WF_OK : wf_fail_nomem(err, *n * sizeof **out);
    }
    for (size_t i = 0; rc == WF_OK && i < *n; i++) {
        weft_checkpoint *c = &(*out)[i];

        *c = (weft_checkpoint){.step = entries[i].step,
                               .bytes = entries[i].bytes,
                               .created_ms = entries[i].created_ms,
                               .complete = !entries[i].fault};
        snprintf(c->name, sizeof c->name, "%s", entries[i].name);
    }
    if (rc != WF_OK)
        *n = 0;
    wf_arena_free(&a);
    return rc;
}

weft_code weft_checkpoints(const char *checkpoint_dir, const char *job, weft_checkpoint **out,
                           size_t *n, weft_error *error)
{
    wf_err err = {0};

    WF_LIB_NEED(out);
    *out = NULL;
    WF_LIB_NEED(n);
    *n = 0;
    WF_LIB_NEED(checkpoint_dir);
    WF_LIB_NEED(job);
    return wf_lib_end(list(checkpoint_dir, job, out, n, &err), &err, error);
}

void weft_checkpoints_free(weft_checkpoint **list)
{
    if (list) {
        free(*list);
        *list = NULL;
    }
}

/* ---- evaluation ---- */

static wf_status evaluate(const weft_job *j, const weft_list *weights, uint32_t threads,
                          weft_evaluation *out, wf_err *err)
{
    wf_scores e = {0};
    wf_pool *pool = NULL;
    wf_status rc;

    rc = wf_pool_new(wf_lib_threads(threads), &pool, err);
    if (rc == WF_OK)
        rc = wf_evaluate(j->conf, weights ? &weights->named : NULL,
                         weights ? &weights->learnt : NULL, pool, &e, err);
    if (rc == WF_OK) {
        out->records = e.records;
        out->n_metrics = e.n;
        for (uint32_t i = 0; i < e.n; i++) {
            snprintf(out->metrics[i].name, sizeof out->metrics[i].name, "%s", e.measures[i].name);
            out->metrics[i].value = wf_metric_value(&e.measures[i]);
        }
    }
    wf_scores_close(&e);
    wf_pool_free(&pool);
    return rc;
}

_Static_assert((int)WEFT_MAX_METRICS == (int)WF_MEASURES_MOST, "all measures have room");
_Static_assert((int)WEFT_STEP_NEWEST == (int)WF_STEP_NEWEST &&
                   (int)WEFT_STEP_BEST == (int)WF_STEP_BEST,
               "words for steps are the same");

weft_code weft_job_evaluate(const weft_job *j, const weft_list *weights,
                            const weft_run_options *options, weft_evaluation *out,
                            weft_error *error)
{
    wf_err err = {0};

    WF_LIB_NEED(out);
    *out = (weft_evaluation){0};
    WF_LIB_NEED(j);
    return wf_lib_end(evaluate(j, weights, options ? options->threads : 0, out, &err), &err, error);
}
