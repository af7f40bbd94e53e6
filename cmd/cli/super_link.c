/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/super_link.c - readiness as the sockets show it: a task that listens has read its files
 * and is up. Deaths go to the supervisor's log; the master hears of them through its heartbeats. */
#include "cmd/cli/super_link.h"
#include "cmd/cli/ports.h"
#include "common/log/log.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct wf_super_link {
    const wf_cluster_conf *conf;
};

wf_status wf_super_link_open(const wf_cluster_conf *conf, wf_super_link **out, wf_err *err)
{
    wf_super_link *l = calloc(1, sizeof *l);

    if (!l)
        return wf_fail_nomem(err, sizeof *l);
    l->conf = conf;
    *out = l;
    return WF_OK;
}

void wf_super_link_close(wf_super_link **l)
{
    free(*l);
    *l = NULL;
}

void wf_super_on_death(void *link, wf_super_role role, uint32_t index, pid_t pid, int status)
{
    const wf_super_link *l = link;

    WF_LOG_INFO("supervisor.death", "cluster=%s task=%s/%" PRIu32 " pid=%ld status=%d",
                l->conf->name, wf_super_role_name(role), index, (long)pid, status);
}

void wf_super_on_turn(void *link, int64_t now_ns)
{
    (void)link, (void)now_ns;
}

static void add_missing(const wf_task_conf *t, const char *role, uint32_t index, char *names,
                        size_t size)
{
    size_t at = strlen(names);

    if (!wf_port_answers(t))
        snprintf(names + at, size - at, "%s%s/%" PRIu32, at ? " " : "", role, index);
}

wf_status wf_cluster_missing(const wf_cluster_conf *c, char *names, size_t size, wf_err *err)
{
    (void)err;
    names[0] = 0;
    add_missing(&c->master, "master", 0, names, size);
    for (uint32_t i = 0; i < c->n_ps; i++)
        add_missing(&c->ps[i], "ps", i, names, size);
    return WF_OK;
}
