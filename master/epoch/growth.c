/* SPDX-License-Identifier: Apache-2.0 */
/* master/epoch/growth.c */
#include "master/epoch/growth.h"
#include "common/base/clock.h"
#include "common/wire/control.h"
#include "master/epoch/epoch.h"
#include "master/epoch/left_out.h"

#include <stdio.h>

/* ---- the journal ---- */

static wf_status append(wf_master *m, const wf_job *j, bool whole, wf_err *err)
{
    Weft__RoundRecord r = WEFT__ROUND_RECORD__INIT;
    Weft__Record record = WEFT__RECORD__INIT;
    wf_round_message round;
    wf_status rc;

    WF_TRY(wf_round_message_make(&j->rounds, &round, err));
    r.round = &round.body;
    r.whole = whole;
    r.earlier = j->rounds.earlier;
    r.n_earlier = whole ? j->rounds.n_earlier : 0;
    record.round = &r;
    record.number = j->number;
    rc = wf_journal_append(m->journal, &record, err);
    wf_round_message_free(&round);
    return rc;
}

wf_status wf_growth_journal(wf_master *m, const wf_job *j, wf_err *err)
{
    return j->rounds.earlier ? append(m, j, true, err) : WF_OK;
}

wf_status wf_growth_replay(wf_job *j, const Weft__RoundRecord *r, wf_err *err)
{
    wf_status rc = WF_OK;

    if (!r->round)
        return wf_fail(err, WF_CORRUPT, NULL, "the journal has a round without its files");
    if (!r->whole)
        rc = wf_rounds_replay(&j->rounds, r->round, err);
    else
        rc = wf_rounds_set(&j->rounds, r->round->round, r->round->files, r->round->n_files,
                           r->earlier, r->n_earlier, err);
    if (rc == WF_INVALID || rc == WF_FULL)
        rc = err->status = WF_CORRUPT;
    return rc;
}

void wf_growth_replay_epoch(wf_job *j, const Weft__EpochRecord *r)
{
    wf_epoch *e = j->epoch;

    e->steps_before = r->steps_before;
    e->records_before = r->records_before;
    if (j->rounds.round > 0)
        e->train_digest = r->train_digest;
    if (j->rounds.round > 0 && j->rounds.round == r->epoch + 1) {
        j->rounds.records = r->train_records;
        j->rounds.digest = r->train_digest;
    }
}

/* ---- epochs and their rounds ---- */

void wf_growth_begin_round(wf_job *j, uint64_t before)
{
    wf_epoch *e = j->epoch;

    e->steps_before = before;
    e->records_before += e->ledger.n ? e->train_records : 0;
    e->train_records = j->rounds.records;
    e->train_digest = j->rounds.digest;
}

void wf_growth_end_round(wf_job *j)
{
    const wf_ledger *l = &j->epoch->ledger;

    if (l->n && wf_ledger_complete(l) && j->rounds.round == l->epoch + 1)
        j->rounds.is_over = true;
}

wf_status wf_growth_restore(wf_job *j, const Weft__Ledger *l, wf_err *err)
{
    if (l->n_files + l->n_earlier == 0)
        return wf_fail(err, WF_MISMATCH, "begin a new run: weft train JOB.yaml",
                       "the checkpoint was made without \"new_files\": it does not say which files "
                       "are trained");
    WF_TRY(wf_rounds_set(&j->rounds, l->epoch + 1, l->files, l->n_files, l->earlier, l->n_earlier,
                         err));
    j->epoch->steps_before = l->steps_before;
    j->epoch->records_before = l->records_before;
    j->epoch->train_digest = j->rounds.digest = l->train_digest;
    j->rounds.records = l->records;
    wf_left_out_forget_later(j, l->epoch);
    return WF_OK;
}

/* ---- the next round ---- */

bool wf_growth_wants_listing(const wf_master *m, wf_job *j)
{
    wf_rounds *r = &j->rounds;

    if (!j->prepared || !j->prepared->grows || j->stop_asked || j->state != WF_JOB_RUNNING)
        return false;
    if (r->listed_ns && !r->look_now && m->now_ns - r->listed_ns < j->prepared->poll_ns)
        return false;
    r->listed_ns = m->now_ns;
    r->look_now = false;
    return true;
}

