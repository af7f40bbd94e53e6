/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/super.c - the supervisor's loop: spawn, wait, spawn again. One thread; signals come in by
 * a descriptor. */
#include "cmd/cli/super.h"
#include "cmd/cli/place.h"
#include "cmd/cli/ports.h"
#include "cmd/cli/restart.h"
#include "cmd/cli/spawn.h"
#include "cmd/cli/super_down.h"
#include "common/base/file.h"
#include "common/base/rng.h"
#include "common/log/log.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

/* A task that does not end within this is killed; a ps may be writing a shard. */
static const int64_t STOP_NS = 10 * WF_NS_PER_S;
enum { TURN_MS = 100 };

typedef struct task {
    wf_super_role role;
    uint32_t index;
    const wf_task_conf *conf;
    pid_t pid; /* 0: not running */
    int64_t started_ns;
    int64_t start_at_ns; /* when to start it again; 0: not planned */
    wf_restart restart;
} task;

typedef struct supervisor {
    const wf_cluster_conf *conf;
    const wf_super_hooks *hooks;
    task *tasks;
    size_t n;
    char session[20];
    int lock, signals;
    bool stopping;
} supervisor;

const char *wf_super_role_name(wf_super_role role)
{
    static const char *const names[] = {"master", "ps", "worker"};

    return names[role];
}

static const char *task_name(const task *t, char *text, size_t size)
{
    if (t->role == WF_SUPER_MASTER)
        snprintf(text, size, "master");
    else
        snprintf(text, size, "%s/%" PRIu32, wf_super_role_name(t->role), t->index);
    return text;
}

/* ---- state on disk ---- */

static wf_status state_path(const wf_cluster_conf *conf, const char *name, char path[PATH_MAX],
                            wf_err *err)
{
    if (snprintf(path, PATH_MAX, "%s/%s", conf->state_dir, name) >= PATH_MAX)
        return wf_fail(err, WF_INVALID, NULL, "the path %.200s... is too long", conf->state_dir);
    return WF_OK;
}

static wf_status make_state(const wf_cluster_conf *conf, wf_err *err)
{
    static const char *const folders[] = {"logs", "run"};
    char path[PATH_MAX];

    for (size_t i = 0; i < WF_COUNT(folders); i++) {
        WF_TRY(state_path(conf, folders[i], path, err));
        WF_TRY(wf_make_dirs(path, err));
    }
    return wf_make_dirs(conf->checkpoint_dir, err);
}

/* ---- tasks ---- */

static void add_task(supervisor *s, wf_super_role role, uint32_t index, const wf_task_conf *conf)
{
    if (wf_port_is_here(conf))
        s->tasks[s->n++] = (task){.role = role, .index = index, .conf = conf};
}

static wf_status list_tasks(supervisor *s, wf_err *err)
{
    const wf_cluster_conf *c = s->conf;
    char name[32];

    s->tasks = calloc(1 + (size_t)c->n_ps + c->n_workers, sizeof *s->tasks);
    if (!s->tasks)
        return wf_fail_nomem(err, sizeof *s->tasks);
    add_task(s, WF_SUPER_MASTER, 0, &c->master);
    for (uint32_t i = 0; i < c->n_ps; i++)
        add_task(s, WF_SUPER_PS, i, &c->ps[i]);
    for (uint32_t i = 0; i < c->n_workers; i++)
        add_task(s, WF_SUPER_WORKER, i, &c->workers[i]);
    if (s->n == 0)
        return wf_fail(err, WF_INVALID, "run this on a host that the file names",
                       "%s has no task on this host", c->path);
    for (size_t i = 0; i < s->n; i++)
        WF_TRY(
            wf_port_check_free(s->tasks[i].conf, task_name(&s->tasks[i], name, sizeof name), err));
    return WF_OK;
}

static wf_status log_path(const supervisor *s, const task *t, char path[PATH_MAX], wf_err *err)
{
    char name[48];

    snprintf(name, sizeof name, "logs/%s-%" PRIu32 ".log", wf_super_role_name(t->role), t->index);
    return state_path(s->conf, name, path, err);
}

