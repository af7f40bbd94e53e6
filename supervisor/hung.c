/* SPDX-License-Identifier: Apache-2.0 */
/* supervisor/hung.c - a process that says nothing any more does not end by itself either. The
 * master notices the silence, and the supervisor has the process: so it lists those that run, and
 * kills those that the master names. The master itself is killed when the supervisor, which pings
 * it, has heard nothing for conf.master_ns. They are started again like any that ended. */
#include "common/base/size.h"
#include "common/log/log.h"
#include "common/wire/control.h"
#include "supervisor/state.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static const int64_t EVERY_NS = WF_NS_PER_S;
static const int64_t ABSENCE_NS = 2 * WF_NS_PER_S; /* between two turns: it stood still itself */

static bool is_listed(const wf_ward *w)
{
    return w->pid && w->is->task.role != WF_ROLE_MASTER;
}

static void end_hung(wf_supervisor *s, wf_ward *w, const char *why)
{
    char name[32];

    if (w->hangs[0]) /* it was killed, and is not gone yet */
        return;
    snprintf(w->hangs, sizeof w->hangs, "it hung (%s), and was killed", why);
    WF_LOG_ERROR("task.hangs", "task=%s pid=%" PRIu64 " why=\"%s\"",
                 wf_task_str(w->is->task, name, sizeof name), w->pid, why);
    s->conf.ops.end(s->conf.ops.arg, w->pid, true);
}

static void look_at_master(wf_supervisor *s, int64_t now_ns)
{
    const wf_peer *master = s->session.peer;
    char why[64];

    if (now_ns - s->turned_ns > ABSENCE_NS)
        s->awake_ns = now_ns;
    s->turned_ns = now_ns;
    for (uint32_t i = 0; s->conf.master_ns && i < s->conf.n; i++) {
        wf_ward *w = &s->wards[i];
        int64_t since_ns = WF_MAX(master->last_heard_ns, s->awake_ns);

        if (w->is->task.role != WF_ROLE_MASTER || !w->pid || now_ns - since_ns < s->conf.master_ns)
            continue;
        if (master->last_heard_ns < w->started_ns) /* a long journal takes as long as it takes */
            continue;
        snprintf(why, sizeof why, "nothing heard for %.1f s", (double)(now_ns - since_ns) / 1e9);
        end_hung(s, w, why);
    }
}

static void list_processes(wf_supervisor *s, int64_t now_ns)
{
    Weft__Processes body = WEFT__PROCESSES__INIT;
    Weft__Process *rows, **list;

    if (now_ns < s->listed_ns + EVERY_NS)
        return;
    s->listed_ns = now_ns;
    rows = calloc(s->conf.n, sizeof *rows);
    list = calloc(s->conf.n, sizeof(*list));
    body.session = (char *)s->conf.session;
    body.processes = list;
    for (uint32_t i = 0; rows && list && i < s->conf.n; i++) {
        const wf_ward *w = &s->wards[i];
        Weft__Process *row = &rows[body.n_processes];

        if (!is_listed(w))
            continue;
        weft__process__init(row);
        row->role = w->is->task.role;
        row->index = w->is->task.index;
        row->pid = w->pid;
        list[body.n_processes++] = row;
    }
    if (body.n_processes) /* one that cannot be sent is in the next list */
        (void)(wf_session_send(&s->session, WF_PROCESSES, &body.base, NULL) == WF_OK);
    free(rows);
    free(list);
}

void wf_hung_advance(wf_supervisor *s, int64_t now_ns)
{
    if (s->kill_ns)
        return;
    look_at_master(s, now_ns);
    list_processes(s, now_ns);
}

void wf_hung_on_message(wf_supervisor *s, const wf_msg *m)
{
    Weft__Hung *body = NULL;

    if (m->head.kind != WF_HUNG || wf_control_get(m, &weft__hung__descriptor, &body, NULL) != WF_OK)
        return;
    for (uint32_t i = 0; i < s->conf.n; i++) {
        wf_ward *w = &s->wards[i];

        if (is_listed(w) && w->pid == body->pid && w->is->task.role == (wf_role)body->role &&
            w->is->task.index == body->index)
            end_hung(s, w, body->reason);
    }
    wf_control_free(&body);
}
