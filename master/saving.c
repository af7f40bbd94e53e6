/* SPDX-License-Identifier: Apache-2.0 */
/* master/saving.c - checkpoints: when a cut is due, what of the epoch goes into it, and what
 * follows from its end. */
#include "common/base/clock.h"
#include "common/base/size.h"
#include "common/wire/control.h"
#include "master/top.h"

static wf_status end_job(wf_master *m, wf_job *j, wf_err *err)
{
    return j->stop_asked ? wf_job_stop(m, j, err) : wf_job_enter(m, j, WF_JOB_FINISHED, NULL, err);
}

wf_status wf_saving_fail(wf_master *m, wf_job *j, bool told, const char *what, const char *hint,
                         wf_err *err)
{
    if (j->cut->asked && !j->cut->final)
        wf_callbacks_not_saved(&j->epoch->callbacks);
    return wf_cut_fail(m, j, told, what, hint, err);
}

/* ---- what is due ---- */

/* Whether all is trained and evaluated: then the next checkpoint is the last. */
static bool at_end(const wf_job *j)
{
    if (j->stop_asked || j->ending_from)
        return true;
    return wf_epoch_is_at_end(j);
}

/* Whether a checkpoint is due by the clock: there are steps that the newest one does not hold, and
 * the one before began long enough ago. Before the first of a generation the time counts from the
 * moment when its training is seen here. */
static bool is_due_by_time(const wf_master *m, const wf_job *j)
{
    int64_t every_ns = (int64_t)j->prepared->every_seconds * WF_NS_PER_S;
    uint64_t saved = j->latest == UINT64_MAX ? 0 : j->latest;

    if (every_ns == 0 || j->epoch->state == WF_EPOCH_NONE)
        return false;
    if (j->cut->began_ns == 0)
        j->cut->began_ns = m->now_ns;
    return m->now_ns - j->cut->began_ns >= every_ns && wf_job_step(m, j) > saved;
}

static wf_status open_cut(wf_master *m, wf_job *j, const wf_member *chief, wf_err *err)
{
    bool final = at_end(j), asked = wf_epoch_is_evaluated(j) && j->epoch->callbacks.save;

    if (!final && !asked && j->cut_wanted) /* one by time leaves the places of the others alone */
        wf_splits_move_next_cut(j);
    j->cut_epoch = j->epoch->ledger.epoch;
    return wf_cut_open(m, j, chief, final, asked, err);
}

wf_status wf_saving_advance(wf_master *m, wf_job *j, wf_err *err)
{
    const wf_facts *f = wf_master_facts(m);
    bool any = j->epoch->state != WF_EPOCH_NONE;

    if (j->prepared->predicts)
        return at_end(j) ? end_job(m, j, err) : WF_OK;
    if (j->cut->state != WF_CUT_NONE || m->now_ns < j->cut->retry_ns ||
        j->epoch->state == WF_EPOCH_EVALUATING)
        return WF_OK;
    /* A worker whose link is away would train on, outside the cut: it comes back or is given up. */
    if (f->worker_away)
        return WF_OK;
    if (j->stop_asked && (!f->chief || !any))
        return end_job(m, j, err); /* nobody is left to write, or nothing; what is saved stays */
    if (!f->chief || (!j->cut_wanted && !j->stop_asked && !is_due_by_time(m, j)) || !any ||
        wf_placement_is_moving(m))
        return WF_OK;
    return open_cut(m, j, f->chief, err);
}

/* ---- reports ---- */

/* With the master's ledger as it is now: what the reporting worker had finished before its hold is
 * in it or in the report, whichever of the two knew it last. */