static wf_status start_task(supervisor *s, task *t, int64_t now_ns, wf_err *err)
{
    char program[PATH_MAX], log[PATH_MAX], number[16], name[32];
    const char *argv[8] = {program, "--cluster", s->conf->path, "--session", s->session};

    snprintf(name, sizeof name, "weft-%s", wf_super_role_name(t->role));
    WF_TRY(wf_place_program(name, program, sizeof program, err));
    WF_TRY(log_path(s, t, log, err));
    snprintf(number, sizeof number, "%" PRIu32, t->index);
    if (t->role != WF_SUPER_MASTER) {
        argv[5] = "--task";
        argv[6] = number;
    }
    WF_TRY(wf_spawn(argv, log, &t->pid, err));
    t->started_ns = now_ns;
    t->start_at_ns = 0;
    WF_LOG_INFO("task.started", "task=%s pid=%ld", task_name(t, name, sizeof name), (long)t->pid);
    return WF_OK;
}

static wf_status start_all(supervisor *s, wf_err *err)
{
    for (size_t i = 0; i < s->n; i++)
        WF_TRY(start_task(s, &s->tasks[i], wf_now_ns(), err));
    return WF_OK;
}

static void report_death(supervisor *s, const task *t, pid_t pid, bool down, const char *reason)
{
    wf_super_death death = {.role = t->role,
                            .index = t->index,
                            .pid = pid,
                            .reason = reason,
                            .down = down,
                            .session = s->session};

    if (s->hooks && s->hooks->on_death)
        s->hooks->on_death(s->hooks->arg, &death);
}

/* The task is not started again: `why` and the path of its log go to all who may ask. */
static void give_up(supervisor *s, task *t, pid_t pid, const char *how, const char *why)
{
    char log[PATH_MAX] = "", name[32], reason[PATH_MAX + 256];
    wf_err err;

    t->start_at_ns = 0;
    task_name(t, name, sizeof name);
    if (log_path(s, t, log, &err) != WF_OK)
        log[0] = 0;
    snprintf(reason, sizeof reason, "%s (%s); see %s", how, why, log);
    WF_LOG_ERROR("task.given_up", "task=%s pid=%ld reason=\"%s\"", name, (long)pid, reason);
    if (wf_super_down_add(s->conf, name, reason, &err) != WF_OK)
        WF_LOG_ERROR("task.unlisted", "task=%s why=\"%s\"", name, err.what);
    report_death(s, t, pid, true, reason);
}

static void describe_end(int status, char *text, size_t size)
{
    if (WIFSIGNALED(status))
        snprintf(text, size, "killed by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else
        snprintf(text, size, "ended with exit code %d", WEXITSTATUS(status));
}

static void plan_restart(supervisor *s, task *t, pid_t pid, const char *how, int64_t now_ns)
{
    char name[32];

    if (!wf_restart_on_death(&t->restart, t->started_ns, now_ns, &t->start_at_ns)) {
        snprintf(name, sizeof name, "%d restarts within 10 minutes", WF_RESTART_BUDGET);
        give_up(s, t, pid, how, name);
        return;
    }
    WF_LOG_WARN("task.died", "task=%s pid=%ld how=\"%s\" again_in_ms=%" PRId64,
                task_name(t, name, sizeof name), (long)pid, how,
                (t->start_at_ns - now_ns) / WF_NS_PER_MS);
    report_death(s, t, pid, false, how);
}

static void on_death(supervisor *s, task *t, int status, int64_t now_ns)
{
    const char *useless = wf_restart_useless(status);
    pid_t pid = t->pid;
    char how[96];

    t->pid = 0;
    if (s->stopping)
        return;
    describe_end(status, how, sizeof how);
    if (useless)
        give_up(s, t, pid, how, useless);
    else
        plan_restart(s, t, pid, how, now_ns);
}

static void reap(supervisor *s)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        for (size_t i = 0; i < s->n; i++)
            if (s->tasks[i].pid == pid)
                on_death(s, &s->tasks[i], status, wf_now_ns());
}

static void restart_due(supervisor *s)
{
    int64_t now_ns = wf_now_ns();

    for (size_t i = 0; i < s->n; i++) {
        task *t = &s->tasks[i];
        wf_err err;

        if (t->pid || !t->start_at_ns || now_ns < t->start_at_ns)
            continue;
        if (start_task(s, t, now_ns, &err) == WF_OK)
            continue;
        t->started_ns = now_ns;
        plan_restart(s, t, 0, err.what, now_ns);
    }
}

