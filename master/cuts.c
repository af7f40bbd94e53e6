/* SPDX-License-Identifier: Apache-2.0 */
/* master/cuts.c - how the master opens a checkpoint: the cut is announced, and what the workers
 * report is passed on to the chief. cut_end.c has what follows.
 *
 * Training stands still from the opening until the copies are taken; how long is measured and kept
 * in the manifest. A failed cut changes nothing but a counter: older checkpoints stay.
 */
#include "common/base/clock.h"
#include "common/base/size.h"
#include "common/log/log.h"
#include "common/wire/control.h"
#include "master/state.h"

#include <stdlib.h>
#include <string.h>

wf_status wf_cut_say(wf_master *m, wf_job *j, wf_member *to, uint16_t kind,
                     const ProtobufCMessage *body, wf_err *err)
{
    wf_msg *msg = NULL;
    wf_status rc;

    WF_TRY(wf_net_msg(m->net, kind, &msg, err));
    msg->head.cut = j->cut.number;
    rc = body ? wf_control_put(msg, body, err) : WF_OK;
    if (rc == WF_OK && to->peer)
        rc = wf_master_send(m, to->peer, &msg, err);
    wf_net_free_msg(m->net, &msg);
    return rc;
}

wf_status wf_cut_resume(wf_master *m, wf_job *j, wf_err *err)
{
    for (uint32_t i = 0; i < m->n_members; i++)
        if (wf_member_trains(&m->members[i], j))
            WF_TRY(wf_cut_say(m, j, &m->members[i], WF_CUT_RESUME, NULL, err));
    return WF_OK;
}

wf_status wf_cut_tell_abort(wf_master *m, wf_job *j, wf_err *err)
{
    for (uint32_t i = 0; i < m->n_members; i++)
        if (m->members[i].incarnation == j->cut.chief && m->members[i].peer)
            WF_TRY(wf_cut_say(m, j, &m->members[i], WF_CUT_ABORT, NULL, err));
    return WF_OK;
}

wf_status wf_cuts_abort(wf_master *m, wf_job *j, wf_err *err)
{
    bool holding = wf_cut_is_holding(&j->cut);

    if (j->cut.state == WF_CUT_NONE)
        return WF_OK;
    wf_cut_move(&j->cut, WF_CUT_WAS_ABORTED, j->name);
    j->cut_wanted = true;
    WF_TRY(wf_cut_tell_abort(m, j, err));
    return holding ? wf_cut_resume(m, j, err) : WF_OK;
}

static wf_status say_open(wf_master *m, wf_job *j, wf_member *to, wf_err *err)
{
    Weft__Cut body = WEFT__CUT__INIT;

    body.number = j->cut.number;
    body.chief = j->cut.chief;
    body.final = j->cut.final;
    return wf_cut_say(m, j, to, WF_CUT_OPEN, &body.base, err);
}

/* Ends the hold for a cut that may not be the open one. */
static wf_status say_resume(wf_master *m, wf_member *to, uint32_t cut, wf_err *err)
{
    wf_msg *msg = NULL;

    if (!cut || !to->peer)
        return WF_OK;
    WF_TRY(wf_net_msg(m->net, WF_CUT_RESUME, &msg, err));
    msg->head.cut = cut;
    return wf_master_send(m, to->peer, &msg, err);
}

wf_status wf_cuts_on_register(wf_master *m, wf_job *j, wf_member *who, uint32_t holds, wf_err *err)
{
    bool is_chief = who->incarnation == j->cut.chief;

    if (j->cut.state != WF_CUT_NONE &&
        (is_chief || (j->cut.state == WF_CUT_HOLDING && who->reported && holds != j->cut.number)))
        WF_TRY(wf_cuts_abort(m, j, err)); /* what it was told or reported is void */
    if (!wf_cut_is_holding(&j->cut))
        return say_resume(m, who, holds, err);
    return holds == j->cut.number ? WF_OK : say_open(m, j, who, err);
}

/* The trained ranges that the master answers for: what is done, and what a lost lease left behind.
 * Leased splits are in their holders' reports. */
typedef struct ledger_body {
    Weft__Ledger body;
    Weft__Split *rows, **list;
} ledger_body;

static wf_status fill_ledger(const wf_job *j, ledger_body *out, wf_err *err)
{
    const wf_ledger *l = &j->ledger;

    weft__ledger__init(&out->body);
    out->rows = calloc(l->n + 1, sizeof *out->rows);
    out->list = calloc(l->n + 1, sizeof(*out->list));
    if (!out->rows || !out->list)
        return wf_fail_nomem(err, l->n * sizeof *out->rows);
    out->body.epoch = l->epoch;
    out->body.records = j->train_records;
    out->body.split_records = l->split_records;
    out->body.evaluated = j->evaluated;
    out->body.next_cut = j->next_cut;
    out->body.finished = out->list;
    for (uint64_t i = 0; i < l->n; i++) {
        Weft__Split *row = &out->rows[out->body.n_finished];

        if (l->rows[i].state == WF_SPLIT_LEASED || l->rows[i].next == wf_ledger_begins(l, i))
            continue;
        if (out->body.n_finished > 0 && row[-1].end == wf_ledger_begins(l, i)) {
            row[-1].end = row[-1].next = l->rows[i].next; /* an epoch has few ranges, many splits */
            continue;
        }
        weft__split__init(row);
        row->epoch = l->epoch;
        row->begin = wf_ledger_begins(l, i);
        row->end = row->next = l->rows[i].next;
        out->list[out->body.n_finished++] = row;
    }
    return WF_OK;
}