static wf_status pass_report(wf_master *m, wf_job *j, Weft__CutReport *report, wf_err *err)
{
    Weft__Option numbers[WF_CALLBACKS_NUMBERS], *list[WF_CALLBACKS_NUMBERS];
    wf_splits_ledger ledger = {0};
    wf_epoch_numbers metrics;
    wf_status rc = wf_splits_ledger_make(j, &ledger, err);

    ledger.body.callbacks = list;
    ledger.body.n_callbacks = wf_epoch_callbacks(j, numbers, list);
    ledger.body.n_metrics = wf_epoch_metrics(j, &metrics);
    ledger.body.metrics = metrics.list;
    report->ledger = &ledger.body;
    if (rc == WF_OK)
        rc = wf_cut_pass_report(m, j, report, err);
    report->ledger = NULL;
    wf_splits_ledger_free(&ledger);
    return rc;
}

static wf_status on_report(wf_master *m, wf_job *j, wf_member *who, const wf_msg *msg, wf_err *err)
{
    Weft__CutReport *body = NULL;
    wf_status rc;

    if (j->cut->state != WF_CUT_HOLDING || msg->head.cut != j->cut->number || who->reported)
        return WF_OK;
    WF_TRY(wf_control_get(msg, &weft__cut_report__descriptor, &body, err));
    rc = wf_splits_check_held(who, body->n_open, body->n_finished, err);
    if (rc == WF_OK) {
        who->reported = true;
        who->steps = WF_MAX(who->steps, body->steps);
        if (body->ledger) /* only the master adds one */
            weft__ledger__free_unpacked(body->ledger, NULL);
        body->ledger = NULL;
        rc = pass_report(m, j, body, err);
    }
    wf_control_free(&body);
    return rc;
}

wf_status wf_saving_on_lost(wf_master *m, wf_job *j, wf_member *who, wf_err *err)
{
    Weft__CutReport body = WEFT__CUT_REPORT__INIT;
    Weft__Split rows[8], *list[8];

    if (j->cut->state == WF_CUT_NONE)
        return WF_OK;
    if (j->cut->chief == who->incarnation)
        return wf_cut_abort(m, j, err);
    if (j->cut->state != WF_CUT_HOLDING || who->reported)
        return WF_OK;
    body.index = who->task.index;
    body.incarnation = who->incarnation;
    body.steps = who->steps;
    body.removed = true;
    body.open = list;
    body.n_open = wf_splits_held(j, who, rows, list, WF_COUNT(rows));
    who->reported = true;
    return pass_report(m, j, &body, err);
}

/* ---- messages ---- */

static wf_status on_done(wf_master *m, wf_job *j, const wf_msg *msg, wf_err *err)
{
    Weft__CutDone *body = NULL;
    wf_status rc;

    WF_TRY(wf_control_get(msg, &weft__cut_done__descriptor, &body, err));
    if (body->what[0] && body->again) { /* what the epoch's end wants is wanted still */
        rc = wf_cut_fail(m, j, true, body->what, body->hint, err);
    } else if (body->what[0]) {
        rc = wf_saving_fail(m, j, true, body->what, body->hint, err);
    } else {
        rc = wf_cut_on_saved(m, j, body, err);
        if (rc == WF_OK)
            j->latest_epoch = j->cut_epoch;
        if (rc == WF_OK && j->cut->asked)
            wf_callbacks_saved(&j->epoch->callbacks, body->step, j->epoch->ledger.epoch);
        if (rc == WF_OK && j->cut->final)
            rc = end_job(m, j, err);
    }
    wf_control_free(&body);
    return rc;
}

wf_status wf_saving_on_message(wf_master *m, wf_job *j, wf_member *who, const wf_msg *msg,
                               wf_err *err)
{
    uint16_t kind = msg->head.kind;

    if (kind == WF_CUT_DUE) {
        j->cut_wanted = true;
        return WF_OK;
    }
    if (kind == WF_CUT_REPORT)
        return on_report(m, j, who, msg, err);
    if (!wf_cut_is_chiefs(j->cut, who, msg))
        return WF_OK;
    if (kind == WF_CUT_FORKED)
        return wf_cut_on_forked(m, j, err);
    if (kind == WF_CUT_COMMIT)
        return wf_cut_on_commit(m, j, who, err);
    return kind == WF_CUT_DONE ? on_done(m, j, msg, err) : WF_OK;
}
