/* SPDX-License-Identifier: Apache-2.0 */
/* common/session/check.c */
#include "common/session/check.h"
#include "common/base/file.h"
#include "common/base/size.h"
#include "common/ckpt/pretrained.h"
#include "common/compile/compile.h"
#include "common/data/formats.h"
#include "common/data/listing.h"
#include "common/data/match.h"
#include "common/optim/rule.h"
#include "common/session/front.h"
#include "common/session/job_data_conf.h"
#include "common/wire/host.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void count(const wf_compiled *c, wf_job_facts *facts)
{
    facts->variables = c->n_variables;
    for (size_t i = 0; i < c->n_variables; i++)
        facts->parameters += c->variables[i].is_unbounded ? 0 : (uint64_t)c->variables[i].elems;
}

static void take_metrics(const wf_compiled *c, wf_job_facts *facts)
{
    for (size_t i = 0; i < c->n_outputs && facts->n_metrics < WF_CHECK_METRICS; i++)
        snprintf(facts->metrics[facts->n_metrics++], sizeof facts->metrics[0], "%s",
                 c->outputs[i].label);
}

/* The cells and labels of text are parsed when a worker reads them: the first ones here, so that a
 * wrong column or label is found before a cluster starts. */
static wf_status check_head(const wf_dataset *d, wf_err *err)
{
    enum { HEAD = 65536, EACH = 256 };
    uint64_t block, window, n = WF_MIN(wf_dataset_records(d), (uint64_t)HEAD), at[EACH];
    wf_status rc = WF_OK;

    wf_dataset_blocks(d, &block, &window);
    for (uint32_t f = 0; block && rc == WF_OK && f < wf_dataset_n_fields(d); f++) {
        size_t bytes = wf_dataset_field(d, f)->record_bytes * EACH;
        void *out = aligned_alloc(64, (bytes + 63) / 64 * 64);

        if (!out)
            return wf_fail_nomem(err, bytes);
        for (uint64_t from = 0; rc == WF_OK && from < n; from += EACH) {
            size_t now = WF_MIN(n - from, (uint64_t)EACH);

            for (size_t i = 0; i < now; i++)
                at[i] = from + i;
            rc = wf_dataset_gather(d, f, at, now, out, err);
        }
        free(out);
    }
    return rc;
}

/* Whether a check goes by the records of a field, and not by their shape alone. */
static bool is_looked_at(const wf_field_spec *f)
{
    for (size_t i = 0; i < f->n_steps; i++)
        if (strcmp(f->steps[i].type, "one_hot") == 0)
            return true;
    return f->loss || f->classes || f->is_share || wf_job_data_learns(f);
}

static void warn_of_skipped(const wf_dataset *d, const wf_checks *checks)
{
    const char *path;
    uint64_t line, n = wf_dataset_skipped(d, &path, &line);
    char text[PATH_MAX + 128];

    if (n == 0 || !checks->warn)
        return;
    snprintf(text, sizeof text,
             "%" PRIu64 " line%s of another number of columns %s skipped; the first is %s:%" PRIu64,
             n, n == 1 ? "" : "s", n == 1 ? "is" : "are", path, line);
    checks->warn(checks->arg, text);
}

/* Of data that grows the files that are there by now. */
static wf_status take_present(wf_job_data *d, wf_arena *a, bool *any, wf_err *err)
{
    const char *const *patterns, **paths;
    wf_listed *list = NULL;
    size_t n = 0, n_patterns;

    WF_TRY(wf_job_data_patterns(d, a, &patterns, &n_patterns, err));
    WF_TRY(wf_data_list(patterns, n_patterns, a, &list, &n, err));
    paths = wf_arena_array(a, n, sizeof *paths);
    if (!paths)
        return wf_fail_nomem(err, n * sizeof *paths);
    for (size_t i = 0; i < n; i++)
        paths[i] = list[i].path;
    *any = n > 0;
    return wf_job_data_take_files(d, paths, n, a, err);
}

