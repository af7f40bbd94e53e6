/* SPDX-License-Identifier: Apache-2.0 */
/* master/epoch/splits.c */
#include "master/epoch/splits.h"
#include "common/base/size.h"
#include "common/wire/control.h"
#include "master/epoch/epoch.h"
#include "master/epoch/growth.h"
#include "master/epoch/returned.h"
#include "master/member/facts.h"

#include <stdlib.h>

enum { MOST_HELD = 512 };

static const uint64_t most_bytes = UINT64_C(1) << 48; /* of one report, and most rows */

/* ---- the place of a checkpoint ---- */

/* The planned step before position `at` of the open epoch. */
static uint64_t planned_step(const wf_job *j, uint64_t at)
{
    return wf_epoch_steps_before(j) + wf_shards_batches(&j->epoch->shards, at, j->prepared->batch);
}

void wf_splits_move_next_cut(wf_job *j)
{
    uint64_t every = j->prepared->every_steps, batch = j->prepared->batch, here;

    if (!every)
        return;
    here = wf_epoch_steps_before(j) + wf_ledger_trained(&j->epoch->ledger) / batch;
    do
        j->next_cut += every;
    while (j->next_cut <= here);
}

/* 1 + the position in split [begin, end) where a checkpoint is due, or 0. One split carries the
 * mark of a cut, so that two workers do not each announce it. */
static uint64_t cut_place(const wf_job *j, uint64_t next, uint64_t end)
{
    uint64_t before = planned_step(j, next), ahead;

    if (!j->prepared->every_steps || !j->next_cut || j->epoch->marked_cut == j->next_cut)
        return 0;
    if (j->next_cut <= before)
        return before == 0 ? 0 : 1 + next;
    ahead = (j->next_cut - before) * j->prepared->batch;
    return ahead < end - next ? 1 + next + ahead : 0;
}

/* ---- to workers ---- */

static wf_status grant(wf_master *m, wf_job *j, wf_member *who, uint64_t id, wf_err *err)
{
    Weft__Split body = WEFT__SPLIT__INIT;

    wf_assert(j->epoch->state == WF_EPOCH_TRAINING || j->epoch->state == WF_EPOCH_EVALUATED);
    body.id = id;
    body.epoch = j->epoch->ledger.epoch;
    body.begin = wf_ledger_begins(&j->epoch->ledger, id);
    body.next = j->epoch->ledger.rows[id].next;
    body.end = wf_ledger_ends(&j->epoch->ledger, id);
    wf_ledger_order_of(&j->epoch->ledger, id, &body.order_begin, &body.order_end);
    body.cut_at = cut_place(j, body.next, body.end);
    if (body.cut_at)
        j->epoch->marked_cut = j->next_cut;
    who->wants = false;
    wf_returned_dealt(m, j, id, who->task);
    if (!j->began_ns) /* the time that a job takes begins with its first records */
        j->began_ns = m->now_ns;
    return wf_member_send(m, who, WF_SPLIT, &body.base, err);
}

wf_status wf_splits_deal(wf_master *m, wf_job *j, wf_err *err)
{
    if (wf_master_facts(m)->claims_out || j->stop_asked)
        return WF_OK;
    wf_near_settle(m, j);
    for (uint64_t i = 0; wf_ledger_any_to_do(&j->epoch->ledger) && wf_todo_next(&m->wanting, i, &i);
         i++) {
        wf_member *who = &m->members[i];
        int host = wf_near_host(j, who);
        bool has = true;
        uint64_t id;

        if (!who->wants) {
            wf_todo_remove(&m->wanting, i);
            continue;
        }
        if (!wf_member_trains(who, j->generation))
            continue;
        if (wf_job_grows(j))
            WF_TRY(wf_growth_tell(m, j, who, &has, err));
        if (!has || !wf_ledger_deal_near(&j->epoch->ledger, who->incarnation, host, &id))
            continue;
        wf_near_dealt(j, id, host);
        WF_TRY(grant(m, j, who, id, err));
    }
    return WF_OK;
}

void wf_splits_on_want(wf_master *m, wf_member *who)
{
    who->wants = true;
    wf_todo_add(&m->wanting, (uint64_t)(who - m->members));
}

/* ---- and back ---- */

