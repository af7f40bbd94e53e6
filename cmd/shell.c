/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/shell.c */
#include "cmd/shell.h"
#include "common/base/clock.h"
#include "common/base/rng.h"
#include "common/base/size.h"
#include "common/base/subnormal.h"
#include "common/log/log.h"

#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t stop_asked;

static void on_signal(int number)
{
    (void)number;
    stop_asked = 1;
}

bool wf_shell_stopping(void)
{
    return stop_asked;
}

static void catch_signals(void)
{
    struct sigaction stop = {.sa_handler = on_signal}, ignore = {.sa_handler = SIG_IGN};

    sigaction(SIGTERM, &stop, NULL);
    sigaction(SIGINT, &stop, NULL);
    sigaction(SIGPIPE, &ignore, NULL);
}

/* ---- the sign of life ---- */

/* A thread with a connection of its own: the main thread may compute for minutes. */
struct wf_beat {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool stop;
    int64_t every_ns;
    uint64_t incarnation;
    wf_transport *transport;
};

static void send_beat(struct wf_beat *b, wf_msg_pool *pool)
{
    wf_msg *m = NULL;

    if (wf_msg_new(pool, WF_BEAT, &m, NULL) != WF_OK)
        return;
    m->head.incarnation = b->incarnation;
    if (b->transport->ops->send(b->transport, &(wf_route){0}, m, NULL) != WF_OK)
        WF_LOG_DEBUG("beat.lost", "the master is away");
    wf_msg_free(pool, &m);
}

static void *run_beat(void *arg)
{
    struct wf_beat *b = arg;
    wf_msg_pool pool = {0};

    pthread_mutex_lock(&b->lock);
    while (!b->stop) {
        int64_t until_ns = wf_now_ns() + b->every_ns;
        struct timespec ts = {.tv_sec = until_ns / WF_NS_PER_S, .tv_nsec = until_ns % WF_NS_PER_S};

        send_beat(b, &pool);
        pthread_cond_timedwait(&b->wake, &b->lock, &ts);
    }
    pthread_mutex_unlock(&b->lock);
    wf_msg_pool_close(&pool);
    return NULL;
}

static wf_status start_beat(wf_shell *s, wf_err *err)
{
    struct wf_beat *b = calloc(1, sizeof *b);
    pthread_condattr_t attr;
    wf_status rc;

    if (!b)
        return wf_fail_nomem(err, sizeof *b);
    b->every_ns = WF_MAX(s->conf->heartbeat_ms, (int64_t)1) * WF_NS_PER_MS;
    b->incarnation = s->incarnation;
    pthread_mutex_init(&b->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&b->wake, &attr);
    pthread_condattr_destroy(&attr);
    rc = wf_zmq_dial(s->zmq, s->conf->master.address, s->self, s->incarnation, 1, &b->transport,
                     err);
    if (rc == WF_OK && pthread_create(&b->thread, NULL, run_beat, b) != 0)
        rc = wf_fail(err, WF_IO, NULL, "cannot start a thread");
    if (rc != WF_OK) {
        if (b->transport)
            b->transport->ops->close(b->transport, 0);
        free(b);
        return rc;
    }
    s->beat = b;
    return WF_OK;
}

static void stop_beat(struct wf_beat **beat)
{
    struct wf_beat *b = *beat;

    *beat = NULL;
    if (!b)
        return;
    pthread_mutex_lock(&b->lock);
    b->stop = true;
    pthread_cond_signal(&b->wake);
    pthread_mutex_unlock(&b->lock);
    pthread_join(b->thread, NULL);
    b->transport->ops->close(b->transport, 0);
    pthread_mutex_destroy(&b->lock);
    pthread_cond_destroy(&b->wake);
    free(b);
}

/* ---- beginning and end ---- */

static bool is_local(const char *address)
{
    return strncmp(address, "ipc://", 6) == 0 || strncmp(address, "tcp://127.", 10) == 0 ||
           strncmp(address, "tcp://localhost:", 16) == 0 ||
           strncmp(address, "tcp://[::1]", 11) == 0;
}

static bool all_local(const wf_cluster_conf *c)
{
    bool local = is_local(c->master.address);

    for (uint32_t i = 0; i < c->n_ps; i++)
        local &= is_local(c->ps[i].address);
    return local;
}

static wf_status find_me(wf_shell *s, wf_err *err)
{
    const wf_cluster_conf *c = s->conf;
    uint32_t n = s->self.role == WF_ROLE_PS       ? c->n_ps
                 : s->self.role == WF_ROLE_WORKER ? c->n_workers
                                                  : 1;

    if (s->self.index >= n)
        return wf_fail(err, WF_USAGE, NULL, "--task %u: %s names %u of that role", s->self.index,
                       c->path, n);
    s->me = s->self.role == WF_ROLE_PS       ? &c->ps[s->self.index]
            : s->self.role == WF_ROLE_WORKER ? &c->workers[s->self.index]
                                             : &c->master;
    return WF_OK;
}

