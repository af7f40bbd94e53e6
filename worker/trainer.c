/* SPDX-License-Identifier: Apache-2.0 */
/* worker/trainer.c - a job begun, its steps computed, its evaluations made. */
#include "worker/trainer.h"
#include "common/base/clock.h"
#include "common/base/size.h"
#include "common/data/reader.h"
#include "common/exec/exec.h"
#include "common/kernels/kernel.h"
#include "common/log/log.h"
#include "common/session/rule.h"
#include "worker/apart.h"
#include "worker/diagnosis.h"
#include "worker/gradients.h"
#include "worker/side.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The eval side's data is read beside the first steps, by a thread of its own: its decompression
 * would delay them by as much as it takes, and nobody needs it before the first epoch ends. */
typedef struct eval_opening {
    pthread_t thread;
    bool begun;        /* the thread is to be joined */
    atomic_bool ended; /* its result may be read */
    wf_status rc;
    wf_err err;
} eval_opening;

struct wf_trainer {
    wf_trainer_conf conf;
    eval_opening opening;
    const wf_device *devices[1 + WF_PLAN_DEVICES]; /* [conf.n_devices], of all plans */
    wf_exchange_place place;                       /* of variables */
    const Weft__Start *start;                      /* of the job in hand; NULL: none */
    wf_side train, eval;
    wf_learnt_list learnt; /* of the training data */
    wf_gradients *gradients;
    wf_apart *apart; /* of gradients on a device; NULL: there are none */
    struct batch_ahead {
        uint32_t step;         /* 0: none */
        const wf_batch *batch; /* NULL: it could not be read, */
        wf_err why;            /* why */
        wf_named_rows rows;
    } ahead[WF_READER_HELD]; /* where there are tables: batches whose rows are named, by step */
    uint32_t next_ahead;     /* the first step that has none; 0: any */
    wf_named_rows eval_rows; /* of the unit in hand */
    wf_err eval_why;         /* what was wrong with its records */
    uint64_t batches;        /* to a step */
    uint64_t seed;
    FILE *loss_log;
    enum { NOTHING = 0, A_STEP, A_UNIT } begun;
    wf_train_step step; /* in hand */
    wf_eval_unit unit;
    wf_measure measures[WF_MEASURES_MOST]; /* of the step in hand */
    wf_plan *running;                      /* during a step */
    int64_t bad_output;                    /* of it: a gradient that is no number; -1: none */
};

static wf_status find_devices(wf_trainer *t, wf_err *err)
{
    if (t->conf.n_devices > WF_COUNT(t->devices))
        return wf_fail(err, WF_UNSUPPORTED, NULL, "more than %zu devices", WF_COUNT(t->devices));
    for (size_t i = 0; i < t->conf.n_devices; i++)
        WF_TRY(wf_device_open(t->conf.devices[i], &t->devices[i], err));
    t->place.updates = wf_updates_of(t->devices[0]);
    t->place.device = t->place.updates ? t->devices[0] : NULL;
    return WF_OK;
}

wf_status wf_trainer_new(const wf_trainer_conf *conf, wf_trainer **out, wf_err *err)
{
    wf_trainer *t = calloc(1, sizeof *t);
    wf_status rc;

    if (!t)
        return wf_fail_nomem(err, sizeof *t);
    t->conf = *conf;
    rc = find_devices(t, err);
    if (rc == WF_OK && conf->loss_log) {
        t->loss_log = fopen(conf->loss_log, "ae");
        if (!t->loss_log)
            rc = wf_fail(err, WF_IO, NULL, "cannot open %s", conf->loss_log);
    }
    if (rc != WF_OK)
        wf_trainer_free(&t);
    *out = t;
    return rc;
}

/* Waits for the eval side, which then is there or has failed. */
static wf_status join_opening(wf_trainer *t, wf_err *err)
{
    if (t->opening.begun)
        pthread_join(t->opening.thread, NULL);
    t->opening.begun = false;
    if (t->opening.rc != WF_OK && err)
        *err = t->opening.err;
    return t->opening.rc;
}

