/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/super.c - the process of the supervisor: what its role (supervisor/supervisor.h) decides
 * is done here, by fork, exec and kill, and it learns of ends from waitpid. One thread; signals
 * come in by a descriptor. */
#include "cmd/cli/super.h"
#include "cmd/cli/ask.h"
#include "cmd/cli/place.h"
#include "cmd/cli/ports.h"
#include "cmd/cli/spawn.h"
#include "cmd/cli/super_down.h"
#include "cmd/cli/tail.h"
#include "common/base/arena.h"
#include "common/base/bytes.h"
#include "common/base/disk.h"
#include "common/base/file.h"
#include "common/base/rng.h"
#include "common/base/size.h"
#include "common/log/log.h"
#include "supervisor/supervisor.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TURN_MS = 100 };

typedef struct driver {
    const wf_cluster_conf *conf;
    wf_arena *arena; /* of the tasks */
    wf_supervisor_task *tasks;
    uint32_t n;
    char session[20];
    wf_ask *ask; /* the link to the master */
    wf_supervisor *role;
    int lock, signals;
} driver;

/* ---- state on disk ---- */

/* The line of the cluster file that begins with a key; 0: none does. */
static int line_of(const wf_cluster_conf *conf, const char *key)
{
    wf_bytes text = {0};
    int line = 0, at = 1;

    if (wf_file_read(conf->path, WF_CONF_MAX_BYTES, &text, NULL) == WF_OK)
        for (const char *s = wf_bytes_str(&text); *s && !line; at++) {
            line = strncmp(s, key, strlen(key)) == 0 ? at : 0;
            s += strcspn(s, "\n");
            s += *s == '\n';
        }
    wf_bytes_close(&text);
    return line;
}

/* The folder that a key names, made; an error begins with the line of that key. */
static wf_status make_named(const wf_cluster_conf *conf, const char *key, const char *path,
                            wf_err *err)
{
    wf_status rc = wf_disk_make_dirs(wf_disk_posix(), path, err);
    struct stat st;
    int line;

    if (rc == WF_OK && stat(path, &st) == 0 && !S_ISDIR(st.st_mode))
        rc = wf_fail(err, WF_IO, "give another path", "%s is a file, and no folder", path);
    line = rc == WF_OK ? 0 : line_of(conf, key);
    return line ? wf_err_wrap(err, rc, "%s:%d: %s", conf->path, line, key) : rc;
}

wf_status wf_super_make_state(const wf_cluster_conf *conf, wf_err *err)
{
    static const char *const folders[] = {"logs", "run"};
    char path[PATH_MAX];

    WF_TRY(make_named(conf, "state_dir", conf->state_dir, err));
    for (size_t i = 0; i < WF_COUNT(folders); i++) {
        if (snprintf(path, sizeof path, "%s/%s", conf->state_dir, folders[i]) >= PATH_MAX)
            return wf_fail(err, WF_INVALID, NULL, "the path %.200s... is too long",
                           conf->state_dir);
        WF_TRY(wf_disk_make_dirs(wf_disk_posix(), path, err));
    }
    return make_named(conf, "checkpoint_dir", conf->checkpoint_dir, err);
}

/* ---- tasks ---- */

static wf_status add_task(driver *d, wf_role role, uint32_t index, const wf_task_conf *conf,
                          wf_err *err)
{
    wf_task task = {role, index};
    char name[32];

    if (!wf_port_is_here(conf))
        return WF_OK;
    d->tasks[d->n].task = task;
    d->tasks[d->n].log = wf_arena_printf(d->arena, "%s/logs/%s-%" PRIu32 ".log", d->conf->state_dir,
                                         wf_role_name(role), index);
    if (!d->tasks[d->n++].log)
        return wf_fail_nomem(err, PATH_MAX);
    return wf_port_check_free(conf, wf_task_str(task, name, sizeof name), err);
}

