/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/master_loop.c */
#include "runtime/master_loop.h"
#include "common/base/clock.h"
#include "common/base/disk.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

/* A shard of many GB on a slow disk is written by then; one that is not hangs. */
enum { CUT_S = 600 };

static void begin(void *arg, wf_work *w)
{
    wf_background_begin(((wf_master_loop *)arg)->background, w);
}

static wf_status prepare(void *arg, const char *job, const char *text, const char *path,
                         wf_prepared **out, wf_err *err)
{
    const wf_master_loop *l = arg;
    char folder[PATH_MAX];

    WF_TRY(wf_master_prepare(job, text, path, &l->cluster, out, err));
    (*out)->optimizer = l->optimizer;
    snprintf(folder, sizeof folder, "%s/%s", l->jobs_dir, job);
    wf_history_describe(l->background, folder, text, path);
    return WF_OK;
}

static wf_status list(void *arg, const char *const patterns[], size_t n, wf_arena *a,
                      wf_listed **out, size_t *n_out, wf_err *err)
{
    (void)arg;
    return wf_data_list(patterns, n, a, out, n_out, err);
}

/* One line of JSON per event, in the job's folder. */
static void note(void *arg, const char *job, const char *json)
{
    wf_master_loop *l = arg;
    char folder[PATH_MAX], line[8192], when[32];
    int64_t now_ns = wf_wall_ns();
    time_t seconds = (time_t)(now_ns / WF_NS_PER_S);
    struct tm tm;
    int n;

    gmtime_r(&seconds, &tm);
    strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%S", &tm);
    n = snprintf(line, sizeof line, "{\"ts\": \"%s.%03dZ\", %s\n", when,
                 (int)(now_ns / WF_NS_PER_MS % 1000), json + 1);
    if (n < 0 || n >= (int)sizeof line)
        return;
    snprintf(folder, sizeof folder, "%s/%s", l->jobs_dir, job);
    wf_background_write(l->background, folder, "events.jsonl", line);
    wf_history_take(&l->history, l->background, folder, job, json, now_ns);
}

static void forget(void *arg, const char *job)
{
    const wf_master_loop *l = arg;
    char folder[PATH_MAX];

    snprintf(folder, sizeof folder, "%s/%s", l->jobs_dir, job);
    wf_background_remove(l->background, folder);
    snprintf(folder, sizeof folder, "%s/%s", l->checkpoint_dir, job);
    wf_background_remove(l->background, folder);
}

/* Two masters on one state_dir would each believe their own journal. The lock goes with the
 * process; the file descriptor stays open on purpose. */
static wf_status lock_state(wf_master_loop *l, wf_err *err)
{
    char path[PATH_MAX];

    snprintf(path, sizeof path, "%s/master", l->state_dir);
    WF_TRY(wf_disk_make_dirs(l->disk, path, err));
    snprintf(path, sizeof path, "%s/master/lock", l->state_dir);
    l->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (l->lock < 0)
        return wf_fail(err, WF_IO, NULL, "cannot open %s", path);
    if (flock(l->lock, LOCK_EX | LOCK_NB) != 0)
        return wf_fail(err, WF_EXISTS, "end it with: weft down", "another master uses %s",
                       l->state_dir);
    return WF_OK;
}

static wf_status make_master(wf_master_loop *l, const wf_cluster_conf *conf, uint64_t incarnation,
                             const char *session, wf_err *err)
{
    uint32_t n = conf->n_ps + conf->n_workers;
    wf_master_task *tasks = calloc(n, sizeof *tasks);
    char journal[PATH_MAX];
    wf_status rc;

    if (!tasks)
        return wf_fail_nomem(err, n * sizeof *tasks);
    for (uint32_t i = 0; i < conf->n_ps; i++)
        tasks[i] = (wf_master_task){{WF_ROLE_PS, i}, conf->ps[i].address};
    for (uint32_t i = 0; i < conf->n_workers; i++)
        tasks[conf->n_ps + i] = (wf_master_task){{WF_ROLE_WORKER, i}, conf->workers[i].address};
    snprintf(journal, sizeof journal, "%s/master", l->state_dir);
    rc = wf_master_new(&(wf_master_conf){.incarnation = incarnation,
                                         .session = session,
                                         .tasks = tasks,
                                         .n_tasks = n,
                                         .disk = l->disk,
                                         .journal_dir = journal,
                                         .checkpoint_dir = conf->checkpoint_dir,
                                         .dead_ns = conf->dead_ms * WF_NS_PER_MS,
                                         .stuck_ns = conf->stuck_ms * WF_NS_PER_MS,
                                         .cut_ns = CUT_S * WF_NS_PER_S,
                                         .ops = {.arg = l,
                                                 .begin = begin,
                                                 .prepare = prepare,
                                                 .list = list,
                                                 .note = note,
                                                 .forget = forget}},
                       wf_now_ns(), &l->master, err);
    free(tasks);
    return rc;
}

