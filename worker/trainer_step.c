/* SPDX-License-Identifier: Apache-2.0 */
/* worker/trainer_step.c - steps are computed, and their gradients leave. */
#include "common/base/clock.h"
#include "common/base/size.h"
#include "common/data/reader.h"
#include "common/exec/exec.h"
#include "common/log/log.h"
#include "worker/diagnosis.h"
#include "worker/trainer_state.h"

#include <math.h>
#include <stdlib.h>

/* A gradient is final: it leaves while the rest is computed. */
static wf_status leave(void *arg, uint32_t variable, wf_err *err)
{
    wf_trainer *t = arg;

    WF_TRY(wf_exchange_push(t->step.exchange, t->step.step, variable, err));
    t->conf.flush(t->conf.flush_arg);
    return WF_OK;
}

static bool output_is_finite(const wf_plan *p, uint32_t i)
{
    wf_err ignored;

    return wf_plan_check_finite(p, 1, &i, &ignored) == WF_OK;
}

static wf_status give(wf_trainer *t, uint32_t variable, wf_err *err)
{
    return wf_gradients_take(t->gradients, variable) ? leave(t, variable, err) : WF_OK;
}

/* A gradient that stays on the device: it is added to those of the step's other batches, and looked
 * at. Under `on_nan: skip` the step's alone is, as on the host: a bad one of a batch makes it bad.
 */
static void note_apart(wf_trainer *t, uint32_t i, uint32_t variable, wf_device_event *done)
{
    const float *data = wf_plan_output_data(t->running, i);
    uint64_t count = (uint64_t)wf_plan_output(t->running, i)->elems;
    float *sum = wf_gradients_of_step(t->gradients, variable);
    bool several = data != sum;

    if (several)
        wf_apart_sum(t->apart, sum, data, count, done);
    if (!several || !t->start->skip_nan)
        wf_apart_look(t->apart, i, data, count, done);
    else if (wf_gradients_is_last(t->gradients))
        wf_apart_look(t->apart, i, sum, count, done);
}

/* Each gradient is looked at while it is warm, and a bad one never leaves; under `on_nan: skip` all
 * of them are, at the end. Nobody waits for one that stays on the device, or for a loss: the end of
 * the run is waited for. */
static wf_status on_ready(void *arg, uint32_t i, wf_device_event *done, wf_err *err)
{
    wf_trainer *t = arg;
    const wf_port *out = wf_plan_output(t->running, i);
    int32_t variable = t->train.outputs[i].variable;

    if (variable < 0)
        return WF_OK;
    if (!out->device->is_host) {
        note_apart(t, i, (uint32_t)variable, done);
        return give(t, (uint32_t)variable, err);
    }
    WF_TRY(wf_device_event_wait(done, err));
    if (!t->start->skip_nan && !output_is_finite(t->running, i)) {
        t->bad_output = i;
        return wf_fail(err, WF_NUMERIC, NULL, "a gradient is no number");
    }
    return give(t, (uint32_t)variable, err);
}

/* A step's measures begin anew, in the memory of the last one. */
static void clear_metrics(wf_measure m[])
{
    for (int i = 0; i < WF_MEASURES_MOST; i++) {
        m[i].sum = m[i].count = 0;
        wf_sums_clear(&m[i].sums);
    }
}

static bool metrics_are_finite(const wf_measure m[], uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (!isfinite(m[i].sum))
            return false;
    return true;
}

static void log_loss(const wf_trainer *t)
{
    const wf_train_step *s = &t->step;
    const wf_measure *loss = &t->measures[0];

    if (!t->loss_log)
        return;
    fprintf(t->loss_log, "%u %u %u %lu %lu %a\n", s->generation, s->step, s->batch.epoch,
            (unsigned long)s->batch.split, (unsigned long)s->batch.number, loss->sum / loss->count);
    fflush(t->loss_log);
}

static wf_status next_batch(wf_trainer *t, const wf_batch_id *id, const wf_batch **out, wf_err *err)
{
    struct batch_ahead *a = &t->ahead[t->step.step % WF_COUNT(t->ahead)];
    const wf_batch *b = NULL;

    if (!wf_tables_any(&t->train.tables)) {
        WF_TRY(wf_data_reader_next(t->train.reader, &b, err));
    } else if (a->step == t->step.step) {
        b = a->batch;
        a->step = 0;
        t->train.rows = &a->rows;
        t->train.rows_batch = 0;
    }
    if (b && b->epoch == id->epoch && b->split == id->split && b->index == id->number &&
        b->n == id->end - id->begin) {
        *out = b;
        return WF_OK;
    }
    wf_data_reader_release(t->train.reader, &b);
    return wf_fail(err, WF_INVALID, "this is a bug in weft",
                   "the reader does not give batch %lu of split %lu", (unsigned long)id->number,
                   (unsigned long)id->split);
}