static void take_rate(wf_master *m, wf_member *who, uint64_t samples)
{
    double seconds = (double)(m->now_ns - who->rate_ns) / 1e9;

    if (who->rate_ns && seconds > 0 && seconds < 10) {
        double rate = (double)samples / seconds;

        who->samples_per_sec =
            who->samples_per_sec > 0 ? 0.7 * who->samples_per_sec + 0.3 * rate : rate;
    }
    who->rate_ns = m->now_ns;
}

wf_status wf_splits_on_progress(wf_master *m, wf_job *j, wf_member *who, const wf_msg *msg,
                                wf_err *err)
{
    Weft__Progress *body = NULL;
    wf_status rc = WF_OK;

    WF_TRY(wf_control_get(msg, &weft__progress__descriptor, &body, err));
    who->steps = WF_MAX(who->steps, body->steps);
    for (size_t i = 0; i < body->n_open; i++)
        if (body->open[i]->epoch == j->epoch->ledger.epoch && j->epoch->ledger.n)
            wf_ledger_progress(&j->epoch->ledger, body->open[i]->id, who->incarnation,
                               body->open[i]->next);
    if (j->epoch->ledger.n)
        rc = wf_measures_take(j->epoch->trained, &j->epoch->n_trained, body->metrics,
                              body->n_metrics, err);
    if (rc ==
        WF_FULL) /* more sums than any metric makes: it costs the sender, and not the master */
        rc = err->status = WF_PROTO;
    take_rate(m, who, body->samples);
    j->epoch->dropped_steps += body->dropped;
    j->epoch->pushed_bytes += WF_MIN(body->pushed_bytes, most_bytes); /* so that sums fit */
    j->epoch->plain_bytes += WF_MIN(body->plain_bytes, most_bytes);
    j->epoch->rows_named += WF_MIN(body->rows_named, most_bytes);
    j->epoch->rows_cached += WF_MIN(body->rows_cached, most_bytes);
    if (body->dropped)
        wf_job_note(m, j, "job.dropped", "%lu steps of worker %u had NaN or infinite gradients",
                    (unsigned long)body->dropped, who->task.index);
    who->compute_ns += body->compute_ns;
    who->wait_ns += body->wait_ns;
    who->transfer_ns += body->transfer_ns;
    who->data_ns += body->data_ns;
    wf_control_free(&body);
    return rc;
}

static wf_status finish(wf_master *m, wf_job *j, const wf_member *who, Weft__Split *const list[],
                        size_t n, wf_err *err)
{
    Weft__Record record = WEFT__RECORD__INIT;
    Weft__SplitDone done = WEFT__SPLIT_DONE__INIT;
    Weft__Split **kept = calloc(n + 1, sizeof(*kept));
    wf_status rc = WF_OK;

    if (!kept)
        return wf_fail_nomem(err, n * sizeof(*kept));
    for (size_t i = 0; i < n; i++)
        if (list[i]->epoch == j->epoch->ledger.epoch && j->epoch->ledger.n &&
            wf_ledger_finish(&j->epoch->ledger, list[i]->id, who->incarnation))
            kept[done.n_splits++] = list[i];
    done.splits = kept;
    record.finished = &done;
    record.number = j->number;
    done.steps = who->steps;
    done.incarnation = who->incarnation;
    if (done.n_splits)
        j->epoch->set_aside = 0; /* so it is not that workers die whatever they train */
    if (done.n_splits)
        rc = wf_journal_append(m->journal, &record, err); /* M1 */
    free(kept);
    return rc;
}

wf_status wf_splits_on_done(wf_master *m, wf_job *j, wf_member *who, const wf_msg *msg, wf_err *err)
{
    Weft__SplitDone *body = NULL;
    wf_status rc;

    WF_TRY(wf_control_get(msg, &weft__split_done__descriptor, &body, err));
    who->steps = WF_MAX(who->steps, body->steps);
    rc = finish(m, j, who, body->splits, body->n_splits, err);
    if (rc == WF_OK)
        rc = wf_member_send(m, who, WF_SPLIT_DONE_OK, &body->base, err);
    wf_control_free(&body);
    return rc;
}

wf_status wf_splits_check_held(const wf_member *who, size_t n_open, size_t n_finished, wf_err *err)
{
    char text[32];

    if (n_open <= MOST_HELD && n_finished <= MOST_HELD)
        return WF_OK;
    return wf_fail(err, WF_PROTO, NULL, "%s says that it holds %zu splits and has done %zu",
                   wf_task_str(who->task, text, sizeof text), n_open, n_finished);
}

