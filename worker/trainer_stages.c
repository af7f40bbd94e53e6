/* SPDX-License-Identifier: Apache-2.0 */
/* worker/trainer_stages.c - a model that is divided among workers (worker/stages/stage.h): the
 * worker of the first stage reads the data, begins the rounds and looks at their results; another
 * worker's stage is a guest here, without a job of the master's. */
#include "common/base/clock.h"
#include "common/base/size.h"
#include "common/log/log.h"
#include "common/wire/control.h"
#include "worker/trainer_state.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the first stage ---- */

static wf_status read_batch(void *arg, bool trains, const wf_batch **out, wf_err *err)
{
    wf_trainer *t = arg;
    int64_t began_ns = wf_now_ns();

    WF_TRY(wf_data_reader_next((trains ? &t->train : &t->eval)->reader, out, err));
    t->hands[0].result.data_ns += (uint64_t)(wf_now_ns() - began_ns);
    if (*out)
        return WF_OK;
    return wf_fail(err, WF_INVALID, "this is a bug in weft",
                   "the reader gives fewer batches than a round has");
}

static void release_batch(void *arg, bool trains, const wf_batch **batch)
{
    wf_trainer *t = arg;

    wf_data_reader_release((trains ? &t->train : &t->eval)->reader, batch);
}

wf_status wf_trainer_begin_stages(wf_trainer *t, wf_worker_job *out, wf_err *err)
{
    WF_TRY(wf_trainer_join_opening(t, err)); /* its fields are looked up */
    WF_TRY(wf_stage_new(&(wf_stage_conf){.start = t->start,
                                         .links = &t->links,
                                         .device = t->devices[0],
                                         .pool = t->conf.pool,
                                         .train = t->train.data,
                                         .eval = t->eval.data,
                                         .read = read_batch,
                                         .release = release_batch,
                                         .arg = t},
                        &t->stage, err));
    out->place = (wf_exchange_place){.stages = wf_stage_exchange(t->stage)};
    return WF_OK;
}

void wf_trainer_end_stages(wf_trainer *t)
{
    wf_stage_free(&t->stage);
    wf_control_free(&t->guest.start);
    t->round = NO_ROUND;
}

/* ---- rounds ---- */

/* Records [begin, end) in micro-batches. */
wf_status wf_trainer_begin_records(wf_trainer *t, wf_stage_round round, uint64_t begin,
                                   uint64_t end, uint64_t batch, wf_err *err)
{
    uint64_t n = (end - begin + batch - 1) / batch;
    uint32_t *records;
    wf_status rc;

    if (n > WF_STAGE_ROUND_MOST)
        return wf_fail(err, WF_UNSUPPORTED, "take a larger batch",
                       "a round has %lu micro-batches, and may have %d", (unsigned long)n,
                       WF_STAGE_ROUND_MOST);
    records = calloc(n + 1, sizeof *records);
    if (!records)
        return wf_fail_nomem(err, n * sizeof *records);
    for (; begin < end; begin += records[round.n++])
        records[round.n] = (uint32_t)WF_MIN(batch, end - begin);
    round.records = records;
    rc = wf_stage_begin_round(t->stage, &round, err);
    free(records);
    return rc;
}

static wf_status begin_step(wf_trainer *t, wf_err *err)
{
    const wf_batch_id *id = &t->step.batch;

    t->hand = &t->hands[0];
    t->hand->step = t->step;
    t->hand->began_ns = wf_now_ns();
    t->hand->result = (wf_train_result){0};
    t->round = A_STEP_ROUND;
    return wf_trainer_begin_records(t,
                                    (wf_stage_round){.trains = true,
                                                     .step = t->step.step,
                                                     .epoch = id->epoch,
                                                     .split = id->split,
                                                     .number = id->number * t->batches},
                                    id->begin, id->end, t->train.batch, err);
}

static wf_status begin_unit(wf_trainer *t, wf_err *err)
{
    uint64_t first, end;

    t->round = A_UNIT_ROUND;
    if (!t->eval.reader)
        return WF_OK;
    first = t->unit.begin / t->eval.batch;
    end = WF_MIN(t->unit.end, wf_dataset_records(t->eval.data));
    WF_TRY(wf_data_reader_open(t->eval.reader, 0, 0, 0, end, first, err));
    return t->unit.begin >= end ? WF_OK
                                : wf_trainer_begin_records(t, (wf_stage_round){.number = first},
                                                           t->unit.begin, end, t->eval.batch, err);
}

/* ---- results ---- */

