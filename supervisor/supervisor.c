/* SPDX-License-Identifier: Apache-2.0 */
/* supervisor/supervisor.c - processes are started, and started again when they end. */
#include "supervisor/supervisor.h"
#include "common/base/size.h"
#include "common/log/log.h"
#include "supervisor/state.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

wf_status wf_supervisor_new(const wf_supervisor_conf *conf, wf_net *net, wf_peer *master,
                            wf_supervisor **out, wf_err *err)
{
    wf_supervisor *s = calloc(1, sizeof *s);

    *out = NULL;
    if (!s)
        return wf_fail_nomem(err, sizeof *s);
    s->conf = *conf;
    s->session = (wf_session){.net = net, .peer = master};
    s->wards = calloc(conf->n, sizeof *s->wards);
    if (!s->wards) {
        wf_supervisor_free(&s);
        return wf_fail_nomem(err, conf->n * sizeof *s->wards);
    }
    for (uint32_t i = 0; i < conf->n; i++)
        s->wards[i].is = &conf->tasks[i];
    *out = s;
    return WF_OK;
}

void wf_supervisor_free(wf_supervisor **s)
{
    if (*s)
        free((*s)->wards);
    free(*s);
    *s = NULL;
}

void wf_ward_move(wf_ward *w, wf_life_event event)
{
    char whose[32];

    wf_task_str(w->is->task, whose, sizeof whose);
    w->state = (wf_life_state)wf_states_take(&wf_life_states, w->state, event, whose);
}

static wf_status start(wf_supervisor *s, wf_ward *w, int64_t now_ns, wf_err *err)
{
    uint64_t pid = 0;
    char name[32];

    wf_assert(!w->pid); /* S1 */
    w->started_ns = now_ns;
    WF_TRY(s->conf.ops.start(s->conf.ops.arg, (uint32_t)(w - s->wards), &pid, err));
    wf_ward_move(w, WF_LIFE_STARTED);
    w->pid = pid;
    WF_LOG_INFO("task.started", "task=%s pid=%" PRIu64, wf_task_str(w->is->task, name, sizeof name),
                pid);
    return WF_OK;
}

wf_status wf_supervisor_begin(wf_supervisor *s, int64_t now_ns, wf_err *err)
{
    for (uint32_t i = 0; i < s->conf.n; i++)
        WF_TRY(start(s, &s->wards[i], now_ns, err));
    return WF_OK;
}

/* The task is not started again: `why` and where its log is go to all who may ask. */
static void give_up(wf_supervisor *s, wf_ward *w, uint64_t pid, const char *how, const char *why)
{
    char reason[WF_SUPERVISOR_REASON], name[32];

    wf_ward_move(w, WF_LIFE_GIVEN_UP);
    if (snprintf(reason, sizeof reason, "%s (%s); see %s", how, why, w->is->log) < 0)
        reason[0] = 0;
    WF_LOG_ERROR("task.given_up", "task=%s pid=%" PRIu64 " reason=\"%s\"",
                 wf_task_str(w->is->task, name, sizeof name), pid, reason);
    s->conf.ops.note_down(s->conf.ops.arg, (uint32_t)(w - s->wards), reason);
    wf_report_end(s, w, pid, true, reason);
}

/* Its process `pid` has ended, or could not be started (`event`; pid is 0 then). */
static void plan_restart(wf_supervisor *s, wf_ward *w, wf_life_event event, uint64_t pid,
                         const char *how, int64_t now_ns)
{
    char text[64];

    if (!wf_restart_on_death(&w->restart, w->started_ns, now_ns, &w->due_ns)) {
        snprintf(text, sizeof text, "%d restarts within %d minutes", WF_RESTART_BUDGET,
                 WF_RESTART_WINDOW_MINUTES);
        give_up(s, w, pid, how, text);
        return;
    }
    wf_ward_move(w, event);
    WF_LOG_WARN("task.died", "task=%s pid=%" PRIu64 " how=\"%s\" again_in_ms=%" PRId64,
                wf_task_str(w->is->task, text, sizeof text), pid, how,
                (w->due_ns - now_ns) / WF_NS_PER_MS);
    wf_report_end(s, w, pid, false, how);
}

static wf_ward *ward_of(const wf_supervisor *s, uint64_t pid)
{
    for (uint32_t i = 0; i < s->conf.n; i++)
        if (s->wards[i].pid == pid)
            return &s->wards[i];
    return NULL;
}

/* How a process ended, and what it said of that itself. */
static void describe_end(const wf_supervisor *s, const wf_ward *w, wf_exit how, char *out,
                         size_t size)
{
    size_t at;

    wf_exit_str(how, out, size);
    at = strlen(out);
    if (how.signal || how.code == 0 || !s->conf.ops.last_words || at + 3 > size)
        return;
    s->conf.ops.last_words(s->conf.ops.arg, (uint32_t)(w - s->wards), out + at + 2, size - at - 2);
    if (out[at + 2])
        memcpy(out + at, ": ", 2);
}

void wf_supervisor_on_end(wf_supervisor *s, uint64_t pid, wf_exit how, int64_t now_ns)
{
    wf_ward *w = pid ? ward_of(s, pid) : NULL;
    const char *useless = wf_restart_useless(how);
    char text[WF_SUPERVISOR_REASON / 2];

    if (!w)
        return;
    w->pid = 0;
    if (w->hangs[0])
        snprintf(text, sizeof text, "%s", w->hangs);
    else
        describe_end(s, w, how, text, sizeof text);
    w->hangs[0] = 0;
    if (s->kill_ns)
        wf_ward_move(w, WF_LIFE_DIED);
    else if (useless)
        give_up(s, w, pid, text, useless);
    else
        plan_restart(s, w, WF_LIFE_DIED, pid, text, now_ns);
}

void wf_supervisor_on_event(wf_supervisor *s, wf_event *ev)
{
    if (ev->kind == WF_EV_UP && ev->peer == s->session.peer)
        wf_report_all(s);
    if (ev->kind == WF_EV_MESSAGE && ev->peer == s->session.peer)
        wf_hung_on_message(s, ev->msg);
    if (ev->kind == WF_EV_MESSAGE || ev->kind == WF_EV_BEAT)
        wf_net_free_msg(s->session.net, &ev->msg);
}

void wf_supervisor_advance(wf_supervisor *s, int64_t now_ns)
{
    wf_err err;

    wf_report_advance(s, now_ns);
    wf_hung_advance(s, now_ns);
    wf_end_advance(s, now_ns);
    for (uint32_t i = 0; i < s->conf.n; i++) {
        wf_ward *w = &s->wards[i];

        if (w->state == WF_LIFE_DUE && now_ns >= w->due_ns && start(s, w, now_ns, &err) != WF_OK)
            plan_restart(s, w, WF_LIFE_NOT_STARTED, 0, err.what, now_ns);
    }
}

int64_t wf_supervisor_deadline(const wf_supervisor *s)
{
    int64_t at_ns = INT64_MAX;

    for (uint32_t i = 0; i < s->conf.n; i++) {
        const wf_ward *w = &s->wards[i];

        if (w->state == WF_LIFE_DUE)
            at_ns = WF_MIN(at_ns, w->due_ns);
        else if (w->state == WF_LIFE_ENDING)
            at_ns = WF_MIN(at_ns, s->kill_ns);
    }
    return at_ns;
}

bool wf_supervisor_is_over(const wf_supervisor *s)
{
    for (uint32_t i = 0; i < s->conf.n; i++)
        if (s->wards[i].state != WF_LIFE_OVER)
            return false;
    return true;
}