static void tell_taken(wf_master *m, wf_job *j)
{
    const wf_rounds *r = &j->rounds;

    if (r->n_files == 1)
        wf_job_note(m, j, "job.round", "round %u: %.300s", r->round, r->files[0].path);
    else
        wf_job_note(m, j, "job.round", "round %u: %zu files, %.160s to %.160s", r->round,
                    r->n_files, r->files[0].path, r->files[r->n_files - 1].path);
}

static wf_status take(wf_master *m, wf_job *j, wf_err *err)
{
    bool any;
    wf_err why;
    wf_status rc;

    rc = wf_rounds_take(&j->rounds, j->rounds.round + 1, j->prepared->settle_ns, &any, &why);
    if (rc != WF_OK)
        return wf_job_enter(m, j, WF_JOB_FAIL, &why, err);
    if (!any)
        return WF_OK;
    WF_TRY(append(m, j, false, err));
    tell_taken(m, j);
    return WF_OK;
}

wf_status wf_growth_on_listed(wf_master *m, wf_job *j, const wf_listed list[], size_t n,
                              const wf_err *why, wf_err *err)
{
    wf_rounds *r = &j->rounds;

    if (why->status != WF_OK && !r->why[0])
        wf_job_note(m, j, "job.waits", "%s", why->what);
    snprintf(r->why, sizeof r->why, "%.255s", why->status == WF_OK ? "" : why->what);
    if (why->status != WF_OK)
        return WF_OK;
    WF_TRY(wf_rounds_see(r, list, n, r->listed_ns, m->now_ns, err));
    if (!r->is_wanted || j->stop_asked)
        return WF_OK;
    if (r->n_waiting)
        r->idle_ns = m->now_ns;
    return take(m, j, err);
}

wf_status wf_growth_tell(wf_master *m, const wf_job *j, wf_member *who, bool *has, wf_err *err)
{
    wf_round_message round;
    wf_status rc;

    *has = who->round == j->rounds.round;
    if (*has || who->round_sent == j->rounds.round)
        return WF_OK;
    WF_TRY(wf_round_message_make(&j->rounds, &round, err));
    rc = wf_member_send(m, who, WF_ROUND, &round.body.base, err);
    wf_round_message_free(&round);
    who->round_sent = j->rounds.round;
    return rc;
}

static wf_status tell_all(wf_master *m, wf_job *j, wf_err *err)
{
    bool has;

    for (uint32_t i = 0; i < m->n_members; i++)
        if (wf_member_trains(&m->members[i], j->generation))
            WF_TRY(wf_growth_tell(m, j, &m->members[i], &has, err));
    return WF_OK;
}

static wf_status nothing_came(wf_master *m, wf_job *j, wf_err *err)
{
    wf_err why;

    wf_fail(&why, WF_NOTFOUND, "check the pattern, or raise idle_stop_seconds",
            "no file that matches %s has appeared in %g s%s%s", j->prepared->patterns[0],
            (double)j->prepared->idle_ns / WF_NS_PER_S, j->rounds.why[0] ? ": " : "",
            j->rounds.why);
    return wf_job_enter(m, j, WF_JOB_FAIL, &why, err);
}

wf_status wf_growth_advance(wf_master *m, wf_job *j, uint32_t epoch, bool *ready, wf_err *err)
{
    wf_rounds *r = &j->rounds;

    *ready = false;
    if (r->round == epoch + 1) { /* taken, and written down */
        *ready = r->records > 0;
        return *ready ? WF_OK : tell_all(m, j, err);
    }
    wf_assert(r->round == epoch);
    if (!r->is_wanted) {
        r->is_wanted = r->look_now = true;
        r->idle_ns = m->now_ns;
    }
    if (j->prepared->idle_ns && r->seen_ns - r->idle_ns >= j->prepared->idle_ns) {
        r->is_idle = true;
        if (r->round == 0)
            return nothing_came(m, j, err);
    }
    return WF_OK;
}
