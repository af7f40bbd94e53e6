/* SPDX-License-Identifier: Apache-2.0 */
/* master/arrivals.c - who comes, and who a supervisor says is gone. */
#include "common/base/clock.h"
#include "common/base/size.h"
#include "common/log/log.h"
#include "common/wire/control.h"
#include "master/top.h"

#include <stdio.h>
#include <string.h>

wf_status wf_arrivals_on_up(wf_master *m, wf_peer *peer, wf_err *err)
{
    wf_member *who = wf_member_of(m, peer->task);

    if (!who) /* a client */
        return WF_OK;
    if (wf_members_is_retired(m, peer->incarnation))
        return wf_member_dismiss(
            m, peer, who->incarnation ? WF_DISMISS_SUPERSEDED : WF_DISMISS_RESTART, err);
    if (who->incarnation && who->incarnation != peer->incarnation) {
        if (who->peer)
            WF_TRY(wf_member_dismiss(m, who->peer, WF_DISMISS_SUPERSEDED, err));
        WF_TRY(wf_master_lose(m, who, true, "a newer process took its place", err));
    }
    wf_member_take_place(m, who, peer);
    return WF_OK;
}

/* What a worker holds: of the job in hand it goes on with it. */
static wf_status claim(wf_master *m, wf_member *who, const Weft__Register *r, wf_err *err)
{
    Weft__SplitDone ok = WEFT__SPLIT_DONE__INIT;
    wf_job *j = m->job;

    if (!j || wf_job_over(j->state) || who->part != WF_PART_READY)
        return WF_OK;
    who->steps = WF_MAX(who->steps, r->steps);
    wf_near_take(j, r->n_files, r->files);
    WF_TRY(wf_faults_take_found(
        m, j, who, (wf_found){r->train_records, r->train_digest, r->eval_records, r->round}, err));
    if (wf_job_over(j->state) || j->epoch->state == WF_EPOCH_NONE)
        return WF_OK;
    WF_TRY(wf_splits_claim(m, j, who, r, err));
    wf_evaluation_lost(j, who); /* dealt anew: the answer may have been lost with the link */
    ok.splits = r->finished;
    ok.n_splits = r->n_finished;
    WF_TRY(wf_cut_on_register(m, j, who, r->cut, err));
    return wf_member_send(m, who, WF_SPLIT_DONE_OK, &ok.base, err);
}

static bool holds(const wf_job *j, const Weft__Register *r)
{
    return j && j->generation && r->ready && strcmp(r->job, j->name) == 0 && r->job_id == j->id &&
           r->generation == j->generation;
}

static wf_status enter(wf_master *m, wf_member *who, const Weft__Register *r, wf_err *err)
{
    wf_job *j = m->job;
    bool is_worker = who->task.role == WF_ROLE_WORKER, held = holds(j, r);
    bool is_new = !wf_member_is_live(who);
    char text[32];

    m->view_stale |= !is_worker || m->on_workers; /* it is sent the view again */
    if (is_new) {
        if (who->since_ns && m->job && !wf_job_over(m->job->state))
            wf_job_note(m, m->job, "task.restarted", "%s restarted after %.1f s",
                        wf_task_str(who->task, text, sizeof text),
                        (double)(m->now_ns - who->since_ns) / 1e9);
        who->since_ns = m->now_ns;
        m->view_stale = true;
    }
    wf_member_move(m, who, WF_MEMBER_REGISTER);
    snprintf(who->session, sizeof who->session, "%s", r->session);
    snprintf(who->fellows, sizeof who->fellows, "%s", r->fellows);
    /* Who computes a later stage for another worker has it as long as the process lives, and does
     * not know the job. */
    if (!held && is_worker && (is_new || wf_member_may_have_job(m, who))) {
        WF_TRY(wf_master_take_back(m, who, NULL, err));
        who->steps = 0;
    }
    if (held)
        wf_member_take_part(m, who, WF_PART_IS_HELD, j->generation);
    else
        wf_member_take_part(m, who, WF_PART_LET_GO, 0);
    who->view_acked = 0;
    who->wants = false;
    who->round = r->round;
    who->round_sent = 0;
    if (r->ready && !held && (!j || r->job_id != j->id)) /* it has missed the job's end */
        WF_TRY(wf_member_send(m, who, WF_HALT, NULL, err));
    if (held && !is_worker)
        WF_TRY(wf_placement_on_register(m, j, who, r, err));
    return is_worker ? claim(m, who, r, err) : WF_OK;
}

wf_status wf_arrivals_on_register(wf_master *m, wf_member *who, const wf_msg *msg, wf_err *err)
{
    Weft__Register *body = NULL;
    wf_status rc;

    WF_TRY(wf_control_get(msg, &weft__register__descriptor, &body, err));
    rc = strlen(body->fellows) < WF_ADDRESSES_MAX
             ? wf_splits_check_held(who, body->n_open, body->n_finished, err)
             : wf_fail(err, WF_PROTO, NULL, "a worker with addresses that are too long");
    if (rc == WF_OK && !wf_member_is_live(who) && body->view > 0) /* M2, however long ago */
        rc = wf_master_give_up(m, who, "it was given up before", err);
    else if (rc == WF_OK)
        rc = enter(m, who, body, err);
    wf_control_free(&body);
    return rc;
}

/* ---- deaths ---- */

bool wf_master_is_supervisor(const wf_master *m, const wf_member *who, const char *session)
{
    return session[0] && (strcmp(session, m->session) == 0 || strcmp(session, who->session) == 0);
}

static void refuse_death(wf_master *m, const wf_member *who, const wf_peer *from)
{
    char text[32];

    if (m->refused_deaths++ && m->now_ns - m->refused_log_ns < WF_NS_PER_S)
        return;
    m->refused_log_ns = m->now_ns;
    WF_LOG_WARN("member.death_refused", "task=%s from_pid=%lu refused=%lu",
                wf_task_str(who->task, text, sizeof text), (unsigned long)from->pid,
                (unsigned long)m->refused_deaths);
}

/* The supervisor saw the process end, or could not start one (pid 0). */
static wf_status take_death(wf_master *m, const wf_peer *from, const Weft__Died *died, wf_err *err)
{
    wf_member *who = wf_member_of(m, (wf_task){(wf_role)died->role, died->index});

    if (!who)
        return WF_OK;
    if (!wf_master_is_supervisor(m, who, died->session)) {
        refuse_death(m, who, from);
        return WF_OK;
    }
    if (who->incarnation && who->pid != died->pid)
        return WF_OK; /* of a process before this one */
    if (!who->incarnation && !who->refused &&
        who->state != WF_MEMBER_DOWN) /* it ended before the master knew it */
        wf_member_keep_reason(m, who, died->reason);
    WF_TRY(wf_master_lose(m, who, true, died->reason, err));
    if (died->down && who->state != WF_MEMBER_DOWN) {
        WF_LOG_ERROR("member.down", "task=%s/%u reason=\"%s\"", wf_role_name(who->task.role),
                     who->task.index, died->reason);
        if (!who->refused) /* else its end followed from that */
            wf_member_keep_reason(m, who, died->reason);
        wf_member_move(m, who, WF_MEMBER_TAKEN_DOWN);
        who->since_ns = m->now_ns;
    }
    return WF_OK;
}

wf_status wf_arrivals_on_died(wf_master *m, const wf_peer *from, const wf_msg *msg, wf_err *err)
{
    Weft__Died *body = NULL;
    wf_status rc;

    WF_TRY(wf_control_get(msg, &weft__died__descriptor, &body, err));
    rc = take_death(m, from, body, err);
    wf_control_free(&body);
    return rc;
}
