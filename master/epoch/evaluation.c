/* SPDX-License-Identifier: Apache-2.0 */
/* master/epoch/evaluation.c */
#include "master/epoch/evaluation.h"
#include "common/base/size.h"
#include "common/wire/control.h"
#include "master/epoch/epoch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void wf_evaluation_close(wf_evaluation *e)
{
    for (uint64_t i = 0; e->early && i < e->units.n; i++)
        wf_control_free(&e->early[i]);
    free(e->early);
    wf_ledger_close(&e->units);
    wf_measures_close(e->measures, e->n_measures);
    *e = (wf_evaluation){0};
}

static wf_status begin_units(wf_job *j, wf_err *err)
{
    wf_evaluation *e = &j->epoch->evaluation;
    uint64_t unit = j->prepared->eval_unit,
             records = j->epoch->eval_records ? j->epoch->eval_records : unit;

    wf_assert(!e->early && e->merged == 0);
    WF_TRY(wf_ledger_begin(&e->units, j->epoch->ledger.epoch, records, unit, err));
    e->early = calloc(e->units.n, sizeof(*e->early));
    return e->early ? WF_OK : wf_fail_nomem(err, e->units.n * sizeof(*e->early));
}

static wf_status send_unit(wf_master *m, const wf_job *j, const wf_member *who, uint64_t id,
                           wf_err *err)
{
    Weft__Split body = WEFT__SPLIT__INIT;

    body.id = id;
    body.epoch = j->epoch->ledger.epoch;
    body.begin = body.next = wf_ledger_begins(&j->epoch->evaluation.units, id);
    body.end = body.begin + j->prepared->eval_unit; /* the last one ends with the data */
    return wf_member_send_of(m, who, WF_EVAL, body.epoch, 0, &body.base, err);
}

static bool may_evaluate(const wf_member *who, const wf_job *j)
{
    return wf_member_trains(who, j->generation) && who->eval_failed != j->epoch->ledger.epoch + 1;
}

static void end_with(wf_evaluation_end *end, const char *failed)
{
    end->over = true;
    snprintf(end->failed, sizeof end->failed, "%.*s", (int)sizeof end->failed - 1, failed);
}

/* A number of records that cannot be, or sums that cannot be added, cost these numbers and not the
 * job. */
static wf_status fail_for(wf_status rc, const wf_err *why, wf_evaluation_end *end, wf_err *err)
{
    if (rc == WF_INVALID || rc == WF_PROTO) {
        end_with(end, why->what);
        return WF_OK;
    }
    *err = *why;
    return rc;
}

/* Each worker has one unit at a time. */
wf_status wf_evaluation_advance(wf_master *m, wf_job *j, wf_evaluation_end *end, wf_err *err)
{
    wf_evaluation *e = &j->epoch->evaluation;
    wf_err why;
    wf_status rc;

    if (!e->units.n) {
        rc = begin_units(j, &why);
        if (rc != WF_OK)
            return fail_for(rc, &why, end, err);
    }
    for (uint32_t i = 0; wf_ledger_any_to_do(&e->units) && i < m->n_members; i++) {
        wf_member *who = &m->members[i];
        uint64_t held = UINT64_MAX, id;

        if (!may_evaluate(who, j) || wf_ledger_held(&e->units, who->incarnation, &held) ||
            !wf_ledger_deal(&e->units, who->incarnation, &id))
            continue;
        WF_TRY(send_unit(m, j, who, id, err));
    }
    return WF_OK;
}

void wf_evaluation_lost(wf_job *j, const wf_member *who)
{
    if (j->epoch->evaluation.units.n)
        wf_ledger_release(&j->epoch->evaluation.units, who->incarnation, false);
}

bool wf_evaluation_asks(const wf_job *j, const wf_member *who)
{
    uint64_t held = UINT64_MAX;

    return j->epoch->evaluation.units.n &&
           wf_ledger_held(&j->epoch->evaluation.units, who->incarnation, &held);
}

/* ---- results ---- */

/* Adds those results that have no gap before them. */
static wf_status merge_ready(wf_evaluation *e, wf_err *err)
{
    while (e->merged < e->units.n && e->early[e->merged]) {
        Weft__EvalResult *r = e->early[e->merged];

        wf_assert(e->units.rows[e->merged].state == WF_SPLIT_FINISHED);
        WF_TRY(wf_measures_take(e->measures, &e->n_measures, r->metrics, r->n_metrics, err));
        wf_control_free(&e->early[e->merged]);
        e->merged++;
    }
    return WF_OK;
}

/* The first unit says how many records there are. */
static wf_status take_records(wf_job *j, uint64_t records, wf_err *err)
{
    wf_evaluation *e = &j->epoch->evaluation;
    Weft__EvalResult *first;
    wf_status rc;

    if (j->epoch->eval_records || e->units.n > 1 || records <= j->prepared->eval_unit) {
        j->epoch->eval_records = records;
        return WF_OK;
    }
    first = e->early[0];
    e->early[0] = NULL;
    wf_evaluation_close(e);
    j->epoch->eval_records = records;
    rc = begin_units(j, err);
    if (rc != WF_OK) {
        wf_control_free(&first);
        return rc;
    }
    e->early[0] = first;
    wf_ledger_finish(&e->units, 0, 0);
    return WF_OK;
}

/* Others may do what one could not; when nobody is left, the evaluation has failed. */
static void on_failure(wf_master *m, wf_job *j, wf_member *who, const Weft__EvalResult *r,
                       wf_evaluation_end *end)
{
    who->eval_failed = j->epoch->ledger.epoch + 1;
    wf_ledger_release(&j->epoch->evaluation.units, who->incarnation, false);
    for (uint32_t i = 0; i < m->n_members; i++)
        if (may_evaluate(&m->members[i], j))
            return;
    end_with(end, r->what);
}

wf_status wf_evaluation_on_result(wf_master *m, wf_job *j, wf_member *who, const wf_msg *msg,
                                  wf_evaluation_end *end, wf_err *err)
{
    wf_evaluation *e = &j->epoch->evaluation;
    Weft__EvalResult *body = NULL;
    wf_status rc = WF_OK;
    wf_err why;

    WF_TRY(wf_control_get(msg, &weft__eval_result__descriptor, &body, err));
    if (!e->units.n || body->epoch != j->epoch->ledger.epoch || body->id >= e->units.n) {
        wf_control_free(&body);
        return WF_OK;
    }
    if (body->what[0]) {
        on_failure(m, j, who, body, end);
    } else if (wf_ledger_finish(&e->units, body->id, who->incarnation)) {
        uint64_t records = body->records;

        e->early[body->id] = body;
        body = NULL;
        rc = take_records(j, records, &why);
        if (rc == WF_OK)
            rc = merge_ready(e, &why);
        if (rc != WF_OK)
            rc = fail_for(rc, &why, end, err);
        else
            end->over = e->merged == e->units.n;
    }
    wf_control_free(&body);
    return rc;
}
