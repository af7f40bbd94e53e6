/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/super_link.c - the supervisor as a client of the master. */
#include "cmd/cli/super_link.h"
#include "cmd/cli/ask.h"
#include "common/log/log.h"
#include "common/wire/task.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

struct wf_super_link {
    const wf_cluster_conf *conf;
    wf_ask *ask;
};

wf_status wf_super_link_open(const wf_cluster_conf *conf, wf_super_link **out, wf_err *err)
{
    wf_super_link *l = calloc(1, sizeof *l);
    wf_status rc;

    if (!l)
        return wf_fail_nomem(err, sizeof *l);
    l->conf = conf;
    rc = wf_ask_open(conf, &l->ask, err);
    if (rc != WF_OK)
        wf_super_link_close(&l);
    *out = l;
    return rc;
}

void wf_super_link_close(wf_super_link **l)
{
    if (!*l)
        return;
    wf_ask_close(&(*l)->ask);
    free(*l);
    *l = NULL;
}

static void say_how(int status, char *text, size_t size)
{
    if (WIFSIGNALED(status))
        snprintf(text, size, "killed by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else
        snprintf(text, size, "ended with exit code %d", WEXITSTATUS(status));
}

void wf_super_on_death(void *link, wf_super_role role, uint32_t index, pid_t pid, int status)
{
    static const uint32_t roles[] = {[WF_SUPER_MASTER] = WF_ROLE_MASTER,
                                     [WF_SUPER_PS] = WF_ROLE_PS,
                                     [WF_SUPER_WORKER] = WF_ROLE_WORKER};
    Weft__Died died = WEFT__DIED__INIT;
    wf_super_link *l = link;
    char how[96];

    say_how(status, how, sizeof how);
    WF_LOG_INFO("supervisor.death", "cluster=%s task=%s/%" PRIu32 " pid=%ld how=\"%s\"",
                l->conf->name, wf_super_role_name(role), index, (long)pid, how);
    if (role == WF_SUPER_MASTER)
        return;
    died.role = roles[role];
    died.index = index;
    died.pid = (uint64_t)pid;
    died.reason = how;
    wf_ask_tell_death(l->ask, &died);
}

void wf_super_on_turn(void *link, int64_t now_ns)
{
    wf_ask_turn(((wf_super_link *)link)->ask, now_ns);
}

wf_status wf_cluster_missing(const wf_cluster_conf *c, char *names, size_t size, wf_err *err)
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
