/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/shell.c */
#include "cmd/shell.h"
#include "cmd/fellows.h"
#include "cmd/processor.h"
#include "common/base/clock.h"
#include "common/base/process.h"
#include "common/base/rng.h"
#include "common/base/size.h"
#include "common/base/subnormal.h"
#include "common/log/log.h"

#include <getopt.h>
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
    sigaction(SIGXFSZ, &ignore, NULL); /* a file that may grow no more is an error of write */
}

/* How often the role is asked what it waits for. */
static const int64_t TELL_NS = 250 * WF_NS_PER_MS;

void wf_shell_turn(wf_shell *s, void (*tell)(const void *role, wf_vitals *out), const void *role,
                   int64_t now_ns)
{
    wf_vitals v = {0};

    wf_beat_turn(s->beat);
    if (now_ns - s->told_ns < TELL_NS)
        return;
    s->told_ns = now_ns;
    tell(role, &v);
    if (!v.waits.since_ns)
        v.waits.since_ns = s->began_ns;
    wf_waiting_note(&s->waiting_log, &v.waits, now_ns);
    wf_beat_tell(s->beat, &v, s->net);
}

/* ---- beginning and end ---- */

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

static wf_status list_addresses(const wf_cluster_conf *c, const wf_task_conf tasks[], uint32_t n,
                                const char *const **out, wf_err *err)
{
    const char **all = wf_arena_array(c->arena, n, sizeof *all);

    if (!all)
        return wf_fail_nomem(err, n * sizeof *all);
    for (uint32_t i = 0; i < n; i++)
        all[i] = tasks[i].address;
    *out = all;
    return WF_OK;
}

static wf_status list_tasks(wf_shell *s, wf_err *err)
{
    const wf_cluster_conf *c = s->conf;

    s->tasks = (wf_tasks){.n_ps = c->n_ps, .n_workers = c->n_workers};
    WF_TRY(list_addresses(c, c->ps, c->n_ps, &s->tasks.ps, err));
    return list_addresses(c, c->workers, c->n_workers, &s->tasks.workers, err);
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

/* At one time: each task has a link and a connection for its signs of life; and commands. */
static uint32_t count_connections(const wf_cluster_conf *c, wf_role role)
{
    enum { COMMANDS = 64 };

    if (role == WF_ROLE_WORKER)
        return 2 * (2 * c->n_ps + 3 + c->n_workers); /* each with a socket and a monitor; ps for
                                                      * training and for sessions */
    return role == WF_ROLE_PS ? c->n_workers + 2 : 2 * (c->n_ps + c->n_workers) + COMMANDS;
}

wf_status wf_shell_begin(wf_shell *s, wf_role role, int argc, char *argv[], wf_err *err)
{
    const char *level = getenv("WEFT_LOG"), *cluster;
    char who[32];

    *s = (wf_shell){.self = {role, 0}, .began_ns = wf_now_ns()};
    WF_TRY(read_options(s, argc, argv, &cluster, err));
    wf_log_init(wf_task_str(s->self, who, sizeof who),
                level && strcmp(level, "debug") == 0 ? WF_DEBUG : WF_INFO);
    catch_signals();
    wf_flush_subnormals();
    s->incarnation = wf_random_id();
    WF_TRY(wf_cluster_load(cluster, &s->conf, err));
    WF_TRY(find_me(s, err));
    WF_TRY(list_tasks(s, err));
    s->one_host = wf_cluster_is_here(s->conf) && !s->conf->checksums_always;
    WF_TRY(wf_process_raise_files(err));
    wf_process_keep_blocks();
    WF_TRY(wf_wires_new(count_connections(s->conf, role), &s->wires, err));
    wf_wires_share(s->wires, !s->conf->shared_memory_off);
    wf_wires_stream(s->wires, !s->conf->direct_connections_off);
    return WF_OK;
}

static wf_status listen_everywhere(wf_shell *s, wf_err *err)
{
    const char *rest = s->me->address;
    char one[WF_ADDRESSES_MAX];

    while (wf_wires_next(&rest, one)) {
        wf_transport *t = NULL;

        WF_TRY(wf_wires_listen(s->wires, one, &t, err));
        wf_net_listen(s->net, &t);
    }
    return WF_OK;
}

/* How long a silent peer is remembered. WEFT_GONE_MS is for tests. */
static int64_t gone_ns(int64_t otherwise_ns)
{
    const char *given = getenv("WEFT_GONE_MS");

    return given ? strtol(given, NULL, 10) * WF_NS_PER_MS : otherwise_ns;
}

wf_status wf_shell_connect(wf_shell *s, wf_net_conf *conf, wf_err *err)
{
    wf_transport *t = NULL;

    conf->self = s->self;
    conf->incarnation = s->incarnation;
    conf->pid = (uint64_t)getpid();
    conf->cluster = s->conf->name;
    conf->gone_ns = gone_ns(conf->gone_ns);
    WF_TRY(wf_net_new(conf, &s->net, err));
    if (s->self.role != WF_ROLE_WORKER || wf_fellows_at_addresses(s->conf))
        WF_TRY(listen_everywhere(s, err));
    if (s->self.role == WF_ROLE_MASTER)
        return WF_OK;
    wf_processor_stay(s->conf, s->self);
    WF_TRY(wf_wires_dial(s->wires, s->conf->master.address, &t, err));
    WF_TRY(wf_net_dial(s->net, (wf_task){WF_ROLE_MASTER, 0}, s->conf->master.address, &t,
                       &s->master, err));
    return wf_beat_start(&(wf_beat_conf){.wires = s->wires,
                                         .master = s->conf->master.address,
                                         .incarnation = s->incarnation,
                                         .every_ns = s->conf->heartbeat_ms * WF_NS_PER_MS,
                                         .stuck_ns = s->conf->stuck_ms * WF_NS_PER_MS},
                         &s->beat, err);
}

wf_status wf_shell_dial(void *shell, wf_task task, const char *address, wf_transport **out,
                        wf_err *err)
{
    const wf_shell *s = shell;

    (void)task;
    return wf_wires_dial(s->wires, address, out, err);
}

void wf_shell_wait(wf_shell *s, int fd, bool soon)
{
    enum { LONGEST_MS = 50 };
    int64_t now_ns = wf_now_ns(), wait_ns = wf_net_deadline(s->net, now_ns) - now_ns;
    int64_t wait_ms = WF_MIN((wait_ns + WF_NS_PER_MS - 1) / WF_NS_PER_MS, (int64_t)LONGEST_MS);
    size_t n;
    wf_transport *const *t = wf_net_transports(s->net, &n);

    wf_wait(t, n, fd, WF_MAX(wait_ms, (int64_t)0), soon ? &s->spin : NULL);
}

int wf_shell_end(wf_shell *s, wf_status rc, const wf_err *err)
{
    if (rc != WF_OK)
        WF_LOG_ERROR("task.ends", "%s%s%s", err->what, err->hint[0] ? "; " : "", err->hint);
    else
        WF_LOG_INFO("task.ends", "on request");
    wf_beat_stop(&s->beat);
    wf_net_free(&s->net, rc == WF_OK ? 200 : 0);
    wf_wires_free(&s->wires);
    wf_cluster_free(&s->conf);
    return wf_exit_code(rc);
}