/* Runs the plan, and behind it what is due to gradients that stay on the device. */
static wf_status run_plan(wf_trainer *t, wf_plan *p, const wf_step_key *key, wf_err *err)
{
    wf_status rc, waited;

    if (!t->apart)
        return wf_plan_run(p, key, on_ready, t, err);
    wf_apart_begin(t->apart);
    rc = wf_plan_start(p, key, on_ready, t, err);
    if (rc == WF_OK)
        rc = wf_apart_start(t->apart, wf_gradients_weight(t->gradients),
                            wf_gradients_is_first(t->gradients), err);
    waited = wf_plan_wait(p, rc == WF_OK ? err : NULL);
    rc = rc == WF_OK ? waited : rc;
    if (rc != WF_OK)
        return rc;
    WF_TRY(wf_apart_wait(t->apart, &t->bad_output, err));
    return t->bad_output < 0 || t->start->skip_nan
               ? WF_OK
               : wf_fail(err, WF_NUMERIC, NULL, "a gradient is no number");
}

static wf_status no_room(const wf_port *gradient, wf_err *err)
{
    if (gradient->device->is_host)
        return wf_fail_nomem(err, gradient->bytes);
    return wf_fail(err, WF_NOMEM, "lower the batch, or use a device with more memory",
                   "%s has no %zu bytes left for the gradient of \"%.200s\" in a batch",
                   gradient->device->name, gradient->bytes, gradient->variable);
}

static wf_status run_step(wf_trainer *t, wf_plan *p, const wf_batch_id *id, const wf_batch *batch,
                          wf_err *err)
{
    wf_step_key key = {t->start->seed, id->epoch, id->split, id->number};
    const wf_train_step *s = &t->step;

    WF_TRY(wf_side_bind(&t->train, p, s->exchange, s->set, batch, err));
    for (uint32_t i = 0; i < t->train.n_outputs; i++) {
        int32_t variable = t->train.outputs[i].variable;

        if (variable < 0)
            continue;
        float *to =
            wf_gradients_into(t->gradients, (uint32_t)variable,
                              wf_exchange_gradient(s->exchange, s->step, (uint32_t)variable));

        if (!to)
            return no_room(wf_plan_output(p, i), err);
        wf_plan_bind_output(p, i, to);
    }
    t->running = p;
    t->bad_output = -1;
    return run_plan(t, p, &key, err);
}

/* The loss or metric that is no number, by the outputs of the last run; -1: none. */
static int64_t bad_loss(const wf_side *s, const wf_plan *p, const char **label)
{
    for (size_t i = 0; i < s->spec.n_fetches; i++) {
        int64_t at = wf_plan_find_output(p, s->spec.meanings[i]->name);

        if (at < 0 || output_is_finite(p, (uint32_t)at))
            continue;
        *label = s->spec.meanings[i]->label;
        return at;
    }
    return -1;
}

static bool any_nan(const wf_port *out, const void *data)
{
    for (int64_t i = 0; i < out->elems; i++)
        if (isnan(out->dtype == WF_F32 ? (double)((const float *)data)[i]
                                       : ((const double *)data)[i]))
            return true;
    return false;
}

static wf_status holds_nan(const wf_plan *p, uint32_t output, bool *out, wf_err *err)
{
    const wf_port *port = wf_plan_output(p, output);
    const void *data = wf_plan_output_data(p, output);
    void *copy;
    wf_status rc;

    if (port->device->is_host) {
        *out = any_nan(port, data);
        return WF_OK;
    }
    copy = malloc(port->bytes + 1);
    if (!copy)
        return wf_fail_nomem(err, port->bytes);
    rc = wf_device_read(port->device, copy, data, port->bytes, err);
    *out = rc == WF_OK && any_nan(port, copy);
    free(copy);
    return rc;
}

/* Says where a bad loss or gradient of the batch in hand came from. The plan is run again, on the
 * same weights and draws, and into memory of its own: what it wrote before may be on its way, but
 * for what stays on the device. */
