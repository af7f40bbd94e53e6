/* SPDX-License-Identifier: Apache-2.0 */
/* worker/trainer_job.c - a job begins and ends: its sides, its gradients, its data. */
#include "common/base/size.h"
#include "common/data/reader.h"
#include "common/kernels/kernel.h"
#include "common/log/log.h"
#include "common/session/rule.h"
#include "common/wire/control.h"
#include "worker/trainer_state.h"

#include <stdlib.h>
#include <string.h>

/* Waits for the eval side, which then is there or has failed. */
wf_status wf_trainer_join_opening(wf_trainer *t, wf_err *err)
{
    if (t->opening.begun)
        pthread_join(t->opening.thread, NULL);
    t->opening.begun = false;
    if (t->opening.rc != WF_OK && err)
        *err = t->opening.err;
    return t->opening.rc;
}

void wf_trainer_halt(void *arg)
{
    wf_trainer *t = arg;
    wf_status ignored = wf_trainer_join_opening(t, NULL);

    (void)ignored; /* the job is over, whatever its eval data was */
    t->opening.rc = WF_OK;
    wf_hands_close(t);
    for (size_t i = 0; i < WF_COUNT(t->ahead); i++) {
        wf_named_rows_close(&t->ahead[i].rows, &t->train.tables);
        t->ahead[i] = (struct batch_ahead){0};
    }
    t->next_ahead = 0;
    t->next = (struct next_batch){0};
    wf_named_rows_close(&t->eval_rows, &t->eval.tables);
    wf_side_close(&t->train);
    wf_side_close(&t->eval);
    wf_learnt_close(&t->learnt);
    wf_gradients_free(&t->hands[0].gradients);
    free(t->late);
    t->late = NULL;
    wf_replicas_close(&t->hands[0].replicas);
    wf_trainer_end_prediction(t);
    if (t->start) /* what is of another worker's job stays */
        wf_trainer_end_stages(t);
    wf_arena_free(&t->files_arena);
    t->start = NULL;
    t->begun = NOTHING;
}

/* ---- beginning a job ---- */

