/* SPDX-License-Identifier: Apache-2.0 */
/* worker/stages/stage.c */
#include "common/base/size.h"
#include "common/compile/compile.h"
#include "worker/stages/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

wf_status wf_stage_name(const wf_stage *s, wf_status rc, wf_err *err)
{
    const Weft__Start *start = s->conf.start;
    const Weft__Stage *row = start->stages[start->stage];
    const wf_stage_home home = {row->worker, row->device[0] ? row->device : NULL};
    char text[96];

    if (rc == WF_NOMEM && err && !s->conf.device->is_host)
        snprintf(err->hint, sizeof err->hint,
                 "give the stage fewer layers, take more micro_batches, or a device with more "
                 "memory");
    return wf_err_wrap(err, rc, "stage %u of %zu, on %s", start->stage, start->n_stages,
                       wf_stage_home_str(&home, text, sizeof text));
}

/* ---- memory of values ---- */

static wf_status keep_spare(wf_stage *s, wf_buf *b, wf_err *err)
{
    if (s->n_spare == s->spare_room) {
        uint32_t room = s->spare_room ? 2 * s->spare_room : 64;
        wf_buf **more = realloc(s->spare, room * sizeof(*more));

        if (!more)
            return wf_fail_nomem(err, room * sizeof(*more));
        s->spare = more;
        s->spare_room = room;
    }
    s->spare[s->n_spare++] = wf_buf_ref(b);
    return WF_OK;
}

wf_buf *wf_stage_buf(wf_stage *s, size_t bytes)
{
    wf_err ignored;
    wf_buf *b;

    for (uint32_t i = 0; i < s->n_spare; i++)
        if (s->spare[i]->bytes == bytes && wf_buf_refs(s->spare[i]) == 1)
            return wf_buf_ref(s->spare[i]);
    b = s->on.device ? wf_buf_new_pinned(s->on.device, WF_MAX(bytes, (size_t)1))
                     : wf_buf_new(WF_MAX(bytes, (size_t)1));
    if (b && b->bytes == bytes && keep_spare(s, b, &ignored) != WF_OK)
        wf_buf_unref(&b);
    return b;
}

static void drop_held(wf_stage *s)
{
    size_t n = (size_t)s->now.schedule.batches * s->books[s->now.trains].n_values;

    for (size_t i = 0; s->now.held && i < n; i++) {
        wf_buf_unref(&s->now.held[i].buf);
        wf_buf_unref(&s->now.held[i].on);
    }
    free(s->now.held);
    free(s->now.records);
    free(s->now.came);
    s->now.held = NULL;
    s->now.records = NULL;
    s->now.came = NULL;
}

/* ---- made and begun ---- */

static wf_status check_start(const Weft__Start *start, wf_err *err)
{
    if (start->n_stages < 2 || start->n_stages > WF_COUNT(((wf_stage *)NULL)->others) ||
        start->stage >= start->n_stages || !start->micro_batches ||
        start->micro_batches > WF_STAGE_ROUND_MOST)
        return wf_fail(err, WF_PROTO, "let all tasks run one release of weft",
                       "a start of stage %u of %zu, with %u micro-batches", start->stage,
                       start->n_stages, start->micro_batches);
    return WF_OK;
}

static wf_status open_books(wf_stage *s, wf_err *err)
{
    const Weft__Start *start = s->conf.start;

    if (!wf_stage_predicts(s))
        WF_TRY(wf_stage_book_open(
            &s->books[true],
            &(wf_stage_book_spec){.start = start,
                                  .forward = &start->train_graph,
                                  .backward = &start->stages[start->stage]->backward,
                                  .edges = start->train_edges,
                                  .n_edges = start->n_train_edges,
                                  .outputs = start->train_outputs,
                                  .n_outputs = start->n_train_outputs,
                                  .data = s->conf.train},
            err));
    if (start->eval_graph.len == 0 || (wf_stage_is_first(s) && !s->conf.eval && !s->conf.predicted))
        return WF_OK;
    return wf_stage_book_open(&s->books[false],
                              &(wf_stage_book_spec){.start = start,
                                                    .forward = &start->eval_graph,
                                                    .edges = start->eval_edges,
                                                    .n_edges = start->n_eval_edges,
                                                    .outputs = start->eval_outputs,
                                                    .n_outputs = start->n_eval_outputs,
                                                    .data = s->conf.eval,
                                                    .predicted = s->conf.predicted},
                              err);
}