/* Micro-batch by micro-batch, as one worker would have added them up. */
static wf_status measure(const wf_trainer *t, uint64_t begin, uint64_t end, uint64_t batch,
                         Weft__Output *const outputs[], size_t n_outputs, wf_measure m[],
                         uint32_t *n, wf_err *err)
{
    for (uint32_t k = 0; begin < end; k++, begin += batch) {
        *n = 0;
        for (uint32_t i = 0; i < n_outputs && *n < WF_MEASURES_MOST; i++) {
            const Weft__Output *o = outputs[i];
            wf_dtype dtype = WF_NONE;
            size_t elems = 0;
            const void *data = wf_stage_result(t->stage, i, k, &dtype, &elems);

            if (!data)
                continue;
            snprintf(m[*n].name, sizeof m[*n].name, "%s", o->label);
            snprintf(m[*n].metric, sizeof m[*n].metric, "%s", o->metric);
            WF_TRY(wf_metric_add(&m[*n], (wf_meaning)o->meaning, o->per_record,
                                 WF_MIN(batch, end - begin), dtype, elems, data, err));
            ++*n;
        }
    }
    return WF_OK;
}

static void clear(wf_measure m[])
{
    wf_measures_close(m, WF_MEASURES_MOST);
    memset(m, 0, WF_MEASURES_MOST * sizeof *m);
}

static wf_status end_step(wf_trainer *t, wf_worker *w, wf_status rc, wf_err *err)
{
    wf_train_result *out = &t->hand->result;
    const wf_batch_id *id = &t->hand->step.batch;

    t->round = NO_ROUND;
    clear(t->measures);
    if (rc == WF_OK)
        rc = measure(t, id->begin, id->end, t->train.batch, t->start->train_outputs,
                     t->start->n_train_outputs, t->measures, &out->n_metrics, &out->why);
    for (uint32_t i = 0; rc == WF_OK && i < out->n_metrics; i++)
        if (!isfinite(wf_metric_value(&t->measures[i])))
            rc = wf_fail(&out->why, WF_NUMERIC, "lower the learning rate, or look at the data",
                         "step %u: %s is no number", t->hand->step.step, t->measures[i].name);
    return wf_step_tell(t, w, rc, err);
}

static wf_status end_unit(wf_trainer *t, wf_worker *w, const wf_err *why, wf_err *err)
{
    wf_measure m[WF_MEASURES_MOST] = {0};
    wf_eval_result out = {.metrics = m, .why = *why};
    wf_status rc;

    t->round = NO_ROUND;
    if (t->eval.reader) {
        out.records = wf_dataset_records(t->eval.data);
        if (out.why.status == WF_OK)
            out.why.status = measure(t, t->unit.begin, WF_MIN(t->unit.end, out.records),
                                     t->eval.batch, t->start->eval_outputs,
                                     t->start->n_eval_outputs, m, &out.n_metrics, &out.why);
        wf_data_reader_cancel(t->eval.reader);
    }
    if (out.why.status != WF_OK)
        WF_LOG_ERROR("worker.eval_failed", "why=\"%s\"", out.why.what);
    rc = wf_worker_on_evaluated(w, &out, err);
    wf_measures_close(m, WF_MEASURES_MOST);
    return rc;
}

static wf_status end_round(wf_trainer *t, wf_worker *w, const wf_err *why, wf_err *err)
{
    if (t->round == A_PART_ROUND)
        return wf_predicted_end_round(t, why, w, err);
    if (t->round == A_UNIT_ROUND)
        return end_unit(t, w, why, err);
    t->hand->result.why = *why;
    return end_step(t, w, why->status, err);
}

wf_status wf_trainer_begin_round(wf_trainer *t, bool trains, wf_worker *w, wf_err *err)
{
    wf_err why = {0};

    why.status = trains ? begin_step(t, &why) : begin_unit(t, &why);
    return why.status == WF_OK ? WF_OK : end_round(t, w, &why, err);
}

wf_status wf_trainer_work_stages(wf_trainer *t, wf_worker *w, wf_err *err)
{
    wf_err why = {0};

    if (t->guest.start)
        return wf_stage_work(t->stage, err);
    if (t->round == NO_ROUND)
        return WF_OK;
    why.status = wf_stage_work(t->stage, &why);
    return why.status == WF_OK && wf_stage_is_busy(t->stage) ? WF_OK : end_round(t, w, &why, err);
}

/* ---- a guest ---- */

/* Says why a stage cannot begin here. */
static wf_status refuse(const wf_trainer *t, const struct wf_guest *g, const wf_err *why,
                        wf_err *err)
{
    Weft__Outcome body = WEFT__OUTCOME__INIT;
    wf_peer *chief = wf_stage_link_to(&t->links, g->chief);
    wf_msg *m = NULL;
    wf_status rc;

    WF_LOG_WARN("stage.failed", "why=\"%s\"", why->what);
    if (!chief)
        return WF_OK;
    body.status = why->status;
    body.what = (char *)why->what;
    body.hint = (char *)why->hint;
    WF_TRY(wf_net_msg(g->of.net, WF_STAGE_READY, &m, err));
    m->head.job = g->job;
    m->head.generation = g->generation;
    rc = wf_control_put(m, &body.base, err);
    if (rc == WF_OK)
        rc = wf_net_send(g->of.net, chief, WF_LANE_CONTROL, 0, &m, err);
    wf_net_free_msg(g->of.net, &m);
    return rc == WF_NOTFOUND ? WF_OK : rc;
}