static wf_status check_data_in(wf_arena *a, const wf_job_conf *job, const wf_conf_records *from,
                               const wf_compiled *c, const wf_checks *checks, uint64_t *records,
                               wf_err *err)
{
    wf_dataset *d = NULL;
    wf_job_data data;
    bool any = true;
    wf_status rc;

    WF_TRY(wf_job_data_of(job, from, c, &data, err));
    for (size_t i = 0; i < data.spec.n_fields; i++)
        data.fields[i].head_only = !is_looked_at(&data.fields[i]);
    if (data.grows)
        WF_TRY(take_present(&data, a, &any, err));
    if (!any)
        return WF_OK;
    rc = wf_job_data_open(&data, c->graph, &d, err);
    if (rc == WF_OK && c->ids_graph)
        rc = wf_job_data_check(&data, c->ids_graph, d, err);
    if (rc == WF_OK) {
        *records = wf_dataset_records(d);
        warn_of_skipped(d, checks);
        rc = check_head(d, err);
    }
    wf_dataset_free(&d);
    return rc;
}

static wf_status check_data(const wf_job_conf *job, const wf_conf_records *from,
                            const wf_compiled *c, const wf_checks *checks, uint64_t *records,
                            wf_err *err)
{
    wf_arena *a = wf_arena_new(0);
    wf_status rc = a ? check_data_in(a, job, from, c, checks, records, err)
                     : wf_fail_nomem(err, sizeof(wf_job_data));

    wf_arena_free(&a);
    return rc;
}

/* A model that weft exported with its steps in front, standardised again. */
static void warn_of_twice(const wf_job_conf *job, const wf_compiled *c, const wf_checks *checks)
{
    for (size_t i = 0; i < job->n_map; i++) {
        const wf_conf_field *f = &job->map[i];
        char text[512];

        for (size_t k = 0; k < f->n_steps; k++) {
            if (strcmp(f->steps[k].type, "standardise") != 0 ||
                !wf_front_is_there(c->graph, f->name))
                continue;
            snprintf(text, sizeof text,
                     "the model standardises its input \"%.64s\" itself, and data.map does so "
                     "before (line %d); leave one out: weft export --model-only",
                     f->name, f->steps[k].line);
            checks->warn(checks->arg, text);
            break;
        }
    }
}

/* Where its slices will lie is no matter here: as few ps as there may be will do. Whether there are
 * those that it pins variables to is for the master to say, who has the cluster. */
static uint32_t fewest_ps(const wf_job_conf *job, const wf_strategy *strategy)
{
    uint32_t n = strategy->ps_least;

    for (size_t i = 0; i < job->n_pins && wf_strategy_has_tables(strategy); i++)
        n = WF_MAX(n, job->pins[i].ps + 1);
    return n;
}

/* Among the workers of the cluster. Where that is not known, how many there are is for the master
 * to say, and what devices they have. */
static wf_status divide(const wf_job_conf *job, const wf_worker_devices workers[],
                        uint32_t n_workers, wf_compile_spec *spec, wf_err *err)
{
    const wf_stage_workers of = {workers, workers ? n_workers : wf_stages_workers(job)};
    wf_stage_home homes[WF_STAGES_MOST];
    uint32_t n;

    if (!wf_job_is_divided(job) || (!workers && wf_stages_name_devices(job)))
        return WF_OK;
    WF_TRY(wf_stages_of_job(job, &of, homes, &n, err));
    wf_stages_put(job, homes, n, spec);
    return WF_OK;
}

static wf_status check_compiled(const wf_job_conf *job, bool train, const wf_compiled *c,
                                const wf_checks *checks, wf_job_facts *facts, wf_err *err)
{
    for (size_t i = 0; train && checks->warn && i < c->n_warnings; i++)
        checks->warn(checks->arg, c->warnings[i]);
    if (train && checks->warn)
        warn_of_twice(job, c, checks);
    if (train)
        count(c, facts);
    else
        take_metrics(c, facts);
    if (checks->data && train)
        return check_data(job, &job->train, c, checks, &facts->train_records, err);
    if (checks->data && wf_job_evaluates(job))
        return check_data(job, &job->eval, c, checks, &facts->eval_records, err);
    return WF_OK;
}

