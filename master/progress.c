/* SPDX-License-Identifier: Apache-2.0 */
/* master/progress.c - whether tasks get on: what they tell with their signs of life, what the
 * master waits for from them, and who is given up.
 *
 * Life means progress. A main thread that is stuck keeps sending signs of life by another thread,
 * but the number in them stands still. A long step is progress, for its processor time counts. A
 * worker that waits for a ps which serves others is given up as well: whatever holds it, a new
 * process with new links may be free of it, and its records go to others meanwhile.
 */
#include "common/base/clock.h"
#include "common/base/size.h"
#include "common/log/log.h"
#include "common/wire/control.h"
#include "master/state.h"

#include <stdio.h>
#include <string.h>

/* What is waited for from a task for so many times the time after which silence ends it is asked
 * for again, over a fresh link. */
enum { ASK_AGAIN = 6 };

void wf_progress_begin(wf_progress *p, int64_t now_ns)
{
    *p = (wf_progress){.changed_ns = now_ns};
}

static void take_links(wf_progress *p, const Weft__Beat *body)
{
    p->n_links = 0;
    for (size_t i = 0; i < body->n_links && p->n_links < WF_MEMBER_LINKS; i++)
        p->links[p->n_links++] =
            (struct wf_progress_link){{(wf_role)body->links[i]->role, body->links[i]->index},
                                      body->links[i]->resent_bytes,
                                      body->links[i]->queued_bytes};
}

wf_status wf_progress_on_beat(wf_master *m, wf_member *who, const wf_msg *msg, wf_err *err)
{
    wf_progress *p = &who->progress;
    Weft__Beat *body = NULL;

    WF_TRY(wf_control_get(msg, &weft__beat__descriptor, &body, err));
    if (body->progress != p->count)
        p->changed_ns = m->now_ns;
    p->count = body->progress;
    p->beat_ns = m->now_ns;
    p->waits.whom = (wf_task){(wf_role)body->waits_role, body->waits_index};
    p->waits.since_ns =
        m->now_ns - (int64_t)WF_MIN(body->waits_ms, UINT64_C(1) << 40) * WF_NS_PER_MS;
    snprintf(p->waits.what, sizeof p->waits.what, "%s", body->waits_for);
    take_links(p, body);
    wf_control_free(&body);
    return WF_OK;
}

void wf_master_on_stranger(void *master, const wf_msg *beat, int64_t now_ns)
{
    wf_master *m = master;

    m->now_ns = now_ns;
    for (uint32_t i = 0; i < m->n_members; i++) {
        wf_member *who = &m->members[i];
        wf_err err;

        if (!who->incarnation || who->incarnation != beat->head.incarnation)
            continue;
        wf_watch_received(m, who, now_ns);
        if (wf_progress_on_beat(m, who, beat, &err) != WF_OK)
            WF_LOG_WARN("master.bad_message", "kind=beat why=\"%s\"", err.what);
        return;
    }
}

/* Whether a worker waits for a ps that serves: it is not the ps's doing, or not known to be. */
static bool waits_in_vain(const wf_master *m, const wf_member *who, int64_t since_ns)
{
    const wf_waiting *w = &who->progress.waits;
    const wf_job *j = m->job;
    const wf_member *ps;

    if (!j || j->state != WF_JOB_RUNNING || !wf_member_trains(who, j) ||
        w->whom.role != WF_ROLE_PS || m->now_ns - WF_MAX(w->since_ns, since_ns) < m->conf.stuck_ns)
        return false;
    ps = wf_member_of((wf_master *)m, w->whom);
    return ps && ps->live && ps->registered && ps->ready &&
           m->now_ns - ps->since_ns >= m->conf.stuck_ns;
}

bool wf_progress_is_stuck(const wf_master *m, const wf_member *who, int64_t since_ns, char *reason,
                          size_t size)
{
    const wf_progress *p = &who->progress;
    int64_t still_ns = m->now_ns - WF_MAX(p->changed_ns, since_ns);
    char whom[32];

    if (!p->beat_ns)
        return false;
    if (still_ns >= m->conf.stuck_ns) {
        snprintf(reason, size, "its main thread has stood still for %.1f s",
                 (double)still_ns / 1e9);
        return true;
    }
    if (!waits_in_vain(m, who, since_ns))
        return false;
    snprintf(reason, size, "it has waited for %s for %.1f s: %.100s",
             wf_task_str(p->waits.whom, whom, sizeof whom),
             (double)(m->now_ns - p->waits.since_ns) / 1e9, p->waits.what);
    return true;
}

/* ---- what the master waits for ---- */

static void ps_owes(const wf_master *m, const wf_member *who, char *what, size_t size)
{
    const wf_job *j = m->job;

    if (who->view_acked != m->view)
        snprintf(what, size, "view %u", m->view);
    else if (j && who->generation == j->generation && !who->ready)
        snprintf(what, size, "its set-up for generation %u of job %s", j->generation, j->name);
    else if (who->tune_sent)
        snprintf(what, size, "the learning rate %g", j ? j->callbacks.rate : 0);
}

static void worker_owes(const wf_master *m, const wf_member *who, char *what, size_t size)
{
    const wf_job *j = m->job;

    if (!j || who->generation != j->generation)
        return;
    if (!who->ready)
        snprintf(what, size, "its start in generation %u of job %s", j->generation, j->name);
    else if (j->cut.state == WF_CUT_HOLDING && !who->reported)
        snprintf(what, size, "the end of its step, for checkpoint cut %u", j->cut.number);
    else if (j->cut.state != WF_CUT_NONE && j->cut.chief == who->incarnation)
        snprintf(what, size, "checkpoint cut %u", j->cut.number);
    else if (wf_evaluation_asks(j, who))
        snprintf(what, size, "its part of the evaluation of epoch %u", j->ledger.epoch + 1);
}

/* A fresh link makes both sides say all that matters again. Not for what takes long by itself: it
 * would be begun anew. */
static void ask_again(wf_master *m, wf_member *who)
{
    wf_progress *p = &who->progress;
    bool begun = who->ready && who->task.role == WF_ROLE_WORKER;
    wf_peer *peer;

    if (begun || !who->peer ||
        m->now_ns - WF_MAX(p->owes.since_ns, p->asked_ns) < ASK_AGAIN * m->conf.dead_ns)
        return;
    p->asked_ns = m->now_ns;
    peer = who->peer;
    wf_members_on_down(m, peer);
    m->facts.known = false;
    wf_net_drop(m->net, &peer);
}

void wf_progress_look(wf_master *m, wf_member *who)
{
    wf_progress *p = &who->progress;
    char what[sizeof p->owes.what] = "";

    if (who->live && who->registered && who->task.role == WF_ROLE_PS)
        ps_owes(m, who, what, sizeof what);
    else if (who->live && who->registered)
        worker_owes(m, who, what, sizeof what);
    else if (who->live)
        snprintf(what, sizeof what, "a link from it");
    if (!what[0]) {
        p->owes = (wf_waiting){0};
    } else if (strcmp(what, p->owes.what) != 0) {
        p->owes = (wf_waiting){.whom = who->task, .since_ns = m->now_ns};
        memcpy(p->owes.what, what, sizeof what);
    }
    wf_waiting_note(&p->owes_log, &p->owes, m->now_ns);
    if (what[0])
        ask_again(m, who);
}