static void halt(void *arg)
{
    wf_trainer *t = arg;
    wf_status ignored = join_opening(t, NULL);

    (void)ignored; /* the job is over, whatever its eval data was */
    t->opening.rc = WF_OK;
    for (size_t i = 0; i < WF_COUNT(t->ahead); i++) {
        wf_named_rows_close(&t->ahead[i].rows, &t->train.tables);
        t->ahead[i] = (struct batch_ahead){0};
    }
    t->next_ahead = 0;
    wf_named_rows_close(&t->eval_rows, &t->eval.tables);
    wf_side_close(&t->train);
    wf_side_close(&t->eval);
    wf_learnt_close(&t->learnt);
    wf_gradients_free(&t->gradients);
    wf_apart_free(&t->apart);
    t->start = NULL;
    t->begun = NOTHING;
}

void wf_trainer_free(wf_trainer **t)
{
    if (!*t)
        return;
    halt(*t);
    wf_measures_close((*t)->measures, WF_MEASURES_MOST);
    if ((*t)->loss_log)
        fclose((*t)->loss_log);
    free(*t);
    *t = NULL;
}

/* ---- beginning a job ---- */

static wf_status open_eval(wf_trainer *t, wf_err *err)
{
    return wf_side_open(
        &t->eval,
        &(wf_side_spec){.start = t->start,
                        .devices = t->devices,
                        .n_devices = t->conf.n_devices,
                        .place = t->place.device,
                        .pool = t->conf.pool,
                        .graph = &t->start->eval_graph,
                        .ids = &t->start->eval_ids,
                        .uses = t->start->eval_uses,
                        .n_uses = t->start->n_eval_uses,
                        .meanings = (const Weft__Output *const *)t->start->eval_outputs,
                        .n_fetches = t->start->n_eval_outputs,
                        .data = t->start->eval_data,
                        .learnt = &t->learnt},
        err);
}

static void *run_opening(void *arg)
{
    wf_trainer *t = arg;

    t->opening.rc = open_eval(t, &t->opening.err);
    atomic_store(&t->opening.ended, true);
    return NULL;
}

static wf_status begin_opening(wf_trainer *t, wf_err *err)
{
    atomic_store(&t->opening.ended, false);
    t->opening.rc = WF_OK;
    if (pthread_create(&t->opening.thread, NULL, run_opening, t) != 0)
        return open_eval(t, err); /* no thread to be had: here and now */
    t->opening.begun = true;
    return WF_OK;
}

static wf_status begin_gradients(wf_trainer *t, const Weft__Start *start, wf_err *err)
{
    wf_gradients_variable *rows = calloc(start->n_variables + 1, sizeof *rows);
    bool any_apart = false;
    wf_opt opt;
    wf_status rc;

    if (!rows)
        return wf_fail_nomem(err, start->n_variables * sizeof *rows);
    for (uint32_t i = 0; i < start->n_variables; i++) {
        const Weft__Variable *v = start->variables[i];

        rows[i] = (wf_gradients_variable){1, v->kind == WF_VAR_TRAINABLE,
                                          wf_exchange_home(start, t->place.device, i)};
        any_apart |= !rows[i].device->is_host;
        for (size_t k = 0; k < v->n_dims; k++)
            rows[i].count *= k == 0 && v->rows_most ? (int64_t)v->rows_most : v->dims[k];
    }
    rc = wf_rule_get(start->rule, start->options, start->n_options, &opt, err);
    if (rc == WF_OK) {
        t->batches = wf_gradients_batches(&opt);
        rc = wf_gradients_new(&opt, rows, (uint32_t)start->n_variables, start->skip_nan,
                              t->conf.pool, &t->gradients, err);
    }
    if (rc == WF_OK && any_apart)
        rc = wf_apart_new(t->place.device, t->place.updates, start->n_variables, &t->apart, err);
    free(rows);
    return rc;
}

