/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/local.c */
#include "cmd/cli/local.h"
#include "cmd/master_loop.h"
#include "common/base/clock.h"
#include "common/base/rng.h"
#include "common/base/size.h"
#include "common/base/subnormal.h"
#include "common/wire/wait.h"
#include "common/wire/wires.h"
#include "worker/trainer.h"
#include "worker/worker.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char MASTER[] = "mem://master";

struct wf_local {
    wf_cluster_conf *conf;
    wf_wires *wires;
    wf_master_loop loop;
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

static wf_status make_conf(wf_local *l, const wf_cluster_conf *around, wf_err *err)
{
    char folder[PATH_MAX];

    if (snprintf(folder, sizeof folder, "%s/local", around->state_dir) >= (int)sizeof folder)
        return wf_fail(err, WF_INVALID, NULL, "the path %.200s is too long", around->state_dir);
    WF_TRY(wf_cluster_local(folder, 0, 1, &l->conf, err));
    l->conf->checkpoint_dir = around->checkpoint_dir;
    return WF_OK;
}

static wf_status open_master(wf_local *l, wf_err *err)
{
    wf_net_conf conf = wf_net_defaults();
    wf_transport *t = NULL;

    conf.self = (wf_task){WF_ROLE_MASTER, 0};
    conf.incarnation = wf_random_id();
    conf.pid = (uint64_t)getpid();
    conf.cluster = l->conf->name;
    WF_TRY(wf_master_loop_open(&l->loop, l->conf, conf.incarnation, "", "local", err));
    wf_master_loop_admit(&l->loop, &conf);
    WF_TRY(wf_net_new(&conf, &l->master_net, err));
    WF_TRY(wf_wires_listen(l->wires, MASTER, &t, err));
    wf_net_listen(l->master_net, &t);
    wf_master_set_net(l->loop.master, l->master_net);
    return WF_OK;
}

static uint32_t count_threads(void)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);

    return n < 1 ? 1 : (uint32_t)WF_MIN(n, (long)WF_POOL_MAX);
}

static wf_status open_worker(wf_local *l, wf_err *err)
{
    wf_net_conf conf = wf_net_defaults();
    static const char *const cpu = "cpu";
    const wf_task to = {WF_ROLE_MASTER, 0};
    wf_transport *t = NULL;
    wf_peer *master = NULL;

    conf.self = (wf_task){WF_ROLE_WORKER, 0};
    conf.incarnation = wf_random_id();
    conf.pid = (uint64_t)getpid();
    conf.cluster = l->conf->name;
    WF_TRY(wf_net_new(&conf, &l->worker_net, err));
    WF_TRY(wf_wires_dial(l->wires, MASTER, &t, err));
    WF_TRY(wf_net_dial(l->worker_net, to, MASTER, &t, &master, err));
    WF_TRY(wf_pool_new(count_threads(), &l->pool, err));
    WF_TRY(wf_trainer_new(&(wf_trainer_conf){.devices = &cpu,
                                             .n_devices = 1,
                                             .pool = l->pool,
                                             .loss_log = getenv("WEFT_LOSS_LOG"),
                                             .flush = nothing},
                          &l->trainer, err));
    return wf_worker_new(&(wf_worker_conf){.incarnation = conf.incarnation,
                                           .ops = wf_trainer_ops(l->trainer),
                                           .disk = wf_disk_posix(),
                                           .pool = l->pool,
                                           .progress_ns = 100 * WF_NS_PER_MS,
                                           .session = "",
                                           .wall_ms = wall_ms},
                         l->worker_net, master, &l->worker, err);
}

wf_status wf_local_open(const wf_cluster_conf *conf, wf_local **out, wf_err *err)
{
    wf_local *l = calloc(1, sizeof *l);

    *out = l;
    if (!l)
        return wf_fail_nomem(err, sizeof *l);
    l->loop.lock = -1;
    wf_flush_subnormals();
    WF_TRY(make_conf(l, conf, err));
    WF_TRY(wf_wires_new(1, &l->wires, err));
    WF_TRY(open_master(l, err));
    return open_worker(l, err);
}

void wf_local_close(wf_local **l)
{
    wf_local *it = *l;

    *l = NULL;
    if (!it)
        return;
    wf_worker_free(&it->worker);
    wf_trainer_free(&it->trainer);
    wf_pool_free(&it->pool);
    wf_net_free(&it->worker_net, 0);
    /* A thread that still compiles or reads reads what it was given: that stays. */
    if (!wf_master_loop_close(&it->loop))
        return;
    wf_net_free(&it->master_net, 0);
    wf_master_loop_unlock(&it->loop);
    wf_wires_free(&it->wires);
    wf_cluster_free(&it->conf);
    free(it);
}

const wf_cluster_conf *wf_local_conf(const wf_local *l)
{
    return l->conf;
}

/* ---- the loop ---- */

static wf_status turn_worker(wf_local *l, bool *any, wf_err *err)
{
    uint32_t step = wf_worker_step(l->worker);
    int64_t now_ns = wf_now_ns();
    wf_event ev;

    wf_net_poll(l->worker_net, now_ns);
    while (wf_net_event(l->worker_net, now_ns, &ev)) {
        *any = true;
        WF_TRY(wf_worker_on_event(l->worker, &ev, now_ns, err));
    }
    WF_TRY(wf_worker_advance(l->worker, now_ns, err));
    WF_TRY(wf_trainer_work(l->trainer, l->worker, err));
    *any |= wf_worker_step(l->worker) != step;
    wf_net_flush(l->worker_net, wf_now_ns());
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

/* Sleeps until something is due or done in the background, for `ms` at most. */
static void rest(const wf_local *l, int64_t ms)
{
    int64_t now_ns = wf_now_ns();
    int64_t until_ns =
        WF_MIN(wf_net_deadline(l->master_net, now_ns), wf_net_deadline(l->worker_net, now_ns));

    ms = WF_MIN(ms, (until_ns - now_ns + WF_NS_PER_MS - 1) / WF_NS_PER_MS);
    wf_wait(NULL, 0, wf_background_fd(l->loop.background), ms, 0);
}

static wf_status dial(void *arg, wf_transport **out, wf_err *err)
{
    wf_local *l = arg;

    return wf_wires_dial(l->wires, MASTER, out, err);
}

/* The cluster goes on until who waits has a message, or for `ms`. */
static wf_status wait(void *arg, wf_net *whose, int64_t ms, wf_err *err)
{
    enum { LONGEST_MS = 50 };
    int64_t end_ns = wf_now_ns() + ms * WF_NS_PER_MS, left_ns;
    wf_local *l = arg;

    while (!has_message(whose) && (left_ns = end_ns - wf_now_ns()) > 0) {
        bool any = false;

        WF_TRY(wf_master_loop_turn(&l->loop, l->master_net, wf_now_ns(), &any, err));
        WF_TRY(turn_worker(l, &any, err));
        if (!any && !has_message(l->master_net) && !has_message(l->worker_net))
            rest(l, WF_MIN(left_ns / WF_NS_PER_MS, (int64_t)LONGEST_MS));
    }
    return WF_OK;
}

wf_ask_way wf_local_way(wf_local *l)
{
    return (wf_ask_way){.arg = l, .dial = dial, .wait = wait, .here = true};
}
