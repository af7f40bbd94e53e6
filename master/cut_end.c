/* SPDX-License-Identifier: Apache-2.0 */
/* master/cut_end.c - how a checkpoint goes on and ends for the master: training goes on as soon as
 * the ps have their copies, the chief gets the word to commit (M3), and a failure or a deadline
 * closes what does not come to that.
 */
#include "common/base/clock.h"
#include "common/base/size.h"
#include "common/wire/control.h"
#include "master/state.h"

#include <stdio.h>

enum { LAST_TRIES = 3 };

static wf_status cut_failed(wf_master *m, wf_job *j, const char *what, const char *mend,
                            wf_err *err)
{
    bool holding = wf_cut_is_holding(&j->cut), final = j->cut.final;
    wf_err why;

    wf_cut_move(&j->cut, WF_CUT_WAS_FAILED, j->name);
    j->n_failed_checkpoints++;
    if (j->cut.asked && !final) /* it costs this one, and never training */
        wf_callbacks_not_saved(&j->callbacks);
    wf_master_note(m, j, "ckpt.failed", "%s", what);
    if (holding)
        WF_TRY(wf_cut_resume(m, j, err));
    if (!final)
        return WF_OK;
    j->cut_wanted = true;
    j->cut_retry_ns = m->now_ns + WF_NS_PER_S;
    if (++j->cut_failures < LAST_TRIES)
        return WF_OK;
    wf_fail(&why, WF_IO, mend, "the last checkpoint could not be written: %s", what);
    return wf_job_enter(m, j, WF_JOB_FAILED, &why, err);
}

static wf_status abort_overdue(wf_master *m, wf_job *j, const char *what, const char *mend,
                               wf_err *err)
{
    WF_TRY(wf_cut_tell_abort(m, j, err));
    return cut_failed(m, j, what, mend, err);
}

/* A disk or a task that hangs must not keep later checkpoints from being made. A chief that has the
 * word to commit may still do it: only with its life is this cut over for certain. */
wf_status wf_cut_overdue(wf_master *m, wf_job *j, wf_err *err)
{
    char what[128], seconds[32];

    snprintf(seconds, sizeof seconds, "%.0f s", (double)m->conf.cut_ns / 1e9);
    for (uint32_t i = 0; i < m->n_members; i++) {
        wf_member *who = &m->members[i];

        if (j->cut.state == WF_CUT_HOLDING && wf_member_trains(who, j) && !who->reported) {
            snprintf(what, sizeof what, "worker %u did not come to a step's end within %s",
                     who->task.index, seconds);
            return abort_overdue(m, j, what, "see its log", err);
        }
        if (j->cut.state == WF_CUT_COMMITTING && who->incarnation == j->cut.chief) {
            snprintf(what, sizeof what, "its checkpoint was not committed within %s", seconds);
            return wf_members_give_up(m, who, what, err);
        }
    }
    snprintf(what, sizeof what, "the ps did not write their shards within %s", seconds);
    return abort_overdue(m, j, what, "look whether the disk of checkpoint_dir still answers", err);
}

static wf_status on_forked(wf_master *m, wf_job *j, wf_err *err)
{
    if (!wf_cut_may(&j->cut, WF_CUT_WAS_FORKED))
        return WF_OK;
    wf_cut_move(&j->cut, WF_CUT_WAS_FORKED, j->name);
    j->pause_ns = (uint64_t)(m->now_ns - j->cut.began_ns);
    j->pause_most_ns = WF_MAX(j->pause_most_ns, j->pause_ns);
    return j->cut.final ? WF_OK : wf_cut_resume(m, j, err);
}

static wf_status on_commit(wf_master *m, wf_job *j, wf_member *who, wf_err *err)
{
    if (!wf_cut_may(&j->cut, WF_CUT_WAS_GRANTED))
        return WF_OK;
    WF_TRY(wf_cut_journal(m, j, false, 0, err));
    wf_cut_move(&j->cut, WF_CUT_WAS_GRANTED, j->name);
    return wf_cut_say(m, j, who, WF_CUT_COMMIT, NULL, err);
}

static wf_status on_done(wf_master *m, wf_job *j, const wf_msg *msg, wf_err *err)
{
    Weft__CutDone *body = NULL;
    bool final = j->cut.final;
    wf_status rc;

    WF_TRY(wf_control_get(msg, &weft__cut_done__descriptor, &body, err));
    if (body->what[0]) {
        rc = cut_failed(m, j, body->what, body->mend, err);
        wf_control_free(&body);
        return rc;
    }
    if (!wf_cut_may(&j->cut, WF_CUT_WAS_COMMITTED)) { /* M3 */
        wf_control_free(&body);
        return wf_fail(err, WF_PROTO, NULL, "cut %u was committed without the right to",
                       j->cut.number);
    }
    wf_cut_move(&j->cut, WF_CUT_WAS_COMMITTED, j->name);
    j->cut_failures = 0;
    j->from_step = -1; /* what follows the step that was named is the newest now */
    j->latest = body->step;
    j->n_checkpoints++;
    wf_master_note(m, j, "ckpt.saved", "step %lu, %lu bytes, paused %.1f ms, took %.1f ms",
                   (unsigned long)body->step, (unsigned long)body->bytes,
                   (double)body->pause_ns / 1e6, (double)body->took_ns / 1e6);
    if (j->cut.asked)
        wf_callbacks_saved(&j->callbacks, body->step, j->ledger.epoch);
    rc = wf_cut_journal(m, j, true, body->step, err);
    wf_control_free(&body);
    if (rc == WF_OK && final)
        rc = wf_cut_end_job(m, j, err);
    return rc;
}

wf_status wf_cuts_on_message(wf_master *m, wf_member *who, const wf_msg *msg, wf_err *err)
{
    wf_job *j = wf_job_of(m, who, msg);
    bool of_chief;

    if (!j)
        return WF_OK;
    if (msg->head.kind == WF_CUT_DUE) {
        j->cut_wanted = true;
        return WF_OK;
    }
    if (msg->head.kind == WF_CUT_REPORT)
        return wf_cut_on_report(m, j, who, msg, err);
    of_chief = j->cut.state != WF_CUT_NONE && who->incarnation == j->cut.chief &&
               msg->head.cut == j->cut.number;
    if (!of_chief)
        return WF_OK;
    if (msg->head.kind == WF_CUT_FORKED)
        return on_forked(m, j, err);
    if (msg->head.kind == WF_CUT_COMMIT)
        return on_commit(m, j, who, err);
    if (msg->head.kind == WF_CUT_DONE)
        return on_done(m, j, msg, err);
    return WF_OK;
}