static wf_status read_options(wf_shell *s, int argc, char *argv[], const char **cluster,
                              wf_err *err)
{
    static const struct option options[] = {{"cluster", required_argument, NULL, 'c'},
                                            {"task", required_argument, NULL, 't'},
                                            {"session", required_argument, NULL, 's'},
                                            {NULL, 0, NULL, 0}};
    char *end;
    int c;

    *cluster = "cluster.yaml";
    s->session = "";
    while ((c = getopt_long(argc, argv, "c:t:s:", options, NULL)) != -1) {
        if (c == 'c') {
            *cluster = optarg;
        } else if (c == 's') {
            s->session = optarg;
        } else if (c == 't') {
            unsigned long n = strtoul(optarg, &end, 10);

            if (*end || end == optarg || n > WF_CONF_MAX_TASKS)
                return wf_fail(err, WF_USAGE, NULL, "--task \"%s\" is no task number", optarg);
            s->self.index = (uint32_t)n;
        } else {
            return wf_fail(err, WF_USAGE, "weft up starts these programs",
                           "usage: %s --cluster FILE [--task N] [--session ID]", argv[0]);
        }
    }
    return WF_OK;
}

wf_status wf_shell_begin(wf_shell *s, wf_role role, int argc, char *argv[], wf_err *err)
{
    const char *level = getenv("WEFT_LOG"), *cluster;
    char who[32];

    *s = (wf_shell){.self = {role, 0}};
    WF_TRY(read_options(s, argc, argv, &cluster, err));
    wf_log_init(wf_task_str(s->self, who, sizeof who),
                level && strcmp(level, "debug") == 0 ? WF_DEBUG : WF_INFO);
    catch_signals();
    wf_flush_subnormals();
    s->incarnation = wf_random_id();
    WF_TRY(wf_cluster_load(cluster, &s->conf, err));
    WF_TRY(find_me(s, err));
    s->one_host = all_local(s->conf);
    return wf_zmq_new(&s->zmq, err);
}

wf_status wf_shell_connect(wf_shell *s, wf_net_conf *conf, wf_err *err)
{
    wf_transport *t = NULL;

    conf->self = s->self;
    conf->incarnation = s->incarnation;
    conf->pid = (uint64_t)getpid();
    conf->cluster = s->conf->name;
    WF_TRY(wf_net_new(conf, &s->net, err));
    if (s->self.role != WF_ROLE_WORKER) {
        WF_TRY(wf_zmq_listen(s->zmq, s->me->address, &t, err));
        wf_net_listen(s->net, &t);
    }
    if (s->self.role == WF_ROLE_MASTER)
        return WF_OK;
    WF_TRY(wf_zmq_dial(s->zmq, s->conf->master.address, s->self, s->incarnation, 0, &t, err));
    WF_TRY(wf_net_dial(s->net, (wf_task){WF_ROLE_MASTER, 0}, s->conf->master.address, &t,
                       &s->master, err));
    return start_beat(s, err);
}

wf_status wf_shell_dial(void *shell, wf_task task, const char *address, wf_transport **out,
                        wf_err *err)
{
    const wf_shell *s = shell;

    (void)task;
    return wf_zmq_dial(s->zmq, address, s->self, s->incarnation, 0, out, err);
}

void wf_shell_wait(const wf_shell *s, int fd, int spin_us)
{
    enum { LONGEST_MS = 50 };
    int64_t now_ns = wf_now_ns(), wait_ns = wf_net_deadline(s->net, now_ns) - now_ns;
    int64_t wait_ms = WF_MIN((wait_ns + WF_NS_PER_MS - 1) / WF_NS_PER_MS, (int64_t)LONGEST_MS);
    size_t n;
    wf_transport *const *t = wf_net_transports(s->net, &n);

    wf_zmq_wait(t, n, fd, WF_MAX(wait_ms, (int64_t)0), spin_us);
}

int wf_shell_end(wf_shell *s, wf_status rc, const wf_err *err)
{
    if (rc != WF_OK)
        WF_LOG_ERROR("task.ends", "%s%s%s", err->what, err->mend[0] ? "; " : "", err->mend);
    else
        WF_LOG_INFO("task.ends", "on request");
    stop_beat(&s->beat);
    wf_net_free(&s->net, rc == WF_OK ? 200 : 0);
    wf_zmq_free(&s->zmq);
    wf_cluster_free(&s->conf);
    return wf_exit_code(rc);
}
