/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/super_start.c - the supervisor seen from the commands that start, await and end it. */
#include "cmd/cli/ask.h"
#include "cmd/cli/lost.h"
#include "cmd/cli/ports.h"
#include "cmd/cli/spawn.h"
#include "cmd/cli/super.h"
#include "cmd/cli/super_down.h"
#include "common/base/clock.h"
#include "common/log/log.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LOOK_MS = 20 };

static void body(void *arg, int fd)
{
    const wf_cluster_conf *conf = arg;
    wf_err err = {0};

    /* Of one that never began: the log is also that of a supervisor that runs. */
    if (wf_super_run(conf, fd, &err) != WF_OK)
        WF_LOG_ERROR("supervisor.not_started", "pid=%ld reason=\"%s\"", (long)getpid(), err.what);
}

wf_status wf_super_start(const wf_cluster_conf *conf, wf_err *err)
{
    char log[PATH_MAX];
    pid_t other = wf_super_pid(conf);

    if (other) /* before a process is made for it, which would write into the log of this one */
        return wf_super_up_already(conf, other, err);
    WF_TRY(wf_lost_check(conf, err));
    if (snprintf(log, sizeof log, "%s/logs/supervisor.log", conf->state_dir) >= (int)sizeof log)
        return wf_fail(err, WF_INVALID, NULL, "the path %.200s... is too long", conf->state_dir);
    WF_TRY(wf_super_make_state(conf, err));
    return wf_spawn_daemon(log, body, (void *)conf, err);
}

static bool ends_within(const wf_cluster_conf *conf, pid_t pid, int64_t timeout_ms)
{
    int64_t end_ns = wf_now_ns() + timeout_ms * WF_NS_PER_MS;

    while (wf_super_pid(conf) == pid) {
        if (wf_now_ns() > end_ns)
            return false;
        poll(NULL, 0, LOOK_MS);
    }
    return true;
}

wf_status wf_super_stop(const wf_cluster_conf *conf, int64_t timeout_ms, wf_err *err)
{
    enum { KILLED_MS = 5000 };
    pid_t pid = wf_super_pid(conf);

    if (!pid)
        return wf_fail(err, WF_NOTFOUND, "\"weft up\" starts it",
                       "the cluster of %s is not up on this host", conf->state_dir);
    if (kill(pid, SIGTERM) != 0 && errno != ESRCH)
        return wf_fail_errno(err, errno, NULL, "cannot end supervisor %ld", (long)pid);
    (void)kill(pid, SIGCONT); /* a stopped one cannot end */
    if (ends_within(conf, pid, timeout_ms))
        return WF_OK;
    (void)kill(pid, SIGKILL); /* its tasks get SIGKILL with it: PR_SET_PDEATHSIG in spawn.c */
    (void)ends_within(conf, pid, KILLED_MS);
    return wf_fail(err, WF_TIMEOUT, NULL,
                   "supervisor %ld did not end within %lld ms and was killed with its tasks; see "
                   "%s/logs/supervisor.log",
                   (long)pid, (long long)timeout_ms, conf->state_dir);
}

wf_status wf_super_check_up(const wf_cluster_conf *conf, wf_err *err)
{
    WF_TRY(wf_super_check_down(conf, "master", err));
    if (wf_super_pid(conf) || wf_port_answers(&conf->master))
        return WF_OK;
    WF_TRY(wf_lost_check(conf, err));
    return wf_fail(err, WF_NOTFOUND, "start the cluster with: weft up",
                   "the master of cluster %s is not running: nobody listens at %s", conf->name,
                   conf->master.address);
}

/* Writes the names of tasks that are not ready, as "ps/1 worker/0", "" when all are. */
static wf_status list_missing(const wf_cluster_conf *c, char *names, size_t size, wf_err *err)
{
    enum { ONE_ANSWER_MS = 500 };
    Weft__Ask ask = WEFT__ASK__INIT;
    json_t *picture = NULL;
    wf_ask *a = NULL;
    wf_status rc;

    ask.command = "status";
    snprintf(names, size, "master");
    WF_TRY(wf_ask_open(c, &a, err));
    rc = wf_ask_send(a, &ask, ONE_ANSWER_MS, &picture, err);
    if (rc == WF_OK)
        snprintf(names, size, "%s", json_string_value(json_object_get(picture, "missing")));
    json_decref(picture);
    wf_ask_close(&a);
    return rc == WF_TIMEOUT ? WF_OK : rc;
}

/* Whether each task that is named there ("ps/1 at tcp://...") has an address of this host. */
static bool all_are_here(const wf_cluster_conf *c, const char *missing)
{
    bool here = strncmp(missing, "master", 6) != 0 || wf_port_is_here(&c->master);

    for (uint32_t i = 0; i < c->n_ps + c->n_workers; i++) {
        const wf_task_conf *t = i < c->n_ps ? &c->ps[i] : &c->workers[i - c->n_ps];

        if (strstr(missing, t->address))
            here = here && wf_port_is_here(t);
    }
    return here;
}

static wf_status fail_missing(const wf_cluster_conf *conf, const char *missing, int64_t timeout_ms,
                              wf_err *err)
{
    bool here = all_are_here(conf, missing);

    return wf_fail(err, WF_TIMEOUT,
                   here ? "the other tasks stay up; end them with: weft down"
                        : "on their host run \"weft up\" with the same file; the tasks of this "
                          "host stay up until: weft down",
                   "after %g s these are still missing: %.300s%s%s%s", (double)timeout_ms / 1000,
                   missing, here ? " (see " : "", here ? conf->state_dir : "",
                   here ? "/logs)" : "");
}

wf_status wf_super_wait_ready(const wf_cluster_conf *conf, int64_t timeout_ms, wf_err *err)
{
    int64_t end_ns = wf_now_ns() + timeout_ms * WF_NS_PER_MS;
    char missing[512] = "";

    for (;;) {
        WF_TRY(list_missing(conf, missing, sizeof missing, err));
        if (!missing[0])
            return WF_OK;
        WF_TRY(wf_super_check_down(conf, NULL, err));
        if (!wf_super_pid(conf))
            return wf_fail(err, WF_IO, NULL,
                           "the supervisor of this host has ended, and %.300s is missing; see "
                           "%s/logs/supervisor.log",
                           missing, conf->state_dir);
        if (wf_now_ns() > end_ns)
            return fail_missing(conf, missing, timeout_ms, err);
        poll(NULL, 0, LOOK_MS);
    }
}