static wf_status check_mode(const wf_job_conf *job, wf_compile_mode mode, const wf_checks *checks,
                            wf_job_facts *facts, wf_err *err)
{
    const char *otherwise = job->place_line ? "stages" : "parameter_server";
    const wf_strategy *strategy = wf_strategy_find(job->strategy ? job->strategy : otherwise);
    const wf_cluster_conf *cluster = checks->cluster;
    wf_worker_devices workers[WF_CONF_MAX_TASKS];
    wf_compile_spec spec;
    wf_compiled *c = NULL;
    wf_model model;
    wf_status rc;

    wf_compile_spec_of_job(job, mode, strategy, fewest_ps(job, strategy), &model, &spec);
    spec.read_weights = wf_pretrained_read;
    spec.train_metrics = mode == WF_COMPILE_TRAIN;
    for (uint32_t i = 0; cluster && i < cluster->n_workers; i++)
        workers[i] =
            (wf_worker_devices){cluster->workers[i].devices, cluster->workers[i].n_devices};
    WF_TRY(divide(job, cluster ? workers : NULL, cluster ? cluster->n_workers : 0, &spec, err));
    WF_TRY(wf_compile(&spec, &c, err));
    rc = check_compiled(job, mode == WF_COMPILE_TRAIN, c, checks, facts, err);
    wf_compiled_free(&c);
    return rc;
}

static wf_status check_optimizer(const wf_job_conf *job, wf_err *err)
{
    wf_opt opt;

    return wf_compile_optimizer_of_job(job, &opt, err);
}

static bool is_to_come(const wf_job_conf *job, const wf_conf_records *r)
{
    return job->grows && r == &job->train;
}

static wf_status check_file(const wf_job_conf *job, int line, const char *path, wf_err *err)
{
    if (!path)
        return WF_OK;
    return wf_err_wrap(err, wf_format_find_files(job->format, path, err), "%s:%d", job->path, line);
}

static wf_status check_files(const wf_job_conf *job, const wf_conf_records *r, wf_err *err)
{
    if (is_to_come(job, r)) /* it may have no file yet */
        return WF_OK;
    for (size_t i = 0; i < r->n; i++) {
        const wf_conf_field *f = &r->fields[i];

        WF_TRY(check_file(job, f->line, f->path, err));
        for (size_t k = 0; k < f->n_more; k++)
            WF_TRY(check_file(job, f->line, f->more[k], err));
    }
    for (size_t i = 0; i < r->n_files; i++)
        WF_TRY(check_file(job, r->line, r->files[i], err));
    return WF_OK;
}

/* Whether a pattern of `hosts` is of a file that the job trains on. */
static wf_status find_match(const wf_job_conf *job, const char *match, bool *any, wf_err *err)
{
    const wf_conf_records *r = &job->train;

    for (size_t i = 0; i < r->n; i++) {
        const wf_conf_field *f = &r->fields[i];

        if (f->path)
            WF_TRY(wf_data_match(job->format, f->path, match, any, err));
        for (size_t k = 0; k < f->n_more; k++)
            WF_TRY(wf_data_match(job->format, f->more[k], match, any, err));
    }
    for (size_t i = 0; i < r->n_files; i++)
        WF_TRY(wf_data_match(job->format, r->files[i], match, any, err));
    return WF_OK;
}