static wf_status open_eval(wf_trainer *t, wf_err *err)
{
    wf_status rc = wf_side_open(
        &t->eval,
        &(wf_side_spec){.start = t->start,
                        .replicas = &t->evaluates,
                        .n_replicas = 1,
                        .place = t->place.device,
                        .graph = &t->start->eval_graph,
                        .ids = &t->start->eval_ids,
                        .uses = t->start->eval_uses,
                        .n_uses = t->start->n_eval_uses,
                        .meanings = (const Weft__Output *const *)t->start->eval_outputs,
                        .n_fetches = t->start->n_eval_outputs,
                        .data = t->start->eval_data,
                        .memory = t->conf.memory,
                        .learnt = &t->learnt},
        err);

    return wf_err_wrap(err, rc, "eval data");
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

wf_status wf_trainer_new_gradients(wf_trainer *t, wf_hand *h, wf_err *err)
{
    const Weft__Start *start = t->start;
    wf_gradients_variable *rows = calloc(start->n_variables + 1, sizeof *rows);
    const bool sends = wf_exchange_sends(start);
    wf_replicas *r = &h->replicas;
    bool any_apart = false;
    wf_opt opt;
    wf_status rc;

    if (!rows)
        return wf_fail_nomem(err, start->n_variables * sizeof *rows);
    for (uint32_t i = 0; i < start->n_variables; i++) {
        const Weft__Variable *v = start->variables[i];

        rows[i] = (wf_gradients_variable){
            1, v->kind == WF_VAR_TRAINABLE,
            !sends && !wf_exchange_home(start, t->place.device, i)->is_host};
        any_apart |= rows[i].apart;
        for (size_t k = 0; k < v->n_dims; k++)
            rows[i].count *= k == 0 && v->rows_most ? (int64_t)v->rows_most : v->dims[k];
    }
    rc = wf_rule_get(start->rule, start->options, start->n_options, &opt, err);
    if (rc == WF_OK) {
        t->batches = wf_gradients_batches(&opt);
        rc = wf_gradients_new(
            &(wf_gradients_conf){.opt = &opt,
                                 .variables = rows,
                                 .n = (uint32_t)start->n_variables,
                                 .devices = r->devices,
                                 .n_replicas = r->n,
                                 .checked = start->skip_nan || t->scale.growth_steps > 0,
                                 .pool = t->conf.pool},
            &h->gradients, err);
    }
    for (uint32_t i = 0; rc == WF_OK && any_apart && i < r->n; i++)
        rc =
            wf_apart_new(r->devices[i], t->place.updates, start->n_variables, &r->of[i].apart, err);
    free(rows);
    return rc;
}

static void warn_of_float32(const wf_trainer *t)
{
    const wf_compute compute = (wf_compute)t->start->compute;

    if (!t->devices[0]->is_host)
        return;
    if (compute == WF_COMPUTE_BF16 && !wf_kernels_have_bf16())
        WF_LOG_WARN("compute.float32", "why=\"this processor has no bfloat16 products\"");
    if (compute == WF_COMPUTE_F16 || compute == WF_COMPUTE_TF32)
        WF_LOG_WARN("compute.float32", "why=\"GPUs alone compute in %s\"",
                    wf_compute_name(compute));
}

/* Plans the batch that most steps take. */
static wf_status plan_first(wf_trainer *t, uint64_t records, wf_err *err)
{
    const uint32_t count = t->hands[0].replicas.n;

    for (uint32_t i = 0; i < count; i++) {
        uint64_t ignored, n = wf_replica_share(records, count, i, &ignored);
        wf_plan *first;

        if (n > 0)
            WF_TRY(wf_side_plan(&t->train, i, n, &first, err));
    }
    return WF_OK;
}

/* The train side, with the files of a round if its data grows; variables are still to take `apart`
 * bytes of the device. */
static wf_status open_train(wf_trainer *t, const Weft__Round *round, size_t apart, wf_err *err)
{
    const Weft__Start *start = t->start;
    wf_learnt rows[WF_LEARNT_MOST];

    WF_TRY(
        wf_side_open(&t->train,
                     &(wf_side_spec){.start = start,
                                     .replicas = t->on,
                                     .n_replicas = t->n_on,
                                     .place = t->place.device,
                                     .graph = &start->train_graph,
                                     .ids = &start->train_ids,
                                     .uses = start->train_uses,
                                     .n_uses = start->n_train_uses,
                                     .meanings = (const Weft__Output *const *)start->train_outputs,
                                     .n_fetches = start->n_train_outputs,
                                     .data = start->train_data,
                                     .memory = t->conf.memory,
                                     .loss_scale = start->loss_scale[0] ? &t->scale.scale : NULL,
                                     .round = round},
                     err));
    if (!round) /* nothing is learnt of data that grows, and the eval side may be reading this */
        WF_TRY(wf_learnt_keep(rows, wf_dataset_learnt(t->train.data, rows), &t->learnt, err));
    t->train.apart = apart;
    if (start->n_stages == 0)
        WF_TRY(plan_first(t, WF_MIN(t->train.batch, wf_dataset_records(t->train.data)), err));
    t->train.apart = 0;
    return WF_OK;
}

static void tell_records(const wf_trainer *t, wf_worker_job *out)
{
    out->train_records = wf_dataset_records(t->train.data);
    out->train_digest = wf_dataset_digest(t->train.data);
}

static Weft__FileRecords *file_row(wf_arena *a, const char *path, uint64_t records)
{
    Weft__FileRecords *row = wf_arena_alloc(a, sizeof *row);

    if (!row)
        return NULL;
    weft__file_records__init(row);
    row->path = wf_arena_strdup(a, path);
    row->records = records;
    return row->path ? row : NULL;
}

/* Which files the records are of: the master knows which hosts have them near. */
static wf_status tell_files(wf_trainer *t, wf_worker_job *out, wf_err *err)
{
    const char *path;
    uint64_t records;
    size_t n = 0;

    t->files_arena = wf_arena_new(0);
    while (wf_dataset_part(t->train.data, n, &path, &records))
        n++;
    out->files = t->files_arena ? wf_arena_array(t->files_arena, n + 1, sizeof(*out->files)) : NULL;
    if (!out->files)
        return wf_fail_nomem(err, n * sizeof(*out->files));
    for (; out->n_files < n; out->n_files++) {
        if (!wf_dataset_part(t->train.data, out->n_files, &path, &records))
            break;
        out->files[out->n_files] = file_row(t->files_arena, path, records);
        if (!out->files[out->n_files])
            return wf_fail_nomem(err, strlen(path));
    }
    return WF_OK;
}

/* An evaluation is made by the first replica, with all of the worker's threads. */
static wf_status open_replicas(wf_trainer *t, wf_err *err)
{
    wf_replicas *r = &t->hands[0].replicas;

    WF_TRY(wf_replicas_open(r, t->devices, t->conf.n_devices, wf_exchange_mirrors(t->start),
                            t->conf.pool, err));
    t->may_share = r->n == 1 && t->conf.n_devices == 1 && r->devices[0]->is_host &&
                   wf_pool_threads(t->conf.pool) >= WF_WORKER_AT_ONCE &&
                   wf_exchange_comes_ahead(t->start);
    t->n_on = r->n + (t->may_share ? WF_WORKER_AT_ONCE : 0);
    memcpy(t->on, r->on, r->n * sizeof *r->on);
    t->evaluates = r->on[0];
    t->evaluates.pool = t->conf.pool;
    t->place = (wf_exchange_place){.updates = wf_updates_of(r->devices[0])};
    if (!t->place.updates)
        return WF_OK;
    t->place.device = r->devices[0];
    t->place.others = r->devices + 1;
    t->place.n_others = r->n - 1;
    t->place.groups = wf_groups_of(r->devices[0]);
    return WF_OK;
}

/* A device that computes float32 instead has its range, and needs no scale. */
static void begin_scale(wf_trainer *t)
{
    const Weft__Start *start = t->start;

    t->scale =
        wf_loss_scale_begin(start->loss_scale[0] != 0 &&
                                wf_kernels_keep_narrow(t->hands[0].replicas.devices[0], WF_F16),
                            (float)WF_MAX(start->initial_scale, 1U), start->growth_steps);
}

static wf_status begin(wf_trainer *t, const Weft__Start *start, wf_worker_job *out, wf_err *err)
{
    bool trains; /* at once: else the first round of its data is still to come */

    t->start = start;
    if (!start->train_data || start->train_data->batch == 0)
        return wf_fail(err, WF_PROTO, NULL, "a start without data to train on");
    if (start->compute >= WF_COMPUTES)
        return wf_fail(err, WF_PROTO, "let all tasks run one release of weft",
                       "a start with the compute type %u, which this worker does not know",
                       start->compute);
    trains = !start->train_data->grows || start->round;
    warn_of_float32(t);
    WF_TRY(open_replicas(t, err));
    begin_scale(t);
    if (trains)
        WF_TRY(open_train(t, start->train_data->grows ? start->round : NULL,
                          wf_exchange_device_bytes(start, t->place.device), err));
    if (start->n_stages == 0)
        WF_TRY(wf_trainer_new_gradients(t, &t->hands[0], err));
    else
        t->batches = start->micro_batches;
    t->may_share &= t->batches == 1 && !start->skip_nan && t->scale.growth_steps == 0;
    if (start->eval_data)
        WF_TRY(begin_opening(t, err));
    *out = (wf_worker_job){
        .batch = start->train_data->batch * t->batches,
        .learnt = t->learnt.rows,
        .n_learnt = t->learnt.n,
        .pipeline = start->pipeline,
        .at_once = t->may_share ? WF_WORKER_AT_ONCE : 1,
        .checksums = t->conf.checksums,
        .tables = start->train_ids.len > 0,
        .place = t->place,
    };
    if (trains)
        tell_records(t, out);
    if (start->n_stages > 0)
        WF_TRY(wf_trainer_begin_stages(t, out, err));
    return trains && start->tells_files ? tell_files(t, out, err) : WF_OK;
}

/* Batches that were read ahead were all of the round before, and are used up with it. */
wf_status wf_trainer_open_round(void *arg, const Weft__Round *round, wf_worker_job *out,
                                wf_err *err)
{
    wf_trainer *t = arg;

    WF_TRY(t->train.reader ? wf_side_renew(&t->train, round, err) : open_train(t, round, 0, err));
    t->next = (struct next_batch){0};
    tell_records(t, out);
    return WF_OK;
}

wf_status wf_trainer_start(void *arg, const Weft__Start *start, wf_worker_job *out, wf_err *err)
{
    wf_trainer *t = arg;
    wf_status rc;

    wf_trainer_halt(t);
    wf_trainer_end_stages(t); /* of another worker's job */
    wf_trainer_forget_later(t);
    rc = start->prediction[0] ? wf_trainer_begin_prediction(t, start, out, err)
                              : begin(t, start, out, err);
    if (rc != WF_OK)
        wf_trainer_halt(t);
    return rc;
}

wf_status wf_trainer_read(void *arg, const wf_batch_id *range, wf_err *err)
{
    wf_trainer *t = arg;
    uint64_t number = range->number * t->batches;

    if (t->prediction)
        return WF_OK; /* it reads a split when that is computed */
    if (!t->train.reader)
        return wf_fail(err, WF_PROTO, NULL, "a split before the first round of its data");
    return wf_data_reader_open_within(t->train.reader, range->epoch, range->split,
                                      range->begin - number * t->train.batch, range->end, number,
                                      range->order_begin, range->order_end, err);
}
