/* SPDX-License-Identifier: Apache-2.0 */
/* worker/trainer_stages.c - a model that is divided among workers and devices
 * (worker/stages/stage.h): the worker of the first stage reads the data, begins the rounds and
 * looks at their results. */
#include "common/base/clock.h"
#include "common/base/size.h"
#include "common/log/log.h"
#include "common/wire/control.h"
#include "worker/trainer_state.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what a stage asks for ---- */

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

static wf_status measure_step(wf_trainer *t, uint32_t *n, wf_err *err)
{
    const wf_batch_id *id = &t->hand->step.batch;

    clear(t->measures);
    return measure(t, id->begin, id->end, t->train.batch, t->start->train_outputs,
                   t->start->n_train_outputs, t->measures, n, err);
}

/* As one worker looks at them under `on_nan: skip`. Results that cannot be measured are told when
 * the step has ended. */
static bool is_step_finite(void *arg)
{
    wf_trainer *t = arg;
    uint32_t n = 0;
    wf_err ignored;

    if (measure_step(t, &n, &ignored) != WF_OK)
        return true;
    for (uint32_t i = 0; i < n; i++)
        if (!isfinite(t->measures[i].sum))
            return false;
    return true;
}

/* ---- a job begins and ends ---- */

wf_status wf_trainer_begin_stages(wf_trainer *t, wf_worker_job *out, wf_err *err)
{
    wf_stage_conf conf;

    WF_TRY(wf_trainer_join_opening(t, err)); /* its fields are looked up */
    WF_TRY(wf_trainer_stage_conf(t, t->start, &conf, err));
    conf.train = t->train.data;
    conf.eval = t->eval.data;
    conf.read = read_batch;
    conf.release = release_batch;
    conf.is_finite = is_step_finite;
    conf.arg = t;
    WF_TRY(wf_stage_new(&conf, &t->stage, err));
    out->place = (wf_exchange_place){.stages = wf_stage_exchange(t->stage)};
    return WF_OK;
}

void wf_trainer_end_stages(wf_trainer *t)
{
    wf_stage_free(&t->stage);
    wf_trainer_end_guests(t);
    wf_stage_links_forget(&t->links);
    wf_trainer_drain_fd(t); /* threads have ended */
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

/* ---- rounds end ---- */

static wf_status check_measures(wf_trainer *t, wf_err *err)
{
    for (uint32_t i = 0; i < t->hand->result.n_metrics; i++)
        if (!isfinite(wf_metric_value(&t->measures[i])))
            return wf_fail(err, WF_NUMERIC, "lower the learning rate, or look at the data",
                           "%s is no number", t->measures[i].name);
    return WF_OK;
}

static wf_status end_step(wf_trainer *t, wf_worker *w, wf_status rc, wf_err *err)
{
    wf_train_result *out = &t->hand->result;

    t->round = NO_ROUND;
    clear(t->measures);
    if (rc == WF_OK)
        rc = measure_step(t, &out->n_metrics, &out->why);
    if (rc == WF_OK && wf_stage_is_dropped(t->stage)) {
        WF_LOG_WARN("worker.step_dropped", "step=%u", t->hand->step.step);
        out->n_metrics = 0; /* a sum with NaN in it says nothing of the others */
        out->dropped = true;
    } else if (rc == WF_OK) {
        rc = check_measures(t, &out->why);
    }
    if (rc == WF_NUMERIC)
        rc = wf_err_wrap(&out->why, rc, "step %u", t->hand->step.step);
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

bool wf_trainer_stages_can_work(const wf_trainer *t)
{
    bool any = t->links.first || (t->stage && wf_stage_can_work(t->stage));

    for (uint32_t i = 0; i < t->guests.n; i++)
        any |= wf_stage_can_work(t->guests.rows[i].stage);
    return any;
}

/* Messages between stages of this worker, as those of others are taken. */
static wf_status deliver(wf_trainer *t, wf_worker *w, wf_err *err)
{
    for (wf_msg *m = wf_stage_links_next(&t->links); m; m = wf_stage_links_next(&t->links)) {
        const wf_event ev = {.kind = WF_EV_MESSAGE, .msg = m};
        wf_status rc = wf_worker_on_stage(w, &ev, wf_now_ns(), err);

        wf_net_free_msg(t->links.net, &m);
        if (rc != WF_OK)
            return rc;
    }
    return WF_OK;
}

wf_status wf_trainer_work_stages(wf_trainer *t, wf_worker *w, wf_err *err)
{
    wf_err why = {0};

    wf_trainer_drain_fd(t);
    WF_TRY(deliver(t, w, err));
    for (uint32_t i = 0; i < t->guests.n; i++)
        WF_TRY(wf_stage_work(t->guests.rows[i].stage, err));
    if (!t->stage || t->round == NO_ROUND)
        return WF_OK;
    why.status = wf_stage_work(t->stage, &why);
    return why.status == WF_OK && wf_stage_is_busy(t->stage) ? WF_OK : end_round(t, w, &why, err);
}