static const wf_exchange_stages first_ops;

static wf_status open_thread(wf_stage *s, wf_err *err)
{
    if (!s->conf.threads)
        return WF_OK;
    WF_TRY(wf_pool_new(s->conf.threads, &s->pool, err));
    s->conf.pool = s->pool;
    return wf_stepper_new(s->conf.fd, &s->thread, err);
}

wf_status wf_stage_new(const wf_stage_conf *conf, wf_stage **out, wf_err *err)
{
    wf_stage *s;
    wf_status rc;

    WF_TRY(check_start(conf->start, err));
    s = calloc(1, sizeof *s);
    if (!s)
        return wf_fail_nomem(err, sizeof *s);
    s->conf = *conf;
    s->ops = first_ops;
    s->ops.arg = s;
    rc = open_books(s, err);
    if (rc == WF_OK)
        rc = open_thread(s, err);
    if (rc == WF_OK)
        rc = wf_stage_device_open(s, err);
    if (rc != WF_OK) {
        rc = wf_stage_name(s, rc, err);
        wf_stage_free(&s);
    }
    *out = s;
    return rc;
}

void wf_stage_free(wf_stage **stage)
{
    wf_stage *s = *stage;

    *stage = NULL;
    if (!s)
        return;
    wf_stepper_free(&s->thread);
    if (wf_stage_is_first(s) && s->exchange.net)
        wf_stage_send_stop(s);
    drop_held(s);
    for (wf_stage_early *e = s->early, *next; e; e = next) {
        next = e->next;
        wf_buf_unref(&e->buf);
        free(e);
    }
    for (uint32_t i = 0; i < s->n_spare; i++)
        wf_buf_unref(&s->spare[i]);
    free(s->spare);
    wf_stage_device_close(s);
    wf_exchange_free(&s->own);
    wf_gradients_free(&s->gradients);
    wf_stage_close_sums(s);
    wf_stage_book_close(&s->books[true]);
    wf_stage_book_close(&s->books[false]);
    wf_pool_free(&s->pool);
    free(s);
}

/* Variables, and a plan of what most steps are: what takes memory. */
static wf_status open_here(wf_stage *s, wf_err *err)
{
    bool trains = !wf_stage_predicts(s);
    wf_plan *p;
    wf_status rc = trains ? wf_stage_open_variables(s, err) : wf_stage_settle(s, err);

    s->now.trains = trains;
    for (int i = 0; rc == WF_OK && i < WF_PARTS; i++) {
        const wf_stage_part *part = &s->books[trains].parts[i];

        if (!part->graph || part->graph->n_nodes == 0)
            continue;
        rc = wf_stage_plan(s, i, s->conf.start->first_records, &p, err);
        if (rc == WF_OK)
            rc = wf_stage_reserve(s, part, p, err);
    }
    s->is_open = rc == WF_OK;
    return wf_stage_name(s, rc, err);
}

static wf_status open_first(void *arg, const wf_exchange_conf *conf, wf_exchange *x, wf_err *err)
{
    wf_stage *s = arg;

    s->exchange = *conf;
    s->told = x;
    WF_TRY(open_here(s, err));
    return wf_stage_send_starts(s, err);
}

static wf_status first_ready(const void *arg, bool *ready, wf_err *err)
{
    const wf_stage *s = arg;

    *ready = true;
    if (s->why.status != WF_OK)
        *err = s->why;
    for (size_t i = 1; i < s->conf.start->n_stages; i++)
        *ready &= s->others[i].ready;
    return s->why.status;
}

