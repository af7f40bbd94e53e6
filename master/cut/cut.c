/* SPDX-License-Identifier: Apache-2.0 */
/* master/cut/cut.c - a cut is opened, goes on and ends.
 *
 * What a cut becomes is on disk before anybody hears of it: what a ps still says of one must never
 * be taken for a word of another, which a master that starts again would give the same number.
 */
#include "master/cut/cut.h"
#include "common/base/clock.h"
#include "common/base/size.h"
#include "common/wire/control.h"

#include <stdlib.h>

enum { LAST_TRIES = 3 };
/* The last checkpoint is tried again so much later: until then a person may have made room. */
static const int64_t AGAIN_NS = 10 * WF_NS_PER_S;

/* ---- the life cycle ---- */

static const char *const states[] = {"none", "holding", "writing", "committing"};
static const char *const events[] = {"opened",    "forked", "granted",
                                     "committed", "failed", "aborted"};

enum {
    OPEN = WF_STATE(WF_CUT_HOLDING) | WF_STATE(WF_CUT_WRITING) | WF_STATE(WF_CUT_COMMITTING),
};

static const wf_edge edges[] = {
    {WF_STATE(WF_CUT_NONE), WF_CUT_WAS_OPENED, WF_CUT_HOLDING},
    {WF_STATE(WF_CUT_HOLDING), WF_CUT_WAS_FORKED, WF_CUT_WRITING},
    {WF_STATE(WF_CUT_WRITING), WF_CUT_WAS_GRANTED, WF_CUT_COMMITTING},
    {WF_STATE(WF_CUT_COMMITTING), WF_CUT_WAS_COMMITTED, WF_CUT_NONE},
    {OPEN, WF_CUT_WAS_FAILED, WF_CUT_NONE},
    {OPEN, WF_CUT_WAS_ABORTED, WF_CUT_NONE},
};

const wf_states wf_cut_states = WF_STATES("cuts", states, events, edges);

static void move(wf_job *j, wf_cut_event event)
{
    j->cut->state = (wf_cut_state)wf_states_take(&wf_cut_states, j->cut->state, event, j->name);
}

bool wf_cut_may(const wf_cut *c, wf_cut_event event)
{
    return wf_states_next(&wf_cut_states, c->state, event) >= 0;
}

bool wf_cut_is_holding(const wf_cut *c)
{
    return c->state == WF_CUT_HOLDING || (c->final && c->state != WF_CUT_NONE);
}

bool wf_cut_waits_for(const wf_job *j, const wf_member *who)
{
    return j->cut->state == WF_CUT_HOLDING && wf_member_trains(who, j->generation) &&
           !who->reported;
}

bool wf_cut_is_chiefs(const wf_cut *c, const wf_member *who, const wf_msg *msg)
{
    return c->state != WF_CUT_NONE && who->incarnation == c->chief && msg->head.cut == c->number;
}

void wf_cut_begin_generation(wf_cut *c)
{
    wf_assert(c->state == WF_CUT_NONE);
    c->number = 0;
    c->began_ns = 0;
    c->failures = 0;
}

/* ---- messages about it ---- */

static wf_status send(wf_master *m, const wf_member *to, uint16_t kind, uint32_t cut,
                      const ProtobufCMessage *body, wf_err *err)
{
    return wf_member_send_of(m, to, kind, 0, cut, body, err);
}

static wf_status send_to_chief(wf_master *m, const wf_job *j, uint16_t kind,
                               const ProtobufCMessage *body, wf_err *err)
{
    const wf_member *chief = wf_member_find(m, j->cut->chief);

    return chief ? send(m, chief, kind, j->cut->number, body, err) : WF_OK;
}

wf_status wf_cut_pass_report(wf_master *m, wf_job *j, const Weft__CutReport *report, wf_err *err)
{
    return send_to_chief(m, j, WF_CUT_REPORT, &report->base, err);
}

/* Workers that hold go on. */
static wf_status resume(wf_master *m, const wf_job *j, wf_err *err)
{
    for (uint32_t i = 0; i < m->n_members; i++)
        if (wf_member_trains(&m->members[i], j->generation))
            WF_TRY(send(m, &m->members[i], WF_CUT_RESUME, j->cut->number, NULL, err));
    return WF_OK;
}

/* ---- the journal ---- */

