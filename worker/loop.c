/* SPDX-License-Identifier: Apache-2.0 */
/* worker/loop.c - the step loop: weights are asked for, a step is begun, its gradients leave.
 *
 * With a pipeline the request for weights leaves before the gradients of one step or two do, so
 * that the ps apply and send while this worker computes. Whether pulling ahead is right depends
 * on the data's order alone, never on timing (W3): at a barrier (a cut, the first batch of an
 * epoch) what was pulled ahead is dropped and asked for anew, with all own pushes in it. So a run
 * that goes on from a checkpoint computes the same bits as one that was never stopped.
 *
 * With a pipeline the weights of a step do not hold the pushes of the step before. So both may be
 * computed at once, within a split: each step has the weights that it would have had otherwise.
 */
#include "common/base/size.h"
#include "worker/state.h"

/* Where there are tables, what is asked for depends on the step's records. Ahead of the step's turn
 * records that are wrong are passed over: they are told when it comes. */
static wf_status want(wf_worker *w, uint32_t step, bool ahead, wf_err *err)
{
    int set = (int)(step % WF_STEP_SETS);
    bool known = true;
    wf_status rc = WF_OK;

    if (w->exchange->set_step[set] == step)
        return WF_OK;
    if (w->job.tables)
        rc = w->conf.ops.name_step(w->conf.ops.arg, w->exchange, set, step, &known, err);
    if (rc != WF_OK || !known)
        return ahead ? WF_OK : rc;
    return wf_exchange_want(w->exchange, set, step, err);
}

wf_batch_id *wf_loop_batch(wf_worker *w, uint32_t step)
{
    return &w->batches[step % WF_WORKER_AT_ONCE];
}

static uint32_t in_hand(const wf_worker *w)
{
    return w->begun - w->step;
}

/* Whether the rows of the step that comes `later` steps after that of a batch may be asked for now.
 * The next split may not have come yet, and W3 forbids to look: where rows are asked for ahead, a
 * split ends as an epoch does. */
static bool may_ask(const wf_worker *w, const wf_open_split *s, const wf_batch_id *batch,
                    uint32_t later)
{
    return !w->job.tables || w->job.pipeline == 0 ||
           batch->end + (later - 1) * w->job.batch < s->end;
}

/* The first step in hand is computed and its gradients are given: it has a place in the data. */
static void note_place(wf_worker *w, wf_open_split *s, const wf_batch_id *batch)
{
    wf_assert(s && s->id == batch->split && s->next == batch->begin);
    w->step++;
    if (in_hand(w) == 0)
        wf_worker_move(w, WF_WORKER_STEP_ENDED);
    w->epoch = batch->epoch;
    w->any_step = true;
    s->next = batch->end;
    w->places[w->step % WF_WORKER_STEPS] = (wf_step_place){w->step, s->id, s->next};
    w->samples += batch->end - batch->begin;
}

wf_status wf_worker_on_computed(wf_worker *w, const wf_train_result *r, wf_err *err)
{
    const wf_batch_id *batch = wf_loop_batch(w, w->step + 1);

    if (w->state != WF_WORKER_COMPUTING) /* the job was halted meanwhile */
        return WF_OK;
    w->compute_ns += r->compute_ns;
    w->data_ns += r->data_ns;
    if (r->why.status != WF_OK) {
        wf_worker_fault(w, &r->why);
        return WF_OK;
    }
    if (r->dropped) {
        w->dropped++;
        WF_TRY(wf_exchange_drop_step(w->exchange, w->step + 1, err));
    }
    WF_TRY(wf_exchange_end_step(w->exchange, w->step + 1, err));
    /* The request that may leave behind these gradients goes with them, so that each slice comes
     * back as soon as it is updated. */
    if (may_ask(w, wf_splits_current(w), batch, 1 + w->job.pipeline))
        WF_TRY(want(w, w->step + 2 + w->job.pipeline, true, err));
    note_place(w, wf_splits_current(w), batch);
    WF_TRY(wf_report_add(w, r->n_metrics, r->metrics, err));
    if (w->dropped) /* before its split is done: the job may end with that */
        WF_TRY(wf_report_progress(w, err));
    return wf_splits_settle(w, err);
}

void wf_loop_barrier(wf_worker *w)
{
    wf_exchange_barrier(w->exchange, w->step);
    w->any_step = false;
}

/* Where the next step of a split begins. */
static uint64_t next_of(wf_worker *w, const wf_open_split *s)
{
    return in_hand(w) ? wf_loop_batch(w, w->begun)->end : s->next;
}