static wf_status begin_guest(wf_trainer *t, wf_err *err)
{
    const struct wf_guest *g = &t->guest;
    const Weft__Start *start = g->start;

    if (start->stage == 0 || start->stage >= start->n_stages ||
        start->stages[0]->worker != g->chief ||
        start->stages[start->stage]->worker != t->conf.index)
        return wf_fail(err, WF_PROTO, "let all tasks run one release of weft",
                       "worker/%u has stage %u of %zu begin here", g->chief, start->stage,
                       start->n_stages);
    WF_TRY(wf_stage_new(
        &(wf_stage_conf){
            .start = start, .links = &t->links, .device = t->devices[0], .pool = t->conf.pool},
        &t->stage, err));
    WF_LOG_INFO("stage.begin", "job=%s stage=%u of=%zu generation=%u", start->job, start->stage,
                start->n_stages, g->generation);
    return wf_stage_begin(t->stage,
                          &(wf_exchange_conf){.start = start,
                                              .net = g->of.net,
                                              .job = g->job,
                                              .generation = g->generation,
                                              .checksums = t->conf.checksums,
                                              .incarnation = g->incarnation, /* the chief's */
                                              .disk = g->of.disk,
                                              .pool = t->conf.pool},
                          err);
}

static wf_status take_guest(wf_trainer *t, struct wf_guest *from, wf_err *err)
{
    const struct wf_guest g = *from;
    wf_err why = {0};

    wf_trainer_end_stages(t);
    t->guest = g;
    from->start = NULL; /* it is given */
    why.status = begin_guest(t, &why);
    if (why.status == WF_OK)
        return WF_OK;
    wf_trainer_end_stages(t);
    if (why.status == WF_BROKEN) { /* without its device this process is of no use */
        *err = why;
        return why.status;
    }
    return refuse(t, &g, &why, err);
}

wf_status wf_trainer_take_later(wf_trainer *t, wf_err *err)
{
    const wf_peer *chief = wf_stage_link_to(&t->links, t->later.chief);

    if (chief && chief->incarnation == t->later.incarnation)
        return take_guest(t, &t->later, err);
    wf_control_free(&t->later.start);
    return WF_OK;
}

/* Whether a worker has sent a start of that job before, of this generation or a later one. */
static bool is_known(const struct wf_guest *had, const struct wf_guest *g)
{
    return had->start && had->job == g->job && had->chief == g->chief &&
           had->incarnation == g->incarnation && had->generation >= g->generation;
}

static bool is_from(const struct wf_guest *g, const wf_peer *peer)
{
    return g->start && g->chief == peer->task.index && g->incarnation == peer->incarnation;
}

static wf_status on_start(wf_trainer *t, const wf_worker_of *of, const wf_event *ev, wf_err *err)
{
    struct wf_guest g = {.of = *of,
                         .job = ev->msg->head.job,
                         .generation = ev->msg->head.generation,
                         .chief = ev->peer->task.index,
                         .incarnation = ev->peer->incarnation};

    if (is_known(&t->guest, &g) || is_known(&t->later, &g))
        return wf_fail(err, WF_PROTO, NULL, "worker/%u: a start of generation %u, after one of %u",
                       g.chief, g.generation,
                       is_known(&t->guest, &g) ? t->guest.generation : t->later.generation);
    WF_TRY(wf_control_get(ev->msg, &weft__start__descriptor, &g.start, err));
    if (!t->start)
        return take_guest(t, &g, err);
    wf_control_free(&t->later.start);
    t->later = g;
    return WF_OK;
}

static wf_status on_message(wf_trainer *t, const wf_worker_of *of, const wf_event *ev, wf_err *err)
{
    if (ev->msg->head.kind == WF_STAGE_START)
        return on_start(t, of, ev, err);
    if (ev->msg->head.kind == WF_STAGE_STOP && is_from(&t->later, ev->peer) &&
        t->later.job == ev->msg->head.job && t->later.generation == ev->msg->head.generation)
        wf_control_free(&t->later.start);
    if (!t->stage || !wf_stage_is_for(t->stage, ev->msg))
        return WF_OK;
    if (ev->msg->head.kind == WF_STAGE_STOP && is_from(&t->guest, ev->peer)) {
        wf_trainer_end_stages(t);
        return WF_OK;
    }
    return wf_stage_on_message(t->stage, ev->peer, ev->msg, err);
}

wf_status wf_trainer_on_stage(void *arg, const wf_worker_of *of, const wf_event *ev, wf_err *err)
{
    wf_trainer *t = arg;
    wf_status rc = WF_OK;

    switch (ev->kind) {
    case WF_EV_UP:
        WF_TRY(wf_stage_links_on_up(&t->links, ev->peer, err));
        return t->stage ? wf_stage_on_link(t->stage, ev->peer, true, err) : WF_OK;
    case WF_EV_DOWN:
        if (t->stage)
            rc = wf_stage_on_link(t->stage, ev->peer, false, err);
        wf_stage_links_on_down(&t->links, ev->peer);
        return rc;
    case WF_EV_MESSAGE:
        return on_message(t, of, ev, err);
    default:
        return WF_OK;
    }
}