wf_status wf_splits_claim(wf_master *m, wf_job *j, const wf_member *who, const Weft__Register *r,
                          wf_err *err)
{
    wf_ledger *l = &j->epoch->ledger;

    wf_ledger_release(l, who->incarnation, false);
    j->epoch->marked_cut = 0; /* it lets go of its mark when the link breaks */
    for (size_t i = 0; i < r->n_open; i++)
        if (r->open[i]->epoch == l->epoch)
            wf_ledger_claim(l, r->open[i]->id, who->incarnation, r->open[i]->next);
    for (size_t i = 0; i < r->n_finished; i++)
        if (r->finished[i]->epoch == l->epoch)
            wf_ledger_claim(l, r->finished[i]->id, who->incarnation, r->finished[i]->next);
    return finish(m, j, who, r->finished, r->n_finished, err);
}

/* ---- for a checkpoint ---- */

size_t wf_splits_ranges(const wf_ledger *l, bool leased_too, Weft__Split rows[],
                        Weft__Split *list[])
{
    size_t n = 0;

    for (uint64_t i = 0; i < l->n; i++) {
        uint64_t begin = wf_ledger_begins(l, i);

        if (l->rows[i].next == begin || (!leased_too && l->rows[i].state == WF_SPLIT_LEASED))
            continue;
        if (n == 0 || rows[n - 1].end != begin) { /* an epoch has few ranges, many splits */
            weft__split__init(&rows[n]);
            rows[n].begin = begin;
            list[n] = &rows[n];
            n++;
        }
        rows[n - 1].end = l->rows[i].next;
    }
    return n;
}

/* A round that is pending is none of the checkpoint's: its files are new again. */
static wf_status add_rounds(const wf_job *j, wf_splits_ledger *out, wf_err *err)
{
    const wf_rounds *r = &j->rounds;

    out->body.steps_before = j->epoch->steps_before;
    out->body.records_before = j->epoch->records_before;
    out->body.train_digest = j->epoch->train_digest;
    out->body.earlier = r->earlier;
    out->body.n_earlier = r->n_earlier;
    if (r->round != j->epoch->ledger.epoch + 1)
        return WF_OK;
    WF_TRY(wf_round_message_make(r, &out->round, err));
    out->body.files = out->round.list;
    out->body.n_files = r->n_files;
    return WF_OK;
}

wf_status wf_splits_ledger_make(const wf_job *j, wf_splits_ledger *out, wf_err *err)
{
    const wf_ledger *l = &j->epoch->ledger;

    weft__ledger__init(&out->body);
    out->rows = calloc(l->n + 1, sizeof *out->rows);
    out->list = calloc(l->n + 1, sizeof(*out->list));
    if (!out->rows || !out->list)
        return wf_fail_nomem(err, l->n * sizeof *out->rows);
    out->body.epoch = l->epoch;
    out->body.records = j->epoch->train_records;
    out->body.split_records = l->split_records;
    out->body.evaluated = wf_epoch_is_evaluated(j);
    out->body.next_cut = j->next_cut;
    out->body.file_ends = j->epoch->shards.ends;
    out->body.n_file_ends = j->epoch->shards.n;
    out->round = (wf_round_message){0};
    if (wf_job_grows(j))
        WF_TRY(add_rounds(j, out, err));
    out->body.finished = out->list;
    out->body.n_finished = wf_splits_ranges(l, false, out->rows, out->list);
    for (size_t i = 0; i < out->body.n_finished; i++) {
        out->rows[i].epoch = l->epoch;
        out->rows[i].next = out->rows[i].end;
    }
    return WF_OK;
}

void wf_splits_ledger_free(wf_splits_ledger *l)
{
    free(l->rows);
    free(l->list);
    wf_round_message_free(&l->round);
}

size_t wf_splits_held(const wf_job *j, const wf_member *who, Weft__Split rows[],
                      Weft__Split *list[], size_t most)
{
    const wf_ledger *l = &j->epoch->ledger;
    size_t n = 0;

    for (uint64_t id = UINT64_MAX; n < most && wf_ledger_held(l, who->incarnation, &id); n++) {
        Weft__Split *row = &rows[n];

        weft__split__init(row);
        row->id = id;
        row->epoch = l->epoch;
        row->begin = wf_ledger_begins(l, id);
        row->next = l->rows[id].next;
        row->end = wf_ledger_ends(l, id);
        list[n] = row;
    }
    return n;
}