static void warn_of_float32(const wf_trainer *t)
{
    if (t->start->bf16 && t->devices[0]->is_host && !wf_kernels_have_bf16())
        WF_LOG_WARN("compute.float32", "why=\"this processor has no bfloat16 products\"");
    if (t->start->tf32 && t->devices[0]->is_host)
        WF_LOG_WARN("compute.float32", "why=\"GPUs alone compute in tf32\"");
}

/* The train side, with the files of a round if its data grows; variables are still to take `apart`
 * bytes of the device. */
static wf_status open_train(wf_trainer *t, const Weft__Round *round, size_t apart, wf_err *err)
{
    const Weft__Start *start = t->start;
    wf_learnt rows[WF_LEARNT_MOST];
    wf_plan *first;

    WF_TRY(
        wf_side_open(&t->train,
                     &(wf_side_spec){.start = start,
                                     .devices = t->devices,
                                     .n_devices = t->conf.n_devices,
                                     .place = t->place.device,
                                     .pool = t->conf.pool,
                                     .graph = &start->train_graph,
                                     .ids = &start->train_ids,
                                     .uses = start->train_uses,
                                     .n_uses = start->n_train_uses,
                                     .meanings = (const Weft__Output *const *)start->train_outputs,
                                     .n_fetches = start->n_train_outputs,
                                     .data = start->train_data,
                                     .round = round},
                     err));
    if (!round) /* nothing is learnt of data that grows, and the eval side may be reading this */
        WF_TRY(wf_learnt_keep(rows, wf_dataset_learnt(t->train.data, rows), &t->learnt, err));
    t->train.apart = apart;
    WF_TRY(wf_side_plan(&t->train, WF_MIN(t->train.batch, wf_dataset_records(t->train.data)),
                        &first, err));
    t->train.apart = 0;
    return WF_OK;
}

static void tell_records(const wf_trainer *t, wf_worker_job *out)
{
    out->train_records = wf_dataset_records(t->train.data);
    out->train_digest = wf_dataset_digest(t->train.data);
}

static wf_status begin(wf_trainer *t, const Weft__Start *start, wf_worker_job *out, wf_err *err)
{
    bool trains; /* at once: else the first round of its data is still to come */

    t->start = start;
    if (!start->train_data || start->train_data->batch == 0)
        return wf_fail(err, WF_PROTO, NULL, "a start without data to train on");
    trains = !start->train_data->grows || start->round;
    warn_of_float32(t);
    if (trains)
        WF_TRY(open_train(t, start->train_data->grows ? start->round : NULL,
                          wf_exchange_device_bytes(start, t->place.device), err));
    WF_TRY(begin_gradients(t, start, err));
    if (start->eval_data)
        WF_TRY(begin_opening(t, err));
    *out = (wf_worker_job){
        .batch = start->train_data->batch * t->batches,
        .learnt = t->learnt.rows,
        .n_learnt = t->learnt.n,
        .pipeline = start->pipeline,
        .checksums = t->conf.checksums,
        .tables = start->train_ids.len > 0,
        .place = t->place,
    };
    if (trains)
        tell_records(t, out);
    return WF_OK;
}

/* Batches that were read ahead were all of the round before, and are used up with it. */
static wf_status open_round(void *arg, const Weft__Round *round, wf_worker_job *out, wf_err *err)
{
    wf_trainer *t = arg;

    WF_TRY(t->train.reader ? wf_side_renew(&t->train, round, err) : open_train(t, round, 0, err));
    tell_records(t, out);
    return WF_OK;
}

static wf_status start_job(void *arg, const Weft__Start *start, wf_worker_job *out, wf_err *err)
{
    wf_trainer *t = arg;
    wf_status rc;

    halt(t);
    rc = begin(t, start, out, err);
    if (rc != WF_OK)
        halt(t);
    return rc;
}

