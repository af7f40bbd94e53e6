/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/fit.c */
#include "runtime/fit.h"
#include "common/base/clock.h"
#include "common/base/rng.h"
#include "common/base/size.h"
#include "common/wire/wires.h"
#include "runtime/master_loop.h"
#include "worker/trainer.h"
#include "worker/worker.h"

#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char MASTER[] = "mem://master";

struct wf_fit {
    wf_cluster_conf *conf;
    wf_wires *wires;
    wf_master_loop loop;
    char jobs[PATH_MAX]; /* a folder for each run */
    wf_net *master_net, *worker_net;
    wf_pool *pool;
    wf_trainer *trainer;
    wf_worker *worker;
};

/* What is begun here ends here: there is nobody else to let go first. */
static void nothing(void *arg)
{
    (void)arg;
}

static int64_t wall_ms(void *arg)
{
    (void)arg;
    return wf_wall_ns() / WF_NS_PER_MS;
}

/* What its only worker has. */
static wf_status set_devices(wf_fit *f, const wf_fit_conf *how, wf_err *err)
{
    const char **devices = wf_arena_array(f->conf->arena, how->n_devices + 1, sizeof(*devices));

    if (!devices)
        return wf_fail_nomem(err, how->n_devices * sizeof(*devices));
    for (size_t i = 0; i < how->n_devices; i++) {
        devices[i] = wf_arena_strdup(f->conf->arena, how->devices[i]);
        if (!devices[i])
            return wf_fail_nomem(err, strlen(how->devices[i]));
    }
    if (how->n_devices) {
        f->conf->workers[0].devices = devices;
        f->conf->workers[0].n_devices = (uint32_t)how->n_devices;
    }
    return WF_OK;
}

static wf_status make_conf(wf_fit *f, const wf_fit_conf *conf, wf_err *err)
{
    char folder[PATH_MAX];

    if (snprintf(folder, sizeof folder, "%s/local", conf->state_dir) >= (int)sizeof folder)
        return wf_fail(err, WF_INVALID, NULL, "the path %.200s is too long", conf->state_dir);
    WF_TRY(wf_cluster_local(folder, 0, 1, false, &f->conf, err));
    f->conf->checkpoint_dir = wf_arena_strdup(f->conf->arena, conf->checkpoint_dir);
    return f->conf->checkpoint_dir ? set_devices(f, conf, err)
                                   : wf_fail_nomem(err, strlen(conf->checkpoint_dir));
}

static wf_disk *disk_of(const wf_fit_conf *how)
{
    return how->temporary ? wf_disk_temporary() : wf_disk_posix();
}

static wf_status open_master(wf_fit *f, const wf_fit_conf *how, wf_err *err)
{
    wf_net_conf conf = wf_net_defaults();
    wf_transport *t = NULL;

    conf.self = (wf_task){WF_ROLE_MASTER, 0};
    conf.incarnation = wf_random_id();
    conf.pid = (uint64_t)getpid();
    conf.cluster = f->conf->name;
    snprintf(f->jobs, sizeof f->jobs, "%s/jobs",
             how->state_dir); /* shorter than that of make_conf */
    WF_TRY(wf_master_loop_open(&f->loop, f->conf, conf.incarnation, "", f->jobs,
                               how->n_devices ? "stages" : "local", disk_of(how), err));
    f->loop.optimizer = how->optimizer;
    wf_master_loop_admit(&f->loop, &conf);
    WF_TRY(wf_net_new(&conf, &f->master_net, err));
    WF_TRY(wf_wires_listen(f->wires, MASTER, &t, err));
    wf_net_listen(f->master_net, &t);
    wf_master_set_net(f->loop.master, f->master_net);
    return WF_OK;
}

static wf_status open_worker(wf_fit *f, const wf_fit_conf *how, wf_err *err)
{
    wf_net_conf conf = wf_net_defaults();
    const char *device = how->device ? how->device : "cpu";
    const wf_task to = {WF_ROLE_MASTER, 0};
    wf_transport *t = NULL;
    wf_peer *master = NULL;

    conf.self = (wf_task){WF_ROLE_WORKER, 0};
    conf.incarnation = wf_random_id();
    conf.pid = (uint64_t)getpid();
    conf.cluster = f->conf->name;
    WF_TRY(wf_net_new(&conf, &f->worker_net, err));
    WF_TRY(wf_wires_dial(f->wires, MASTER, &t, err));
    WF_TRY(wf_net_dial(f->worker_net, to, MASTER, &t, &master, err));
    WF_TRY(wf_pool_new(how->threads, &f->pool, err));
    WF_TRY(wf_trainer_new(&(wf_trainer_conf){.devices = how->n_devices ? how->devices : &device,
                                             .n_devices = how->n_devices ? how->n_devices : 1,
                                             .pool = f->pool,
                                             .jobs_dir = f->jobs,
                                             .loss_log = how->loss_log,
                                             .memory = how->memory,
                                             .flush = nothing},
                          &f->trainer, err));
    return wf_worker_new(&(wf_worker_conf){.incarnation = conf.incarnation,
                                           .ops = wf_trainer_ops(f->trainer),
                                           .disk = disk_of(how),
                                           .pool = f->pool,
                                           .progress_ns = 100 * WF_NS_PER_MS,
                                           .session = "",
                                           .wall_ms = wall_ms},
                         f->worker_net, master, &f->worker, err);
}