static wf_status first_save(void *arg, wf_err *err)
{
    wf_stage *s = arg;
    wf_exchange_save *to = &s->told->saving;

    wf_stage_wait(s);
    WF_TRY(wf_stage_send_save(s, err));
    WF_TRY(wf_stage_save(s, to->cut, to->folder, err));
    to->shards[0].copied = true;
    to->shards[0].writer = (wf_task){WF_ROLE_WORKER, s->conf.start->stages[0]->worker};
    to->shards[0].result = s->own->saving.shards[0].result;
    s->own->saving.shards[0].result = NULL; /* it is given */
    wf_exchange_save_end(s->own);
    return WF_OK;
}

static wf_status first_tune(void *arg, double rate, wf_err *err)
{
    wf_stage *s = arg;

    wf_stage_wait(s);
    WF_TRY(wf_exchange_tune(s->own, rate, err));
    return wf_stage_send_tune(s, rate, err);
}

/* The first stage that is not ready. */
static void name_late(const void *arg, wf_waiting *out)
{
    const wf_stage *s = arg;

    for (size_t i = 1; i < s->conf.start->n_stages; i++)
        if (!s->others[i].ready) {
            out->whom = (wf_task){WF_ROLE_WORKER, s->conf.start->stages[i]->worker};
            snprintf(out->what, sizeof out->what, "its stage, number %zu, to begin", i);
            return;
        }
}

static const wf_exchange_stages first_ops = {.open = open_first,
                                             .ready = first_ready,
                                             .save = first_save,
                                             .tune = first_tune,
                                             .name_late = name_late};

const wf_exchange_stages *wf_stage_exchange(wf_stage *s)
{
    return &s->ops;
}

wf_status wf_stage_begin(wf_stage *s, const wf_exchange_conf *conf, wf_err *err)
{
    s->exchange = *conf;
    WF_TRY(open_here(s, err));
    return wf_stage_look_for_links(s, err);
}

/* ---- rounds ---- */

wf_status wf_stage_enter(wf_stage *s, uint32_t number, const wf_stage_round *round, wf_err *err)
{
    wf_stage_now *now = &s->now;
    size_t n;

    wf_assert(!now->busy); /* T3 */
    wf_stage_wait(s);
    drop_held(s);
    *now = (wf_stage_now){.number = number,
                          .busy = true,
                          .trains = round->trains,
                          .schedule = {.stage = s->conf.start->stage,
                                       .stages = (uint32_t)s->conf.start->n_stages,
                                       .batches = round->n,
                                       .trains = round->trains},
                          .epoch = round->epoch,
                          .split = round->split,
                          .first = round->number};
    n = (size_t)round->n * s->books[now->trains].n_values;
    now->held = calloc(n + 1, sizeof *now->held);
    now->records = calloc(round->n + (size_t)1, sizeof *now->records);
    now->came = calloc((size_t)round->n * s->books[now->trains].n_edges + 1, sizeof *now->came);
    if (!now->held || !now->records || !now->came) {
        now->busy = false;
        s->is_over = true; /* others are in the round, and this stage cannot be */
        return wf_fail_nomem(err, n * sizeof *now->held);
    }
    memcpy(now->records, round->records, round->n * sizeof *now->records);
    for (uint32_t i = 0; i < round->n; i++)
        now->all += round->records[i];
    for (size_t i = 0; i < s->conf.start->n_stages; i++)
        s->others[i].done = s->others[i].summed = false;
    wf_stage_take_early(s);
    return WF_OK;
}

wf_status wf_stage_begin_round(wf_stage *s, const wf_stage_round *round, wf_err *err)
{
    WF_TRY(wf_stage_enter(s, s->now.number + 1, round, err));
    return wf_stage_send_round(s, err);
}

