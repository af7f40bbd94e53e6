/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/super_link.c - the supervisor as a client of the master. */
#include "cmd/cli/super_link.h"
#include "cmd/cli/ask.h"
#include "common/wire/task.h"

#include <stdio.h>
#include <stdlib.h>

/* The last end of a task; pid and down as in wf_super_death. */
typedef struct last_end {
    uint32_t role, index;
    uint64_t pid;
    bool known, down;
    char reason[WF_ASK_REASON];
} last_end;

struct wf_super_link {
    const wf_cluster_conf *conf;
    wf_ask *ask;
    last_end *ends; /* [n_ps + n_workers] */
    char session[20];
};

wf_status wf_super_link_open(const wf_cluster_conf *conf, wf_super_link **out, wf_err *err)
{
    wf_super_link *l = calloc(1, sizeof *l);
    wf_status rc;

    if (!l)
        return wf_fail_nomem(err, sizeof *l);
    l->conf = conf;
    l->ends = calloc(conf->n_ps + conf->n_workers, sizeof *l->ends);
    rc = l->ends ? wf_ask_open(conf, &l->ask, err) : wf_fail_nomem(err, conf->n_ps);
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
    free((*l)->ends);
    free(*l);
    *l = NULL;
}

static void report(wf_super_link *l, const last_end *e)
{
    Weft__Died died = WEFT__DIED__INIT;

    died.role = e->role;
    died.index = e->index;
    died.pid = e->pid;
    died.down = e->down;
    died.reason = (char *)e->reason;
    died.session = l->session;
    wf_ask_tell_death(l->ask, &died);
}

void wf_super_on_death(void *link, const wf_super_death *death)
{
    wf_super_link *l = link;
    bool is_ps = death->role == WF_SUPER_PS;
    last_end *e;

    if (death->role == WF_SUPER_MASTER) /* nobody is there to be told */
        return;
    e = &l->ends[death->index + (is_ps ? 0 : l->conf->n_ps)];
    *e = (last_end){.role = is_ps ? WF_ROLE_PS : WF_ROLE_WORKER,
                    .index = death->index,
                    .pid = (uint64_t)death->pid,
                    .known = true,
                    .down = death->down};
    snprintf(e->reason, sizeof e->reason, "%s", death->reason);
    snprintf(l->session, sizeof l->session, "%s", death->session);
    report(l, e);
}

/* A master that has started again may have missed ends, and knows nothing of tasks that are down.
 * Those that it has heard of, or whose task runs again, change nothing there. */
void wf_super_on_turn(void *link, int64_t now_ns)
{
    wf_super_link *l = link;

    if (!wf_ask_turn(l->ask, now_ns))
        return;
    for (uint32_t i = 0; i < l->conf->n_ps + l->conf->n_workers; i++)
        if (l->ends[i].known)
            report(l, &l->ends[i]);
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