/* Passes a report on to the chief, with the master's ledger as it is now: what the reporting worker
 * had finished before its hold is in it or in the report, whichever of the two knew it last. */
static wf_status pass_report(wf_master *m, wf_job *j, Weft__CutReport *report, wf_err *err)
{
    Weft__Option numbers[WF_CALLBACKS_NUMBERS], *numbers_list[WF_CALLBACKS_NUMBERS];
    ledger_body ledger = {0};
    wf_status rc = fill_ledger(j, &ledger, err);

    ledger.body.callbacks = numbers_list;
    ledger.body.n_callbacks = wf_training_callbacks(j, numbers, numbers_list);
    report->ledger = &ledger.body;
    for (uint32_t i = 0; rc == WF_OK && i < m->n_members; i++)
        if (m->members[i].incarnation == j->cut.chief)
            rc = wf_cut_say(m, j, &m->members[i], WF_CUT_REPORT, &report->base, err);
    report->ledger = NULL;
    free(ledger.rows);
    free(ledger.list);
    return rc;
}

static size_t list_workers(const wf_master *m, const wf_job *j, Weft__Member rows[],
                           Weft__Member *list[])
{
    size_t n = 0;

    for (uint32_t i = 0; i < m->n_members; i++) {
        const wf_member *who = &m->members[i];

        if (!wf_member_trains(who, j))
            continue;
        weft__member__init(&rows[n]);
        rows[n].role = WF_ROLE_WORKER;
        rows[n].index = who->task.index;
        rows[n].incarnation = who->incarnation;
        rows[n].steps = who->steps;
        list[n] = &rows[n];
        n++;
    }
    return n;
}

static void move_next_cut(wf_job *j)
{
    uint64_t every = j->prepared->every_steps, batch = j->prepared->batch, here;

    if (!every)
        return;
    here = j->ledger.epoch * ((j->train_records + batch - 1) / batch) +
           wf_ledger_trained(&j->ledger) / batch;
    do
        j->next_cut += every;
    while (j->next_cut <= here);
}

/* With the steps of the workers: a checkpoint is named by their sum, and the sum must not be
 * smaller after a restart, when some of them may be gone. */
wf_status wf_cut_journal(wf_master *m, const wf_job *j, bool committed, uint64_t step, wf_err *err)
{
    Weft__Member *rows = calloc(m->n_members + 1, sizeof *rows);
    Weft__Member **list = calloc(m->n_members + 1, sizeof(*list));
    Weft__Record record = WEFT__RECORD__INIT;
    Weft__CutRecord r = WEFT__CUT_RECORD__INIT;
    wf_status rc;

    record.cut = &r;
    record.number = j->number;
    r.generation = j->generation;
    r.number = j->cut.number;
    r.chief = j->cut.chief;
    r.committed = committed;
    r.step = step;
    r.next_cut = j->next_cut;
    r.asked = j->cut.asked;
    if (rows && list)
        r.n_workers = list_workers(m, j, rows, list);
    r.workers = list;
    rc = rows && list ? wf_journal_append(m->journal, &record, err)
                      : wf_fail_nomem(err, m->n_members * sizeof *rows);
    free(rows);
    free(list);
    return rc;
}

static wf_status open_cut(wf_master *m, wf_job *j, const wf_member *chief, bool final, wf_err *err)
{
    Weft__Cut body = WEFT__CUT__INIT;
    Weft__Member *rows = calloc(m->n_members + 1, sizeof *rows);
    Weft__Member **list = calloc(m->n_members + 1, sizeof(*list));
    size_t n = 0;
    wf_status rc;

    if (!final && !(j->evaluated && j->callbacks.save))
        move_next_cut(j);
    j->cut_wanted = false; /* the place of the next one may be reached while this one is written */
    j->cut = (wf_cut){.state = j->cut.state,
                      .number = j->cut.number + 1,
                      .chief = chief->incarnation,
                      .final = final,
                      .asked = j->evaluated && j->callbacks.save,
                      .began_ns = m->now_ns,
                      .began_present_ns = m->watch.present_ns};
    wf_cut_move(&j->cut, WF_CUT_WAS_OPENED, j->name);
    /* On disk first: what a ps still says of a cut must never be taken for a word of another cut,
     * which a master that starts again would give the same number. */
    rc = wf_cut_journal(m, j, false, 0, err);
    body.number = j->cut.number;
    body.chief = chief->incarnation;
    body.global_step = j->base_step + j->lost_steps;
    body.keep = j->prepared->keep;
    body.final = final;
    if (rc == WF_OK && !(rows && list))
        rc = wf_fail_nomem(err, m->n_members * sizeof *rows);
    if (rc == WF_OK) {
        n = list_workers(m, j, rows, list);
        body.workers = list;
    }
    for (uint32_t i = 0; rc == WF_OK && i < m->n_members; i++) {
        m->members[i].reported = false;
        /* whose reports make it complete is the chief's matter */
        body.n_workers = &m->members[i] == chief ? n : 0;
        if (wf_member_trains(&m->members[i], j))
            rc = wf_cut_say(m, j, &m->members[i], WF_CUT_OPEN, &body.base, err);
    }
    free(rows);
    free(list);
    return rc;
}