static wf_status begin_step(wf_worker *w, wf_open_split *s, wf_err *err)
{
    uint32_t step = w->begun + 1;
    wf_batch_id *batch = wf_loop_batch(w, step);
    uint64_t next = next_of(w, s);

    *batch = (wf_batch_id){
        .epoch = s->epoch,
        .split = s->id,
        .number = (next - s->begin) / w->job.batch,
        .begin = next,
        .end = WF_MIN(next + w->job.batch, s->end),
    };
    if (in_hand(w) == 0) {
        for (uint32_t later = 1; later <= w->job.pipeline; later++)
            if (may_ask(w, s, batch, later))
                WF_TRY(want(w, step + later, true, err));
        wf_worker_move(w, WF_WORKER_STEP_BEGUN);
    }
    w->begun = step;
    w->eval_set_of = 0;
    w->wait.kind = WF_WAIT_NONE;
    wf_exchange_begin_step(w->exchange, step, (uint32_t)(batch->end - batch->begin));
    return w->conf.ops.compute(w->conf.ops.arg,
                               &(wf_train_step){.exchange = w->exchange,
                                                .step = step,
                                                .set = (int)(step % WF_STEP_SETS),
                                                .generation = w->generation,
                                                .lonely = in_hand(w) == 1 && batch->end == s->end,
                                                .batch = *batch},
                               err);
}

/* Whether the next step, of a split, must count on all steps before it (K1). */
static bool is_apart(wf_worker *w, const wf_open_split *s)
{
    return w->any_step && (s->epoch != w->epoch || (w->job.tables && w->job.pipeline > 0 &&
                                                    s->id != wf_loop_batch(w, w->step)->split));
}

/* Begins the next step if its weights are in and nothing holds it. */
static wf_status try_step(wf_worker *w, wf_err *err)
{
    wf_open_split *s = wf_splits_current(w);
    uint32_t step = w->begun + 1;

    if (!s || next_of(w, s) >= s->end)
        return WF_OK;
    if (wf_hold_is_at(s, next_of(w, s)))
        return in_hand(w) ? WF_OK : wf_hold_announce(w, s, err);
    if (!in_hand(w) && is_apart(w, s)) {
        if (wf_exchange_in_flight(w->exchange) > 0)
            return WF_OK;
        wf_loop_barrier(w);
    }
    WF_TRY(want(w, step, false, err));
    if (w->exchange->set_step[step % WF_STEP_SETS] != step ||
        !wf_exchange_ready(w->exchange, step % WF_STEP_SETS) ||
        wf_exchange_in_flight(w->exchange) > w->job.pipeline + w->exchange->late)
        return WF_OK;
    return begin_step(w, s, err);
}

/* Whether the next step waits for weights and acknowledgements alone. */
static bool has_work(wf_worker *w)
{
    const wf_open_split *s = wf_splits_current(w);

    return s && !wf_hold_is_at(s, s->next) && w->hold == WF_HOLD_FREE && !w->eval_wanted;
}

/* Whether another step may begin beside those in hand. */
static bool has_room(const wf_worker *w)
{
    return in_hand(w) < w->job.at_once && w->hold == WF_HOLD_FREE && !w->eval_wanted;
}

/* One step a call: the shell reads what has arrived between two. */
static wf_status next_thing(wf_worker *w, wf_err *err)
{
    if (w->hold != WF_HOLD_FREE)
        return wf_hold_report(w, err);
    return w->eval_wanted ? wf_evaluation_begin(w, err) : try_step(w, err);
}

wf_status wf_worker_advance(wf_worker *w, int64_t now_ns, wf_err *err)
{
    wf_err why = {0};

    if (w->broken.status != WF_OK) {
        *err = w->broken;
        return w->broken.status;
    }
    wf_waits_look(w, now_ns);
    wf_session_advance(&w->session);
    if (!w->start)
        return WF_OK;
    if (w->state == WF_WORKER_FAULTED)
        return wf_exchange_leave(w->exchange, err);
    WF_TRY(wf_splits_settle(w, err));
    WF_TRY(wf_exchange_retry(w->exchange, now_ns, err));
    WF_TRY(wf_chief_advance(w, now_ns, err));
    WF_TRY(wf_report_when_due(w, now_ns, err));
    if (w->state == WF_WORKER_COMPUTING && !has_room(w))
        return WF_OK;
    WF_TRY(wf_round_open(w, err));
    WF_TRY(wf_splits_want(w, err));
    if (next_thing(w, &why) != WF_OK)
        wf_worker_fault(w, &why);
    return w->state == WF_WORKER_COMPUTING || has_work(w) ? WF_OK
                                                          : wf_exchange_leave(w->exchange, err);
}