static wf_status read_range(void *arg, const wf_batch_id *range, wf_err *err)
{
    wf_trainer *t = arg;
    uint64_t number = range->number * t->batches;

    if (!t->train.reader)
        return wf_fail(err, WF_PROTO, NULL, "a split before the first round of its data");
    return wf_data_reader_open(t->train.reader, range->epoch, range->split,
                               range->begin - number * t->train.batch, range->end, number, err);
}

/* ---- rows of tables ---- */

/* Reads the batch of a step, in its turn. */
static wf_status read_ahead(wf_trainer *t, struct batch_ahead *a, uint32_t step, bool *known)
{
    wf_side *s = &t->train;
    const wf_batch *batch = NULL;
    wf_status rc = wf_data_reader_next(s->reader, &batch, &a->why);

    *known = rc != WF_OK || batch;
    if (!*known)
        return WF_OK;
    a->step = step;
    a->batch = batch;
    t->next_ahead = step + 1;
    wf_named_rows_clear(&a->rows, &s->tables);
    if (rc == WF_OK)
        rc = wf_named_rows_add(&a->rows, &s->tables, batch, &a->why);
    if (rc == WF_OK)
        rc = wf_named_rows_end(&a->rows, &s->tables, &a->why);
    a->why.status = rc;
    return rc;
}

static wf_status name_step(void *arg, wf_exchange *x, int set, uint32_t step, bool *known,
                           wf_err *err)
{
    wf_trainer *t = arg;
    struct batch_ahead *a = &t->ahead[step % WF_COUNT(t->ahead)];

    *known = a->step == step;
    if (!*known && t->next_ahead != 0 && t->next_ahead != step) /* others come before it */
        return WF_OK;
    if (!*known)
        a->why.status = read_ahead(t, a, step, known);
    if (!*known)
        return WF_OK;
    if (a->why.status != WF_OK) {
        *err = a->why;
        return wf_err_wrap(err, a->why.status, "step %u", step);
    }
    return wf_named_rows_tell(&a->rows, &t->train.tables, x, set, err);
}

static wf_status note_unit(wf_trainer *t, uint64_t begin, uint64_t end, wf_err *err)
{
    wf_side *s = &t->eval;
    const wf_batch *batch;
    wf_status rc;

    wf_named_rows_clear(&t->eval_rows, &s->tables);
    WF_TRY(join_opening(t, err));
    if (!s->reader)
        return WF_OK;
    rc = wf_data_reader_open(s->reader, 0, 0, 0, WF_MIN(end, wf_dataset_records(s->data)),
                             begin / s->batch, err);
    while (rc == WF_OK && (rc = wf_data_reader_next(s->reader, &batch, err)) == WF_OK && batch) {
        rc = wf_named_rows_add(&t->eval_rows, &s->tables, batch, err);
        wf_data_reader_release(s->reader, &batch);
    }
    wf_data_reader_cancel(s->reader);
    return rc == WF_OK ? wf_named_rows_end(&t->eval_rows, &s->tables, err) : rc;
}

static wf_status name_unit(void *arg, wf_exchange *x, int set, uint64_t begin, uint64_t end,
                           wf_err *err)
{
    wf_trainer *t = arg;

    t->eval_why.status = note_unit(t, begin, end, &t->eval_why);
    if (t->eval_why.status != WF_OK)
        wf_named_rows_clear(&t->eval_rows, &t->eval.tables);
    return wf_named_rows_tell(&t->eval_rows, &t->eval.tables, x, set, err);
}

/* ---- steps ---- */

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
        WF_TRY(join_opening(t, err)); /* eval data that is wrong ends the job at once */
    clear_metrics(t->measures);
    part.number *= t->batches;
    for (; part.begin < id->end; part.begin = part.end, part.number++) {
        part.end = WF_MIN(part.begin + t->train.batch, id->end);
        WF_TRY(run_batch(t, &part, out, err));
    }
    return end_step(t, out, err);
}