/* Whether all is trained and evaluated: then the next checkpoint is the last. */
static bool at_end(const wf_job *j)
{
    if (j->stop_asked || j->ending_from)
        return true;
    return j->ledger.n && wf_ledger_complete(&j->ledger) && j->evaluated &&
           wf_training_was_last(j) &&
           !wf_callbacks_restores(&j->prepared->callbacks, &j->callbacks, j->ledger.epoch);
}

wf_status wf_cut_end_job(wf_master *m, wf_job *j, wf_err *err)
{
    return j->stop_asked ? wf_job_stop(m, j, err) : wf_job_enter(m, j, WF_JOB_DONE, NULL, err);
}

/* Time in which the master was away does not count, and after it messages may still be unread. */
static bool is_overdue(const wf_master *m, const wf_job *j)
{
    return j->cut.state != WF_CUT_NONE &&
           m->watch.present_ns - j->cut.began_present_ns > m->conf.cut_ns &&
           m->now_ns - m->watch.receiving_since_ns >= m->conf.dead_ns;
}

wf_status wf_cuts_advance(wf_master *m, wf_job *j, wf_err *err)
{
    wf_member *chief = wf_master_facts(m)->chief;

    if (is_overdue(m, j))
        return wf_cut_overdue(m, j, err);
    if (j->cut.state != WF_CUT_NONE || m->now_ns < j->cut_retry_ns || j->evaluation.units.n)
        return WF_OK;
    /* A worker whose link is away would train on, outside the cut: it comes back or is given up. */
    if (wf_master_facts(m)->worker_away)
        return WF_OK;
    if (j->stop_asked && !chief)
        return wf_cut_end_job(m, j, err); /* nobody is left to write; what is saved stays */
    if ((!j->cut_wanted && !j->stop_asked) || !chief || !j->ledger.n)
        return j->stop_asked && !j->ledger.n ? wf_cut_end_job(m, j, err) : WF_OK;
    return open_cut(m, j, chief, at_end(j), err);
}

wf_status wf_cuts_lost(wf_master *m, wf_job *j, wf_member *who, wf_err *err)
{
    Weft__CutReport body = WEFT__CUT_REPORT__INIT;
    Weft__Split rows[8], *list[8];

    if (j->cut.state == WF_CUT_NONE)
        return WF_OK;
    if (j->cut.chief == who->incarnation)
        return wf_cuts_abort(m, j, err);
    if (j->cut.state != WF_CUT_HOLDING || who->reported)
        return WF_OK;
    body.index = who->task.index;
    body.incarnation = who->incarnation;
    body.steps = who->steps;
    body.removed = true;
    body.open = list;
    for (uint64_t i = UINT64_MAX;
         body.n_open < WF_COUNT(rows) && wf_ledger_held(&j->ledger, who->incarnation, &i);) {
        Weft__Split *row = &rows[body.n_open];

        weft__split__init(row);
        row->id = i;
        row->epoch = j->ledger.epoch;
        row->begin = wf_ledger_begins(&j->ledger, i);
        row->next = j->ledger.rows[i].next;
        row->end = wf_ledger_ends(&j->ledger, i);
        list[body.n_open++] = row;
    }
    who->reported = true;
    return pass_report(m, j, &body, err);
}

wf_status wf_cut_on_report(wf_master *m, wf_job *j, wf_member *who, const wf_msg *msg, wf_err *err)
{
    Weft__CutReport *body = NULL;
    wf_status rc;

    if (j->cut.state != WF_CUT_HOLDING || msg->head.cut != j->cut.number || who->reported)
        return WF_OK;
    WF_TRY(wf_control_get(msg, &weft__cut_report__descriptor, &body, err));
    rc = wf_training_check_held(who, body->n_open, body->n_finished, err);
    if (rc != WF_OK) {
        wf_control_free(&body);
        return rc;
    }
    who->reported = true;
    who->steps = WF_MAX(who->steps, body->steps);
    if (body->ledger) {
        weft__ledger__free_unpacked(body->ledger, NULL); /* only the master adds one */
        body->ledger = NULL;
    }
    rc = pass_report(m, j, body, err);
    wf_control_free(&body);
    return rc;
}