wf_status wf_fit_open(const wf_fit_conf *conf, wf_fit **out, wf_err *err)
{
    wf_fit *f = calloc(1, sizeof *f);

    *out = f;
    if (!f)
        return wf_fail_nomem(err, sizeof *f);
    f->loop.lock = -1;
    WF_TRY(make_conf(f, conf, err));
    WF_TRY(wf_wires_new(1, &f->wires, err));
    WF_TRY(open_master(f, conf, err));
    return open_worker(f, conf, err);
}

void wf_fit_close(wf_fit **f)
{
    wf_fit *it = *f;

    *f = NULL;
    if (!it)
        return;
    wf_worker_free(&it->worker);
    wf_trainer_free(&it->trainer);
    wf_pool_free(&it->pool);
    wf_net_free(&it->worker_net, 0);
    /* A thread that still compiles or reads has what is lent until now. */
    (void)wf_master_loop_close(&it->loop, true);
    wf_net_free(&it->master_net, 0);
    wf_master_loop_unlock(&it->loop);
    wf_wires_free(&it->wires);
    wf_cluster_free(&it->conf);
    free(it);
}

const wf_cluster_conf *wf_fit_cluster(const wf_fit *f)
{
    return f->conf;
}

wf_master *wf_fit_master(wf_fit *f)
{
    return f->loop.master;
}

/* ---- the loop ---- */

static wf_status turn_worker(wf_fit *f, bool *any, wf_err *err)
{
    uint32_t step = wf_worker_step(f->worker);
    int64_t now_ns = wf_now_ns();
    wf_event ev;

    wf_net_poll(f->worker_net, now_ns);
    while (wf_net_event(f->worker_net, now_ns, &ev)) {
        *any = true;
        WF_TRY(wf_worker_on_event(f->worker, &ev, now_ns, err));
    }
    WF_TRY(wf_worker_advance(f->worker, now_ns, err));
    WF_TRY(wf_trainer_work(f->trainer, f->worker, err));
    *any |= wf_worker_step(f->worker) != step;
    wf_net_flush(f->worker_net, wf_now_ns());
    return WF_OK;
}

static bool has_message(wf_net *net)
{
    size_t n;
    wf_transport *const *t = wf_net_transports(net, &n);

    for (size_t i = 0; i < n; i++)
        if (t[i]->ops->ready(t[i]))
            return true;
    return false;
}

/* Sleeps until something is due or done in the background, or by a stage, for `ms` at most. */
static void rest(const wf_fit *f, int64_t ms)
{
    struct pollfd fds[] = {{.fd = wf_background_fd(f->loop.background), .events = POLLIN},
                           {.fd = wf_trainer_fd(f->trainer), .events = POLLIN}};
    int64_t now_ns = wf_now_ns();
    int64_t until_ns =
        WF_MIN(wf_net_deadline(f->master_net, now_ns), wf_net_deadline(f->worker_net, now_ns));

    ms = WF_MIN(ms, (until_ns - now_ns + WF_NS_PER_MS - 1) / WF_NS_PER_MS);
    poll(fds, WF_COUNT(fds), (int)ms);
}

wf_status wf_fit_turn(wf_fit *f, int64_t ms, wf_err *err)
{
    enum { LONGEST_MS = 50 };
    bool any = false;

    WF_TRY(wf_master_loop_turn(&f->loop, f->master_net, wf_now_ns(), &any, err));
    WF_TRY(turn_worker(f, &any, err));
    if (!any && !has_message(f->master_net) && !has_message(f->worker_net) &&
        !wf_trainer_is_busy(f->trainer))
        rest(f, WF_MIN(ms, (int64_t)LONGEST_MS));
    return WF_OK;
}

wf_status wf_fit_dial(void *fit, wf_transport **out, wf_err *err)
{
    wf_fit *f = fit;

    return wf_wires_dial(f->wires, MASTER, out, err);
}

wf_status wf_fit_wait(void *fit, wf_net *whose, int64_t ms, wf_err *err)
{
    int64_t end_ns = wf_now_ns() + ms * WF_NS_PER_MS, left_ns;

    while (!has_message(whose) && (left_ns = end_ns - wf_now_ns()) > 0)
        WF_TRY(wf_fit_turn(fit, left_ns / WF_NS_PER_MS, err));
    return WF_OK;
}