static wf_status list_tasks(driver *d, wf_err *err)
{
    const wf_cluster_conf *c = d->conf;

    d->tasks = wf_arena_array(d->arena, 1 + (size_t)c->n_ps + c->n_workers, sizeof *d->tasks);
    if (!d->tasks)
        return wf_fail_nomem(err, sizeof *d->tasks);
    WF_TRY(add_task(d, WF_ROLE_MASTER, 0, &c->master, err));
    for (uint32_t i = 0; i < c->n_ps; i++)
        WF_TRY(add_task(d, WF_ROLE_PS, i, &c->ps[i], err));
    for (uint32_t i = 0; i < c->n_workers; i++)
        WF_TRY(add_task(d, WF_ROLE_WORKER, i, &c->workers[i], err));
    if (d->n == 0)
        return wf_fail(err, WF_INVALID, "run this on a host that the file names",
                       "%s has no task on this host", c->path);
    return WF_OK;
}

/* ---- what the role decides ---- */

static wf_status start_task(void *arg, uint32_t i, uint64_t *pid, wf_err *err)
{
    const driver *d = arg;
    const wf_supervisor_task *t = &d->tasks[i];
    char program[PATH_MAX], number[16], name[32];
    const char *argv[8] = {program, "--cluster", d->conf->path, "--session", d->session};
    pid_t child = 0;

    snprintf(name, sizeof name, "weft-%s", wf_role_name(t->task.role));
    WF_TRY(wf_place_program(name, program, sizeof program, err));
    snprintf(number, sizeof number, "%" PRIu32, t->task.index);
    if (t->task.role != WF_ROLE_MASTER) {
        argv[5] = "--task";
        argv[6] = number;
    }
    WF_TRY(wf_spawn(argv, t->log, &child, err));
    *pid = (uint64_t)child;
    return WF_OK;
}

static void end_process(void *arg, uint64_t pid, bool with_force)
{
    (void)arg;
    kill((pid_t)pid, with_force ? SIGKILL : SIGTERM);
}

static void note_down(void *arg, uint32_t i, const char *reason)
{
    const driver *d = arg;
    char name[32];
    wf_err err;

    wf_task_str(d->tasks[i].task, name, sizeof name);
    if (wf_super_down_add(d->conf, name, reason, &err) != WF_OK)
        WF_LOG_ERROR("task.unlisted", "task=%s why=\"%s\"", name, err.what);
}

/* What the log says last of an end, if that was a failure; threads may log a line behind it. */
static void last_words(void *arg, uint32_t i, char *out, size_t size)
{
    enum { MOST = 4096 };
    static const char mark[] = " task.ends ", failure[] = " error ";
    const driver *d = arg;
    wf_bytes text = {0};
    const char *line = NULL, *said;

    out[0] = 0;
    if (wf_tail_read(d->tasks[i].log, MOST, &text, NULL, NULL) == WF_OK)
        for (const char *at = wf_bytes_str(&text); *at; at += strcspn(at, "\n"), at += *at != 0)
            line = memmem(at, strcspn(at, "\n"), mark, strlen(mark)) ? at : line;
    said = line ? strstr(line, mark) : NULL;
    if (said && memmem(line, (size_t)(said - line), failure, strlen(failure)))
        snprintf(out, size, "%.*s", (int)strcspn(said + strlen(mark), "\n"), said + strlen(mark));
    wf_bytes_close(&text);
}

static wf_status make_role(driver *d, wf_err *err)
{
    wf_peer *master;
    wf_net *net;

    WF_TRY(wf_ask_open(d->conf, &d->ask, err));
    net = wf_ask_net(d->ask, &master);
    return wf_supervisor_new(&(wf_supervisor_conf){.tasks = d->tasks,
                                                   .n = d->n,
                                                   .session = d->session,
                                                   .master_ns = d->conf->stuck_ms * WF_NS_PER_MS,
                                                   .ops = {.arg = d,
                                                           .start = start_task,
                                                           .end = end_process,
                                                           .note_down = note_down,
                                                           .last_words = last_words}},
                             net, master, &d->role, err);
}

