/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/strategy.c - see strategy.h. */
#include "common/compile/strategy.h"
#include "common/base/nearest.h"
#include "common/base/size.h"
#include "common/compile/pass.h"
#include "common/optim/rule.h"
#include "common/tensor/device.h"

#include <string.h>

#define WF_STRATEGY(name) extern const wf_strategy wf_strategy_##name;
#include "common/compile/strategies.def"
#undef WF_STRATEGY

const wf_strategy *const wf_strategies[] = {
#define WF_STRATEGY(name) &wf_strategy_##name,
#include "common/compile/strategies.def"
#undef WF_STRATEGY
    NULL};

const wf_strategy *wf_strategy_find(const char *name)
{
    for (const wf_strategy *const *s = wf_strategies; *s; s++)
        if (strcmp((*s)->name, name) == 0)
            return *s;
    return NULL;
}

static const char *hint_for(const char *name, char hint[static WF_NEAREST_HINT])
{
    const char *names[16];
    size_t n = 0;

    for (; wf_strategies[n]; n++) {
        wf_assert(n < WF_COUNT(names));
        names[n] = wf_strategies[n]->name;
    }
    return wf_nearest_hint(name, names, n, NULL, hint);
}

bool wf_strategy_shards_optimizer(const wf_strategy *s)
{
    return s->on_worker && !s->tables_on_ps && !s->divides && s->workers_most > 1;
}

static wf_status cannot_shard(const wf_job_conf *job, const wf_strategy *s, wf_err *err)
{
    return wf_fail(err, WF_UNSUPPORTED,
                   "leave it out, or take multi_worker_mirrored with several workers and no ps",
                   "%s: shard_optimizer is for strategy multi_worker_mirrored, and not for %s",
                   job->path, s->name);
}

wf_status wf_strategy_check_name(const wf_job_conf *job, wf_err *err)
{
    const wf_strategy *s = job->strategy ? wf_strategy_find(job->strategy) : NULL;
    char hint[WF_NEAREST_HINT];

    if (s && s->on_worker && s->tables_on_ps && strcmp(job->mode, "async") != 0)
        return wf_fail(err, WF_UNSUPPORTED, "leave out consistency.mode, or take parameter_server",
                       "%s:%d: with strategy %s workers make each step together, and do not wait "
                       "for each other's rows of tables: there is no mode %s",
                       job->path, job->strategy_line, s->name, job->mode);
    if (s && job->shard_optimizer && !wf_strategy_shards_optimizer(s))
        return cannot_shard(job, s, err);
    if (!job->strategy || s)
        return WF_OK;
    return wf_fail(err, WF_USAGE, hint_for(job->strategy, hint),
                   "%s:%d: there is no strategy \"%.80s\"", job->path, job->strategy_line,
                   job->strategy);
}

wf_status wf_strategy_of_job(const wf_job_conf *job, uint32_t n_ps, uint32_t n_workers,
                             const wf_strategy **out, wf_err *err)
{
    const char *otherwise = job->place_line ? "stages"
                            : n_ps          ? "parameter_server"
                            : n_workers > 1 ? "multi_worker_mirrored"
                                            : "local";
    int line = job->strategy ? job->strategy_line : 1;
    const wf_strategy *s;

    WF_TRY(wf_strategy_check_name(job, err));
    s = wf_strategy_find(job->strategy ? job->strategy : otherwise);
    if (s->divides && !job->place_line)
        return wf_fail(err, WF_USAGE, "write place beside it, or leave strategy out",
                       "%s:%d: strategy %s goes by \"place\", which the job has not", job->path,
                       line, s->name);
    if (s->divides && n_ps > 0)
        return wf_fail(err, WF_USAGE, "leave \"place\" out, or take a cluster without ps",
                       "%s:%d: \"place\" divides the model among workers, which hold its variables "
                       "themselves, and the cluster has %u ps",
                       job->path, job->place_line, n_ps);
    if (n_ps < s->ps_least)
        return wf_fail(
            err, WF_USAGE,
            n_workers > 1 ? "name a ps in cluster.yaml, or take \"strategy: multi_worker_mirrored\""
                          : "name a ps in cluster.yaml, or take \"strategy: local\"",
            "%s:%d: strategy %s wants at least %u ps, and the cluster has %u", job->path, line,
            s->name, s->ps_least, n_ps);
    if (n_ps > s->ps_most)
        return wf_fail(err, WF_USAGE,
                       "take \"strategy: parameter_server\", or a cluster without ps",
                       "%s:%d: strategy %s wants at most %u ps, and the cluster has %u", job->path,
                       line, s->name, s->ps_most, n_ps);
    if (n_workers > s->workers_most)
        return wf_fail(
            err, WF_USAGE,
            "take \"strategy: multi_worker_mirrored\", or ps, which more workers can share",
            "%s:%d: strategy %s is for at most %u worker%s, and the cluster has %u", job->path,
            line, s->name, s->workers_most, s->workers_most == 1 ? "" : "s", n_workers);
    if (job->shard_optimizer && !wf_strategy_shards_optimizer(s))
        return cannot_shard(job, s, err);
    *out = s;
    return WF_OK;
}

wf_status wf_strategy_check_backups(const wf_job_conf *job, const wf_strategy *s,
                                    uint32_t n_workers, wf_err *err)
{
    if (s->on_worker || job->backup_workers == 0 || job->backup_workers < n_workers)
        return WF_OK;
    return wf_fail(err, WF_USAGE, "take fewer backups, or start more workers",
                   "%s: with backup_workers: %u no step waits for any of the %u workers", job->path,
                   job->backup_workers, n_workers);
}

static bool has_gpu(const wf_worker_devices *w)
{
    int ignored;

    return w->n_devices > 0 && wf_device_is_gpu(w->devices[0], &ignored);
}

wf_status wf_strategy_check_devices(const wf_job_conf *job, const wf_strategy *s,
                                    const wf_stage_workers *of, wf_err *err)
{
    wf_opt opt;

    if (!s->sends || job->shard_optimizer || !of->workers) /* or one worker updates a variable */
        return WF_OK;
    WF_TRY(wf_compile_optimizer_of_job(job, &opt, err));
    for (uint32_t i = 1; opt.rule->whole && i < of->n; i++)
        if (has_gpu(&of->workers[i]) != has_gpu(&of->workers[0]))
            return wf_fail(err, WF_USAGE,
                           "let all workers have a GPU, or none, or take another optimizer",
                           "%s:%d: %s takes norms of variables, which a GPU and a processor round "
                           "otherwise, and the copies of worker/0 and worker/%u are to stay equal",
                           job->path, job->optimizer.line, opt.rule->name, i);
    return WF_OK;
}

uint32_t wf_strategy_shards(const wf_strategy *s, uint32_t n_ps)
{
    return (s->on_worker ? 1 : 0) + (wf_strategy_has_tables(s) ? n_ps : 0);
}

bool wf_strategy_has_tables(const wf_strategy *s)
{
    return !s->on_worker || s->tables_on_ps;
}

wf_status wf_pass_strategy(wf_unit *u, wf_err *err)
{
    return u->spec->strategy ? u->spec->strategy->rewrite(u, err) : WF_OK;
}