static size_t signal_all(const supervisor *s, int number)
{
    size_t alive = 0;

    for (size_t i = 0; i < s->n; i++) {
        if (!s->tasks[i].pid)
            continue;
        alive++;
        if (number)
            kill(s->tasks[i].pid, number);
    }
    return alive;
}

static int wait_ms(const supervisor *s)
{
    int64_t now_ns = wf_now_ns(), ms = TURN_MS;

    for (size_t i = 0; i < s->n; i++) {
        int64_t left = (s->tasks[i].start_at_ns - now_ns) / WF_NS_PER_MS;

        if (!s->tasks[i].pid && s->tasks[i].start_at_ns && left < ms)
            ms = left < 1 ? 1 : left;
    }
    return (int)ms;
}

/* One turn of the loop; true when it is asked to end. */
static bool turn(supervisor *s)
{
    struct pollfd p = {.fd = s->signals, .events = POLLIN};
    struct signalfd_siginfo got;
    bool stop = false;

    if (poll(&p, 1, wait_ms(s)) > 0)
        while (read(s->signals, &got, sizeof got) == (ssize_t)sizeof got)
            stop = stop || got.ssi_signo == SIGTERM || got.ssi_signo == SIGINT;
    reap(s);
    if (!s->stopping)
        restart_due(s);
    if (s->hooks && s->hooks->on_turn)
        s->hooks->on_turn(s->hooks->arg, wf_now_ns());
    return stop;
}

static void stop_all(supervisor *s)
{
    int64_t end_ns = wf_now_ns() + STOP_NS;
    bool killed = false;

    s->stopping = true;
    signal_all(s, SIGTERM);
    while (signal_all(s, 0) > 0) {
        turn(s);
        if (!killed && wf_now_ns() > end_ns) {
            WF_LOG_WARN("task.killed", "left=%zu", signal_all(s, SIGKILL));
            killed = true;
        }
    }
}

static wf_status catch_signals(supervisor *s, wf_err *err)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGHUP); /* read and ignored: the terminal it came from may close */
    sigprocmask(SIG_BLOCK, &set, NULL);
    s->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return s->signals >= 0 ? WF_OK : wf_fail_errno(err, errno, NULL, "cannot watch for signals");
}

static void tell_ready(int fd, wf_status rc, const wf_err *err)
{
    wf_err empty = {0};

    if (fd < 0)
        return;
    if (wf_write_all(fd, rc == WF_OK ? &empty : err, sizeof empty, "the waiting command", NULL) !=
        WF_OK)
        WF_LOG_WARN("supervisor.unheard", "pid=%ld", (long)getpid());
    close(fd);
}

wf_status wf_super_run(const wf_cluster_conf *conf, const wf_super_hooks *hooks, int ready_fd,
                       wf_err *err)
{
    supervisor s = {.conf = conf, .hooks = hooks, .lock = -1, .signals = -1};
    wf_err why = {0};
    wf_status rc;

    snprintf(s.session, sizeof s.session, "%016" PRIx64, wf_random_id());
    rc = make_state(conf, &why);
    if (rc == WF_OK)
        rc = wf_super_lock(conf, &s.lock, &why);
    if (rc == WF_OK)
        rc = wf_super_down_clear(conf, &why);
    if (rc == WF_OK)
        rc = list_tasks(&s, &why);
    if (rc == WF_OK)
        rc = catch_signals(&s, &why);
    if (rc == WF_OK)
        rc = start_all(&s, &why);
    if (rc == WF_OK)
        tell_ready(ready_fd, rc, &why);
    while (rc == WF_OK && !turn(&s))
        continue;
    stop_all(&s);
    if (s.signals >= 0)
        close(s.signals);
    if (s.lock >= 0)
        close(s.lock);
    free(s.tasks);
    if (rc != WF_OK) /* not before the lock is gone: who tries again must not find it */
        tell_ready(ready_fd, rc, &why);
    if (rc != WF_OK && err)
        *err = why;
    return rc;
}