static wf_status check_hosts(const wf_job_conf *job, wf_err *err)
{
    for (size_t i = 0; i < job->n_hosts; i++) {
        const wf_conf_hosts *row = &job->hosts[i];
        char shown[PATH_MAX];
        bool any = false;

        WF_TRY(find_match(job, row->match, &any, err));
        wf_path_shown(row->match, shown);
        if (!any)
            return wf_fail(err, WF_USAGE, "name files of \"train\", or patterns of them",
                           "%s:%d: \"hosts\" names %s, and \"train\" has no such file", job->path,
                           row->line, shown);
    }
    return WF_OK;
}

static bool has_worker(const wf_cluster_conf *c, const char *host)
{
    char name[WF_HOST_NAME];

    for (uint32_t i = 0; i < c->n_workers; i++) {
        wf_host_of(c->workers[i].address, name);
        if (strcmp(name, host) == 0)
            return true;
    }
    return false;
}

/* Files may be near hosts that have no worker now; but it may be another spelling, too. */
static void warn_of_hosts(const wf_job_conf *job, const wf_checks *checks)
{
    char text[512];

    for (size_t i = 0; checks->warn && checks->cluster && i < job->n_hosts; i++)
        for (size_t k = 0; k < job->hosts[i].n; k++) {
            if (has_worker(checks->cluster, job->hosts[i].hosts[k]))
                continue;
            snprintf(text, sizeof text,
                     "%.200s:%d: \"hosts\" names %.100s, and no worker has that name in its "
                     "address in cluster.yaml",
                     job->path, job->hosts[i].line, job->hosts[i].hosts[k]);
            checks->warn(checks->arg, text);
        }
}

static void warn_of_key(const wf_job_conf *job, const char *key, const wf_strategy *s,
                        const wf_checks *checks)
{
    char text[320];

    snprintf(text, sizeof text, "%.100s: \"%s\" has no effect with strategy %s", job->path, key,
             s->name);
    checks->warn(checks->arg, text);
}

/* What workers add up travels in halves at the least. */
static bool is_ignored(const wf_conf_codec *c, const wf_strategy *s)
{
    return !s->sends || strcmp(c->push, "int8") == 0 || strcmp(c->push, "topk") == 0;
}

/* Keys that say something of ps, or of stages: a job may go on under another strategy, and is not
 * refused for them. */
static void warn_of_ignored(const wf_job_conf *job, const wf_strategy *s, const wf_checks *checks)
{
    bool codec = false;

    if (!s || !checks->warn)
        return;
    if (job->place_line && !s->divides)
        warn_of_key(job, "place", s, checks);
    if (wf_strategy_has_tables(s))
        return;
    if (strcmp(job->mode, "async") != 0)
        warn_of_key(job, "consistency", s, checks);
    for (size_t i = 0; i < job->n_codecs; i++)
        codec |= is_ignored(&job->codecs[i], s);
    if (codec)
        warn_of_key(job, "codec", s, checks);
    if (job->balance || job->n_pins)
        warn_of_key(job, "placement", s, checks);
}

wf_status wf_job_check(const wf_job_conf *job, const wf_checks *checks, wf_job_facts *facts,
                       wf_err *err)
{
    const wf_cluster_conf *of = checks->cluster;
    const wf_strategy *strategy = NULL;

    *facts = (wf_job_facts){0};
    WF_TRY(check_optimizer(job, err));
    WF_TRY(of ? wf_strategy_of_job(job, of->n_ps, of->n_workers, &strategy, err)
              : wf_strategy_check_name(job, err));
    if (strategy)
        WF_TRY(wf_strategy_check_backups(job, strategy, of->n_workers, err));
    warn_of_ignored(job,
                    strategy        ? strategy
                    : job->strategy ? wf_strategy_find(job->strategy)
                                    : NULL,
                    checks);
    WF_TRY(check_files(job, &job->train, err));
    WF_TRY(check_files(job, &job->eval, err));
    WF_TRY(check_hosts(job, err));
    warn_of_hosts(job, checks);
    WF_TRY(check_mode(job, WF_COMPILE_TRAIN, checks, facts, err));
    return check_mode(job, WF_COMPILE_EVAL, checks, facts, err);
}