static size_t list_workers(const wf_master *m, const wf_job *j, Weft__Member rows[],
                           Weft__Member *list[])
{
    size_t n = 0;

    for (uint32_t i = 0; i < m->n_members; i++) {
        const wf_member *who = &m->members[i];

        if (!wf_member_trains(who, j->generation))
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

/* With the steps of the workers: a checkpoint is named by their sum, and the sum must not be
 * smaller after a restart, when some of them may be gone. `saved`: it is committed, as that step.
 */
static wf_status journal(wf_master *m, const wf_job *j, const uint64_t *saved, wf_err *err)
{
    Weft__Member *rows = calloc(m->n_members + 1, sizeof *rows);
    Weft__Member **list = calloc(m->n_members + 1, sizeof(*list));
    Weft__Record record = WEFT__RECORD__INIT;
    Weft__CutRecord r = WEFT__CUT_RECORD__INIT;
    wf_status rc;

    record.cut = &r;
    record.number = j->number;
    r.generation = j->generation;
    r.number = j->cut->number;
    r.chief = j->cut->chief;
    r.committed = saved != NULL;
    r.step = saved ? *saved : 0;
    r.next_cut = j->next_cut;
    r.asked = j->cut->asked;
    if (rows && list)
        r.n_workers = list_workers(m, j, rows, list);
    r.workers = list;
    rc = rows && list ? wf_journal_append(m->journal, &record, err)
                      : wf_fail_nomem(err, m->n_members * sizeof *rows);
    free(rows);
    free(list);
    return rc;
}

static void take_saved(wf_job *j, uint64_t step)
{
    j->from_step = -1; /* what follows the step that was named is the newest now */
    j->latest = step;
    j->cut->n_saved++;
}

void wf_cut_replay(wf_job *j, const Weft__CutRecord *r)
{
    j->next_cut = r->next_cut;
    j->cut->number = r->number;
    if (r->committed)
        take_saved(j, r->step);
}

/* ---- what happens to it ---- */

/* Whose reports make the cut complete is the chief's matter: it alone gets the list of workers. */
static wf_status announce(wf_master *m, const wf_job *j, Weft__Member *rows, Weft__Member **list,
                          wf_err *err)
{
    Weft__Cut body = WEFT__CUT__INIT;
    size_t n = list_workers(m, j, rows, list);

    body.number = j->cut->number;
    body.chief = j->cut->chief;
    body.global_step = j->base_step + j->lost_steps;
    body.keep = j->prepared->keep;
    body.final = j->cut->final;
    body.workers = list;
    for (uint32_t i = 0; i < m->n_members; i++) {
        wf_member *who = &m->members[i];

        who->reported = false;
        body.n_workers = who->incarnation == j->cut->chief ? n : 0;
        if (wf_member_trains(who, j->generation))
            WF_TRY(send(m, who, WF_CUT_OPEN, j->cut->number, &body.base, err));
    }
    return WF_OK;
}

wf_status wf_cut_open(wf_master *m, wf_job *j, const wf_member *chief, bool final, bool asked,
                      wf_err *err)
{
    Weft__Member *rows = calloc(m->n_members + 1, sizeof *rows);
    Weft__Member **list = calloc(m->n_members + 1, sizeof(*list));
    wf_cut *c = j->cut;
    wf_status rc;

    wf_assert(wf_member_trains(chief, j->generation)); /* M3: of this generation */
    j->cut_wanted = false; /* the place of the next one may be reached while this one is written */
    move(j, WF_CUT_WAS_OPENED);
    c->number++; /* used once in a generation: the journal has it before anybody */
    wf_assert(c->number && j->generation == m->job_generation);
    c->chief = chief->incarnation;
    c->final = final;
    c->asked = asked;
    c->began_ns = m->now_ns;
    c->began_present_ns = m->watch.present_ns;
    rc = journal(m, j, NULL, err);
    if (rc == WF_OK)
        rc = rows && list ? announce(m, j, rows, list, err)
                          : wf_fail_nomem(err, m->n_members * sizeof *rows);
    free(rows);
    free(list);
    return rc;
}

wf_status wf_cut_on_register(wf_master *m, wf_job *j, wf_member *who, uint32_t holds, wf_err *err)
{
    const wf_cut *c = j->cut;
    Weft__Cut body = WEFT__CUT__INIT;

    if (c->state != WF_CUT_NONE &&
        (who->incarnation == c->chief ||
         (c->state == WF_CUT_HOLDING && who->reported && holds != c->number)))
        WF_TRY(wf_cut_abort(m, j, err));
    if (!wf_cut_is_holding(c))
        return holds ? send(m, who, WF_CUT_RESUME, holds, NULL, err) : WF_OK;
    body.number = c->number;
    body.chief = c->chief;
    body.final = c->final;
    return holds == c->number ? WF_OK : send(m, who, WF_CUT_OPEN, c->number, &body.base, err);
}

wf_status wf_cut_on_forked(wf_master *m, wf_job *j, wf_err *err)
{
    wf_cut *c = j->cut;

    if (!wf_cut_may(c, WF_CUT_WAS_FORKED))
        return WF_OK;
    move(j, WF_CUT_WAS_FORKED);
    c->pause_ns = (uint64_t)(m->now_ns - c->began_ns);
    c->pause_most_ns = WF_MAX(c->pause_most_ns, c->pause_ns);
    return c->final ? WF_OK : resume(m, j, err);
}

wf_status wf_cut_on_commit(wf_master *m, wf_job *j, wf_member *who, wf_err *err)
{
    if (!wf_cut_may(j->cut, WF_CUT_WAS_GRANTED))
        return WF_OK;
    wf_assert(who->incarnation == j->cut->chief); /* M3 */
    WF_TRY(journal(m, j, NULL, err));
    move(j, WF_CUT_WAS_GRANTED);
    return send(m, who, WF_CUT_COMMIT, j->cut->number, NULL, err);
}

wf_status wf_cut_on_saved(wf_master *m, wf_job *j, const Weft__CutDone *done, wf_err *err)
{
    if (!wf_cut_may(j->cut, WF_CUT_WAS_COMMITTED)) /* M3 */
        return wf_fail(err, WF_PROTO, NULL, "cut %u was committed without the right to",
                       j->cut->number);
    wf_assert(wf_member_find(m, j->cut->chief)); /* M3: no cut outlives its chief */
    move(j, WF_CUT_WAS_COMMITTED);
    j->cut->failures = 0;
    take_saved(j, done->step);
    wf_job_note(m, j, "ckpt.saved", "step %lu, %lu bytes, paused %.1f ms, took %.1f ms",
                (unsigned long)done->step, (unsigned long)done->bytes, (double)done->pause_ns / 1e6,
                (double)done->took_ns / 1e6);
    return journal(m, j, &done->step, err);
}

wf_status wf_cut_fail(wf_master *m, wf_job *j, bool told, const char *what, const char *hint,
                      wf_err *err)
{
    wf_cut *c = j->cut;
    bool holding = wf_cut_is_holding(c);
    wf_err why;

    if (!told)
        WF_TRY(send_to_chief(m, j, WF_CUT_ABORT, NULL, err));
    move(j, WF_CUT_WAS_FAILED);
    c->n_failed++;
    wf_job_note(m, j, "ckpt.failed", "%s", what);
    if (holding)
        WF_TRY(resume(m, j, err));
    if (!c->final)
        return WF_OK;
    j->cut_wanted = true;
    c->retry_ns = m->now_ns + WF_NS_PER_S;
    if (++c->failures < LAST_TRIES)
        return WF_OK;
    if (!j->stop_asked) { /* all that was trained since the one before would be lost */
        c->retry_ns = m->now_ns + AGAIN_NS;
        wf_job_note(m, j, "job.waits",
                    "for its last checkpoint: it is tried again every %d s until it is written, or "
                    "the job is stopped",
                    (int)(AGAIN_NS / WF_NS_PER_S));
        return WF_OK;
    }
    wf_fail(&why, WF_IO, hint, "the last checkpoint could not be written: %s", what);
    return wf_job_enter(m, j, WF_JOB_FAIL, &why, err);
}

wf_status wf_cut_abort(wf_master *m, wf_job *j, wf_err *err)
{
    bool holding = wf_cut_is_holding(j->cut);

    if (j->cut->state == WF_CUT_NONE)
        return WF_OK;
    move(j, WF_CUT_WAS_ABORTED);
    j->cut_wanted = true;
    WF_TRY(send_to_chief(m, j, WF_CUT_ABORT, NULL, err));
    return holding ? resume(m, j, err) : WF_OK;
}
