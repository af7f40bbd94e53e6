/* SPDX-License-Identifier: Apache-2.0 */
/* worker/splits.c - the leases in hand: which records come next, which are trained and
 * acknowledged, and what of that the master knows. */
#include "common/wire/control.h"
#include "worker/state.h"

#include <string.h>

wf_open_split *wf_splits_current(wf_worker *w)
{
    for (int i = 0; i < WF_WORKER_SPLITS; i++)
        if (w->splits[i].used && w->splits[i].next < w->splits[i].end)
            return &w->splits[i];
    return NULL;
}

static bool holds(const wf_worker *w, uint32_t epoch, uint64_t id)
{
    for (int i = 0; i < WF_WORKER_SPLITS; i++)
        if (w->splits[i].used && w->splits[i].id == id && w->splits[i].epoch == epoch)
            return true;
    for (uint32_t i = 0; i < w->n_finished; i++)
        if (w->finished[i].id == id && w->finished[i].epoch == epoch)
            return true;
    return false;
}

/* Of data that grows, positions of another epoch would be other records. */
static wf_status check_round(const wf_worker *w, uint32_t epoch, wf_err *err)
{
    if (!w->round || w->round == epoch + 1)
        return WF_OK;
    return wf_fail(err, WF_PROTO, "this is a bug in weft",
                   "a split of epoch %u, with the files of round %u open", epoch + 1, w->round);
}

wf_status wf_splits_on_grant(wf_worker *w, const wf_msg *m, wf_err *err)
{
    Weft__Split *body = NULL;
    wf_open_split *s = NULL;
    wf_err why;

    w->want_sent = false;
    WF_TRY(wf_control_get(m, &weft__split__descriptor, &body, err));
    for (int i = 0; i < WF_WORKER_SPLITS && !s; i++)
        if (!w->splits[i].used)
            s = &w->splits[i];
    if (s && body->begin <= body->next && body->next < body->end &&
        !holds(w, body->epoch, body->id)) {
        wf_batch_id range = {.epoch = body->epoch,
                             .split = body->id,
                             .begin = body->next,
                             .end = body->end,
                             .order_begin = body->order_begin,
                             .order_end = body->order_end};

        *s = (wf_open_split){.used = true,
                             .id = body->id,
                             .epoch = body->epoch,
                             .begin = body->begin,
                             .next = body->next,
                             .acked = body->next,
                             .end = body->end,
                             .cut_at = body->cut_at};
        range.number = (body->next - body->begin) / w->job.batch;
        if (check_round(w, body->epoch, &why) != WF_OK ||
            w->conf.ops.read(w->conf.ops.arg, &range, &why) != WF_OK)
            wf_worker_fault(w, &why); /* it ends the job, and not this process */
    }
    wf_control_free(&body);
    return WF_OK;
}

wf_status wf_splits_on_confirmed(wf_worker *w, const wf_msg *m, wf_err *err)
{
    Weft__SplitDone *body = NULL;

    WF_TRY(wf_control_get(m, &weft__split_done__descriptor, &body, err));
    for (size_t i = 0; i < body->n_splits; i++)
        for (uint32_t k = 0; k < w->n_finished; k++)
            if (w->finished[k].id == body->splits[i]->id &&
                w->finished[k].epoch == body->splits[i]->epoch) {
                w->finished[k] = w->finished[--w->n_finished];
                break;
            }
    wf_control_free(&body);
    return WF_OK;
}

static void fill(Weft__Split *row, uint64_t id, uint32_t epoch, uint64_t begin, uint64_t next,
                 uint64_t end)
{
    weft__split__init(row);
    row->id = id;
    row->epoch = epoch;
    row->begin = begin;
    row->next = next;
    row->end = end;
}

size_t wf_splits_open(const wf_worker *w, Weft__Split rows[], Weft__Split *list[])
{
    size_t n = 0;

    for (int i = 0; i < WF_WORKER_SPLITS; i++) {
        const wf_open_split *s = &w->splits[i];

        if (!s->used)
            continue;
        fill(&rows[n], s->id, s->epoch, s->begin, s->acked, s->end);
        list[n] = &rows[n];
        n++;
    }
    return n;
}

size_t wf_splits_finished(const wf_worker *w, Weft__Split rows[], Weft__Split *list[])
{
    for (uint32_t i = 0; i < w->n_finished; i++) {
        const wf_done_split *d = &w->finished[i];

        fill(&rows[i], d->id, d->epoch, d->begin, d->end, d->end);
        list[i] = &rows[i];
    }
    return w->n_finished;
}

static wf_status report_split(wf_worker *w, const wf_done_split *d, wf_err *err)
{
    Weft__SplitDone body = WEFT__SPLIT_DONE__INIT;
    Weft__Split row, *list[1] = {&row};

    if (w->n_metrics) /* those of its steps come first: the epoch may end with it */
        WF_TRY(wf_report_progress(w, err));
    fill(&row, d->id, d->epoch, d->begin, d->end, d->end);
    body.splits = list;
    body.n_splits = 1;
    body.steps = w->exchange->acked;
    return wf_session_send(&w->session, WF_SPLIT_DONE, &body.base, err);
}

/* The splits that are done leave; those behind move up, so that the order of work stays. */
static wf_status report_done(wf_worker *w, wf_err *err)
{
    int kept = 0;

    for (int i = 0; i < WF_WORKER_SPLITS; i++) {
        wf_open_split *s = &w->splits[i];
        wf_done_split *d = &w->finished[w->n_finished];

        if (!s->used)
            continue;
        if (s->acked < s->end || w->n_finished == WF_WORKER_FINISHED) {
            if (kept != i) {
                w->splits[kept] = *s;
                s->used = false;
            }
            kept++;
            continue;
        }
        *d = (wf_done_split){s->id, s->begin, s->end, s->epoch};
        w->n_finished++;
        s->used = false;
        WF_TRY(report_split(w, d, err));
    }
    return WF_OK;
}

wf_status wf_splits_settle(wf_worker *w, wf_err *err)
{
    uint32_t acked = w->exchange->acked;
    bool moved = false;

    for (int i = 0; i < WF_WORKER_STEPS; i++) {
        wf_step_place *p = &w->places[i];

        if (!p->step || p->step > acked)
            continue;
        for (int k = 0; k < WF_WORKER_SPLITS; k++)
            if (w->splits[k].used && w->splits[k].id == p->split && w->splits[k].acked < p->end) {
                w->splits[k].acked = p->end;
                moved = true;
            }
        p->step = 0;
    }
    return moved ? report_done(w, err) : WF_OK;
}

wf_status wf_splits_want(wf_worker *w, wf_err *err)
{
    bool room = false;

    for (int i = 0; i < WF_WORKER_SPLITS; i++)
        room |= !w->splits[i].used;
    if (!room || w->want_sent || !w->session.peer->up || w->state == WF_WORKER_FAULTED)
        return WF_OK;
    w->want_sent = true;
    return wf_session_send(&w->session, WF_SPLIT_WANT, NULL, err);
}