static wf_status work_on_step(wf_trainer *t, wf_worker *w, wf_err *err)
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

static wf_status evaluate_range(wf_trainer *t, uint64_t end, wf_measure m[], uint32_t *n,
                                wf_err *err)
{
    const wf_eval_unit *unit = &t->unit;
    wf_side *s = &t->eval;
    uint64_t first = unit->begin / s->batch;
    const wf_batch *batch;
    wf_status rc;

    /* Passing over whole batches gives each the index that it has in all of the data. */
    if (wf_tables_any(&s->tables) && t->eval_why.status != WF_OK) {
        *err = t->eval_why;
        return t->eval_why.status;
    }
    s->rows = &t->eval_rows;
    s->rows_batch = 0;
    rc = wf_data_reader_open(s->reader, 0, 0, 0, end, first, err);
    while (rc == WF_OK && (rc = wf_data_reader_next(s->reader, &batch, err)) == WF_OK && batch) {
        wf_plan *p = NULL;

        rc = wf_side_plan(s, batch->n, &p, err);
        if (rc == WF_OK) {
            rc = wf_side_bind(s, p, unit->exchange, unit->set, batch, err);
        }
        if (rc == WF_OK)
            rc =
                wf_plan_run(p, &(wf_step_key){t->start->seed, 0, 0, batch->index}, NULL, NULL, err);
        if (rc == WF_OK)
            rc = wf_side_measure(s, p, batch->n, m, n, err);
        s->rows_batch++;
        wf_data_reader_release(s->reader, &batch);
    }
    wf_data_reader_cancel(s->reader);
    return rc;
}

static wf_status work_on_unit(wf_trainer *t, wf_worker *w, wf_err *err)
{
    wf_measure m[WF_MEASURES_MOST] = {0};
    wf_eval_result out = {.metrics = m};
    wf_status rc;

    out.why.status = join_opening(t, &out.why);
    if (out.why.status == WF_OK && t->eval.reader) {
        out.records = wf_dataset_records(t->eval.data);
        out.why.status =
            evaluate_range(t, WF_MIN(t->unit.end, out.records), m, &out.n_metrics, &out.why);
    }
    if (out.why.status != WF_OK)
        WF_LOG_ERROR("worker.eval_failed", "why=\"%s\"", out.why.what);
    rc = wf_worker_on_evaluated(w, &out, err);
    wf_measures_close(m, WF_MEASURES_MOST);
    return rc;
}

wf_status wf_trainer_work(wf_trainer *t, wf_worker *w, wf_err *err)
{
    int begun = t->begun;

    t->begun = NOTHING;
    if (begun == A_STEP)
        return work_on_step(t, w, err);
    return begun == A_UNIT ? work_on_unit(t, w, err) : WF_OK;
}

/* ---- the operations ---- */

static wf_status begin_step(void *arg, const wf_train_step *step, wf_err *err)
{
    wf_trainer *t = arg;

    (void)err;
    t->step = *step;
    t->begun = A_STEP;
    return WF_OK;
}

static wf_status begin_unit(void *arg, const wf_eval_unit *unit, wf_err *err)
{
    wf_trainer *t = arg;

    (void)err;
    t->unit = *unit;
    t->begun = A_UNIT;
    return WF_OK;
}

static wf_status dial(void *arg, wf_task task, const char *address, wf_transport **out, wf_err *err)
{
    wf_trainer *t = arg;

    return t->conf.dial(t->conf.dial_arg, task, address, out, err);
}

wf_worker_ops wf_trainer_ops(wf_trainer *t)
{
    return (wf_worker_ops){.arg = t,
                           .start = start_job,
                           .halt = halt,
                           .open_round = open_round,
                           .read = read_range,
                           .compute = begin_step,
                           .evaluate = begin_unit,
                           .name_step = name_step,
                           .name_unit = name_unit,
                           .dial = dial};
}