static wf_status diagnose(wf_trainer *t, const wf_batch_id *id, const wf_batch *batch, wf_err *err)
{
    wf_step_key key = {t->start->seed, id->epoch, id->split, id->number};
    wf_bad_step bad = {.worker = t->conf.index,
                       .step = t->step.step,
                       .id = *id,
                       .side = &t->train,
                       .batch = batch,
                       .exchange = t->step.exchange,
                       .set = t->step.set,
                       .jobs_dir = t->conf.jobs_dir,
                       .host = t->conf.host};
    wf_plan *p = t->running;
    int64_t at;

    for (uint32_t i = 0; i < t->train.n_outputs; i++)
        if (t->train.outputs[i].variable >= 0 && wf_plan_output(p, i)->device->is_host)
            wf_plan_bind_output(p, i, NULL);
    WF_TRY(wf_plan_run(p, &key, NULL, NULL, err));
    at = bad_loss(&t->train, p, &bad.label);
    bad.is_loss = at >= 0;
    if (at < 0 && t->bad_output >= 0) {
        at = t->bad_output;
        bad.label = wf_plan_output(p, (uint32_t)at)->variable;
    }
    if (at < 0) /* only the sum of a step's batches is too large */
        return wf_fail(err, WF_NUMERIC, "lower the learning rate",
                       "a metric's sum is infinite at step %u", bad.step);
    bad.output = (uint32_t)at;
    WF_TRY(holds_nan(p, bad.output, &bad.is_nan, err));
    return wf_diagnose(p, &key, &bad, err);
}

/* One batch of the step: records [begin, end), the split's `number`-th batch. */
static wf_status run_batch(wf_trainer *t, const wf_batch_id *id, wf_train_result *out, wf_err *err)
{
    const wf_batch_id *step = &t->step.batch;
    int64_t began_ns = wf_now_ns();
    const wf_batch *batch = NULL;
    wf_plan *p = NULL;
    wf_status rc;

    WF_TRY(next_batch(t, id, &batch, err));
    out->data_ns += (uint64_t)(wf_now_ns() - began_ns);
    wf_gradients_begin(t->gradients, batch->n, step->end - step->begin, id->begin == step->begin,
                       id->end == step->end);
    rc = wf_side_plan(&t->train, batch->n, &p, err);
    if (rc == WF_OK)
        rc = run_step(t, p, id, batch, err);
    if (rc == WF_OK)
        rc = wf_side_measure(&t->train, p, id->end - id->begin, t->measures, &out->n_metrics, err);
    if (!t->start->skip_nan &&
        (rc == WF_NUMERIC || (rc == WF_OK && !metrics_are_finite(t->measures, out->n_metrics))))
        rc = diagnose(t, id, batch, err);
    wf_data_reader_release(t->train.reader, &batch);
    return rc;
}

/* The gradients of the step leave, or under `on_nan: skip` none of them does. */
static wf_status end_step(wf_trainer *t, wf_train_result *out, wf_err *err)
{
    if (!t->start->skip_nan || (metrics_are_finite(t->measures, out->n_metrics) &&
                                t->bad_output < 0 && wf_gradients_finite(t->gradients)))
        return wf_gradients_end(t->gradients, leave, t, err);
    WF_LOG_WARN("worker.step_dropped", "step=%u", t->step.step);
    out->n_metrics = 0; /* a sum with NaN in it says nothing of the others */
    out->dropped = true;
    return WF_OK;
}

static wf_status compute(wf_trainer *t, wf_train_result *out, wf_err *err)
{
    const wf_batch_id *id = &t->step.batch;
    wf_batch_id part = *id;

    if (t->opening.begun && atomic_load(&t->opening.ended))
        WF_TRY(wf_trainer_join_opening(t, err)); /* eval data that is wrong ends the job at once */
    clear_metrics(t->measures);
    part.number *= t->batches;
    for (; part.begin < id->end; part.begin = part.end, part.number++) {
        part.end = WF_MIN(part.begin + t->train.batch, id->end);
        WF_TRY(run_batch(t, &part, out, err));
    }
    return end_step(t, out, err);
}

wf_status wf_trainer_make_step(wf_trainer *t, wf_worker *w, wf_err *err)
{
    wf_train_result out = {.metrics = t->measures};
    int64_t began_ns = wf_now_ns();
    wf_status rc = compute(t, &out, &out.why);

    if (rc != WF_OK && rc != WF_NUMERIC)
        rc = wf_err_wrap(&out.why, rc, "step %u", t->step.step);
    out.why.status = rc;
    if (rc == WF_OK)
        log_loss(t);
    out.compute_ns = (uint64_t)(wf_now_ns() - began_ns) - out.data_ns;
    return wf_worker_on_computed(w, &out, err);
}