/* ---- what it learns ---- */

static wf_exit exit_of(int status)
{
    if (WIFSIGNALED(status))
        return (wf_exit){.signal = WTERMSIG(status)};
    return (wf_exit){.code = WEXITSTATUS(status)};
}

static void reap(driver *d)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        wf_supervisor_on_end(d->role, (uint64_t)pid, exit_of(status), wf_now_ns());
}

static void exchange(driver *d)
{
    wf_peer *master;
    wf_net *net = wf_ask_net(d->ask, &master);
    int64_t now_ns = wf_now_ns();
    wf_event ev;

    wf_net_poll(net, now_ns);
    while (wf_net_event(net, now_ns, &ev))
        wf_supervisor_on_event(d->role, &ev);
    wf_supervisor_advance(d->role, now_ns);
    wf_net_flush(net, now_ns);
}

static int wait_ms(const driver *d)
{
    int64_t left_ms = (wf_supervisor_deadline(d->role) - wf_now_ns()) / WF_NS_PER_MS;

    return (int)WF_MIN(WF_MAX(left_ms, (int64_t)1), (int64_t)TURN_MS);
}

/* One turn of the loop. */
static void turn(driver *d)
{
    struct pollfd p = {.fd = d->signals, .events = POLLIN};
    struct signalfd_siginfo got;

    if (poll(&p, 1, wait_ms(d)) > 0)
        while (read(d->signals, &got, sizeof got) == (ssize_t)sizeof got)
            if (got.ssi_signo == SIGTERM || got.ssi_signo == SIGINT)
                wf_supervisor_go_down(d->role, wf_now_ns());
    reap(d);
    exchange(d);
}

static wf_status catch_signals(driver *d, wf_err *err)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGHUP); /* read and ignored: the terminal it came from may close */
    sigprocmask(SIG_BLOCK, &set, NULL);
    d->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return d->signals >= 0 ? WF_OK : wf_fail_errno(err, errno, NULL, "cannot watch for signals");
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

static wf_status prepare(driver *d, wf_err *err)
{
    d->arena = wf_arena_new(0);
    if (!d->arena)
        return wf_fail_nomem(err, sizeof *d->tasks);
    snprintf(d->session, sizeof d->session, "%016" PRIx64, wf_random_id());
    WF_TRY(wf_super_make_state(d->conf, err));
    WF_TRY(wf_super_lock(d->conf, &d->lock, err));
    WF_TRY(wf_super_down_clear(d->conf, err));
    WF_TRY(list_tasks(d, err));
    WF_TRY(catch_signals(d, err));
    return make_role(d, err);
}

static void close_all(driver *d)
{
    wf_supervisor_free(&d->role);
    wf_ask_close(&d->ask);
    if (d->signals >= 0)
        close(d->signals);
    if (d->lock >= 0)
        close(d->lock);
    wf_arena_free(&d->arena);
}

wf_status wf_super_run(const wf_cluster_conf *conf, int ready_fd, wf_err *err)
{
    driver d = {.conf = conf, .lock = -1, .signals = -1};
    wf_err why = {0};
    wf_status rc;

    wf_log_init("supervisor", WF_INFO);
    rc = prepare(&d, &why);
    if (rc == WF_OK) {
        rc = wf_supervisor_begin(d.role, wf_now_ns(), &why);
        if (rc == WF_OK)
            tell_ready(ready_fd, rc, &why);
        else
            wf_supervisor_go_down(d.role, wf_now_ns());
        while (!wf_supervisor_is_over(d.role))
            turn(&d);
    }
    close_all(&d);
    if (rc != WF_OK) /* not before the lock is gone: who tries again must not find it */
        tell_ready(ready_fd, rc, &why);
    if (rc != WF_OK && err)
        *err = why;
    return rc;
}