/* What the stages of divided models may be on. */
static wf_status list_devices(wf_master_loop *l, const wf_cluster_conf *conf, wf_err *err)
{
    wf_worker_devices *rows;

    l->arena = wf_arena_new(0);
    rows = l->arena ? wf_arena_array(l->arena, conf->n_workers + (size_t)1, sizeof *rows) : NULL;
    if (!rows)
        return wf_fail_nomem(err, conf->n_workers * sizeof *rows);
    for (uint32_t i = 0; i < conf->n_workers; i++) {
        const wf_task_conf *w = &conf->workers[i];
        const char **names = wf_arena_array(l->arena, w->n_devices + (size_t)1, sizeof(*names));

        if (!names)
            return wf_fail_nomem(err, w->n_devices * sizeof(*names));
        for (uint32_t k = 0; k < w->n_devices; k++) {
            names[k] = wf_arena_strdup(l->arena, w->devices[k]);
            if (!names[k])
                return wf_fail_nomem(err, strlen(w->devices[k]));
        }
        rows[i] = (wf_worker_devices){names, w->n_devices};
    }
    l->cluster.workers = rows;
    return WF_OK;
}

wf_status wf_master_loop_open(wf_master_loop *l, const wf_cluster_conf *conf, uint64_t incarnation,
                              const char *session, const char *jobs_dir, const char *strategy,
                              wf_disk *disk, wf_err *err)
{
    *l = (wf_master_loop){.cluster = {conf->n_ps, conf->n_workers, strategy, NULL},
                          .state_dir = strdup(conf->state_dir),
                          .jobs_dir = strdup(jobs_dir),
                          .checkpoint_dir = strdup(conf->checkpoint_dir),
                          .disk = disk,
                          .lock = -1};
    if (!l->state_dir || !l->jobs_dir || !l->checkpoint_dir)
        return wf_fail_nomem(err, strlen(conf->state_dir));
    WF_TRY(list_devices(l, conf, err));
    WF_TRY(lock_state(l, err));
    WF_TRY(wf_disk_make_dirs(l->disk, conf->checkpoint_dir, err));
    WF_TRY(wf_background_new(&l->background, err));
    return make_master(l, conf, incarnation, session, err);
}

void wf_master_loop_admit(const wf_master_loop *l, wf_net_conf *conf)
{
    conf->admit = wf_master_admit;
    conf->admit_arg = l->master;
    conf->on_refused = wf_master_on_refused;
    conf->on_stranger = wf_master_on_stranger;
    conf->stranger_arg = l->master;
}

wf_status wf_master_loop_turn(wf_master_loop *l, wf_net *net, int64_t now_ns, bool *any,
                              wf_err *err)
{
    wf_work *done;
    wf_event ev;

    wf_net_poll(net, now_ns);
    while (wf_net_event(net, now_ns, &ev)) {
        *any = true;
        WF_TRY(wf_master_on_event(l->master, &ev, now_ns, err));
    }
    while ((done = wf_background_done(l->background))) {
        *any = true;
        WF_TRY(wf_master_on_work(l->master, &done, now_ns, err));
    }
    WF_TRY(wf_master_advance(l->master, now_ns, err));
    wf_net_flush(net, now_ns);
    return WF_OK;
}

bool wf_master_loop_close(wf_master_loop *l, bool waits)
{
    if (!wf_background_end(&l->background, waits))
        return false;
    wf_master_free(&l->master);
    wf_arena_free(&l->arena);
    free(l->state_dir);
    free(l->jobs_dir);
    free(l->checkpoint_dir);
    l->state_dir = l->jobs_dir = l->checkpoint_dir = NULL;
    return true;
}

void wf_master_loop_unlock(wf_master_loop *l)
{
    if (l->lock >= 0)
        close(l->lock);
    l->lock = -1;
}