/* Whether all that an action takes is there, but for what is fed to it. */
static bool has_inputs(wf_stage *s, wf_stage_action a, uint32_t batch)
{
    const wf_stage_book *b = wf_stage_book_now(s);

    for (uint32_t i = 0; i < b->n_values; i++) {
        const wf_stage_value *v = &b->values[i];
        bool wanted = a == WF_STAGE_GO_FORWARD ? v->is_taken && v->field < 0 : v->is_kept;

        if (wanted && !wf_stage_has(wf_stage_hold(s, batch, i)))
            return false;
    }
    return true;
}

static bool has_results(wf_stage *s)
{
    const wf_stage_book *b = wf_stage_book_now(s);

    if (wf_stage_predicts(s))
        return s->now.taken == s->now.schedule.batches;
    for (uint32_t k = 0; k < s->now.schedule.batches; k++)
        for (uint32_t i = 0; i < b->n_values; i++)
            if (b->values[i].result >= 0 && b->values[i].edge >= 0 && !wf_stage_hold(s, k, i)->buf)
                return false;
    return true;
}

static bool others_are_done(const wf_stage *s)
{
    for (size_t i = 1; i < s->conf.start->n_stages; i++)
        if (!s->others[i].done)
            return false;
    return true;
}

bool wf_stage_can_work(const wf_stage *stage)
{
    wf_stage *s = (wf_stage *)stage; /* which is not changed */
    wf_stage_action next;
    uint32_t batch = 0;

    if (!s->now.busy || s->is_over)
        return false;
    if (s->computing.under_way)
        return wf_stepper_is_done(s->thread);
    if (wf_stage_can_take(s))
        return true;
    next = wf_schedule_next(&s->now.schedule, &batch);
    if (next != WF_STAGE_NOTHING)
        return wf_stage_may_send(s) && has_inputs(s, next, batch);
    if (wf_stage_agrees(s) && !s->now.decided)
        return !s->now.summed || (wf_stage_can_decide(s) && has_results(s));
    if (!s->now.updated)
        return true;
    return wf_stage_is_first(s) && others_are_done(s) && has_results(s);
}

bool wf_stage_is_busy(const wf_stage *s)
{
    return s->now.busy;
}

static wf_status work(wf_stage *s, wf_err *err)
{
    uint32_t batch = 0;
    wf_stage_action next = wf_schedule_next(&s->now.schedule, &batch);

    if (s->computing.under_way)
        return wf_stage_end_computing(s, err);
    if (wf_stage_can_take(s))
        return wf_stage_take_results(s, err);
    if (next != WF_STAGE_NOTHING)
        return wf_stage_compute(s, next, batch, err);
    if (wf_stage_agrees(s) && !s->now.decided)
        return s->now.summed ? wf_stage_decide(s, err) : wf_stage_compute_sums(s, err);
    if (!s->now.updated)
        return wf_stage_compute_update(s, err);
    s->now.busy = false;
    return WF_OK;
}

wf_status wf_stage_work(wf_stage *s, wf_err *err)
{
    wf_err why = {0};
    wf_status rc;

    if (!wf_stage_can_work(s))
        return WF_OK;
    rc = work(s, &why);
    if (rc == WF_OK)
        return WF_OK;
    rc = wf_stage_name(s, rc, &why);
    why.status = rc;
    s->is_over = true;
    s->now.busy = false;
    /* Without its device this process is of no use, and the first stage sees it go. */
    if (!wf_stage_is_first(s) && rc != WF_BROKEN)
        return wf_stage_send_outcome(s, WF_STAGE_DONE, &why, err);
    *err = why;
    return rc;
}

const void *wf_stage_result(const wf_stage *s, uint32_t output, uint32_t batch, wf_dtype *dtype,
                            size_t *elems)
{
    const wf_stage_book *b = &s->books[s->now.trains];

    for (uint32_t i = 0; i < b->n_values; i++) {
        const wf_stage_held *h = wf_stage_hold((wf_stage *)s, batch, i);

        if (b->values[i].result != (int32_t)output || !h->buf)
            continue;
        *dtype = h->dtype;
        *elems = (size_t)h->elems;
        return h->buf->data;
    }
    return NULL;
}
