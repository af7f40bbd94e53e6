/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/super_start.c - the supervisor seen from the commands that start, await and end it. */
#include "cmd/cli/ask.h"
#include "cmd/cli/lost.h"
#include "cmd/cli/ports.h"
#include "cmd/cli/spawn.h"
#include "cmd/cli/super.h"
#include "cmd/cli/super_down.h"
#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/log/log.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
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
    char folder[PATH_MAX - 32], log[PATH_MAX];
    pid_t other = wf_super_pid(conf);

    if (other) /* before a process is made for it, which would write into the log of this one */
        return wf_super_up_already(conf, other, err);
    WF_TRY(wf_lost_check(conf, err));
    if (snprintf(folder, sizeof folder, "%s/logs", conf->state_dir) >= (int)sizeof folder)
        return wf_fail(err, WF_INVALID, NULL, "the path %.200s... is too long", conf->state_dir);
    WF_TRY(wf_make_dirs(folder, err));
    snprintf(log, sizeof log, "%s/supervisor.log", folder);
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
    return wf_fail(err, WF_TIMEOUT, "look into its log in state_dir/logs",
                   "supervisor %ld did not end within %lld ms and was killed with its tasks",
                   (long)pid, (long long)timeout_ms);
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
            return wf_fail(err, WF_IO, "look into its log in state_dir/logs",
                           "the supervisor of %s has ended; missing: %s", conf->state_dir, missing);
        if (wf_now_ns() > end_ns)
            return wf_fail(err, WF_TIMEOUT, "look into their logs in state_dir/logs",
                           "after %lld ms these are still missing: %s", (long long)timeout_ms,
                           missing);
        poll(NULL, 0, LOOK_MS);
    }
}
