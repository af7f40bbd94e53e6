/* SPDX-License-Identifier: Apache-2.0 */
/* common/session/prediction.c */
#include "common/base/rng.h"
#include "common/base/size.h"
#include "common/data/formats.h"
#include "common/onnx/onnx.h"
#include "common/session/job_data.h"
#include "common/session/model.h"
#include "common/session/npy.h"
#include "common/session/prediction_near.h"
#include "common/session/prediction_state.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CHUNK_BYTES = 4 << 20, /* of inputs, and of outputs, that are in memory at a time */
    CHUNK_BATCHES = 2,     /* at least: whether outputs are of records shows with the second */
    PARTS = 256,           /* that an ordinary request has */
    LEAST_BATCHES = 16,    /* of a split: a part should be worth its file, */
    MOST_BATCHES = 1024,   /* and should not take minutes */
    MOST_SPLITS = 1 << 24
};

/* ---- the model ---- */

static void passed_over(void *arg, uint64_t step, const char *sentence)
{
    const wf_prediction *p = arg;

    (void)step;
    if (p->how.tell)
        p->how.tell(p->how.arg, sentence);
}

static wf_status read_job(wf_prediction *p, wf_err *err)
{
    wf_prediction_ask *a = &p->ask;

    WF_TRY(wf_job_parse(a->job, strlen(a->job), a->job_path, &p->job, err));
    p->weights.skips_values = p->how.divides;
    if (p->how.model)
        WF_TRY(
            wf_weights_read_learnt(a->checkpoint_dir, a->run, (uint64_t)a->step, &p->weights, err));
    else
        WF_TRY(wf_weights_read(a->checkpoint_dir, a->run, p->job, a->step, passed_over, p,
                               &p->weights, err));
    if (sscanf(p->weights.from, "step-%" SCNd64, &a->step) != 1)
        return wf_fail(err, WF_CORRUPT, NULL, "%s names no checkpoint", p->weights.from);
    p->name = p->job->name;
    return p->how.divides ? wf_divided_read(p, err)
                          : wf_model_of_job(p->job, &p->weights.list, &p->graph, err);
}

static wf_status read_model(wf_prediction *p, wf_err *err)
{
    p->name = p->ask.model;
    if (p->ask.model)
        WF_TRY(wf_onnx_read(p->ask.model, &p->graph, err));
    else
        WF_TRY(read_job(p, err));
    if (p->how.divides)
        return WF_OK;
    return wf_predictor_new(p->graph, p->name, p->how.warn, p->how.arg, &p->predictor, err);
}

/* ---- inputs ---- */

static bool has_batch_axis(const wf_value *v)
{
    return v->rank > 0 && v->axes[0].size < 0;
}

/* The numbers of a record that an input takes; 0: not known. */
static uint64_t width_of(const wf_value *v)
{
    uint64_t n = 1;

    if (v->rank < 1)
        return 0;
    for (int32_t i = 1; i < v->rank; i++)
        if (v->axes[i].size < 0 || __builtin_mul_overflow(n, (uint64_t)v->axes[i].size, &n))
            return 0;
    return n;
}

static const wf_value *find_input(const wf_graph *g, const char *name)
{
    for (size_t i = 0; i < g->n_inputs; i++)
        if (strcmp(g->inputs[i]->name, name) == 0)
            return g->inputs[i];
    return NULL;
}

/* What the compiler's inputs are called, and how a word that is none of them is refused, is
 * wf_fed_place's matter. */
static wf_status refuse_input(const wf_prediction *p, const char *name, wf_err *err)
{
    wf_tensor none = {.dtype = WF_F32};
    wf_feed feed = {name, name, &none};
    wf_fed fed = {0};
    wf_status rc = wf_fed_place(p->graph, p->name, 1, &feed, &fed, err);

    wf_fed_close(&fed);
    return rc == WF_OK ? wf_fail(err, WF_USAGE, NULL, "%s has no input \"%.64s\"", p->name, name)
                       : rc;
}

static wf_status open_feed(wf_prediction *p, size_t i, wf_err *err)
{
    const struct wf_prediction_input *in = &p->ask.inputs[i];
    wf_prediction_feed *f = &p->feeds[i];
    wf_status rc;
    wf_dtype want;

    f->value = find_input(p->graph, in->name);
    if (!f->value)
        return refuse_input(p, in->name, err);
    f->batched = has_batch_axis(f->value);
    want = f->value->dtype;
    if (p->job)
        WF_TRY(wf_input_of_job(p->job, &p->weights.learnt, in->name, in->paths, in->n, want,
                               p->arena, &f->files, err));
    else
        WF_TRY(wf_input_of_model(in->name, in->paths, in->n, want, width_of(f->value), p->arena,
                                 &f->files, err));
    if (!f->batched && !p->job && strcmp(f->files.set.format, "npy") == 0 && in->n == 1)
        return wf_npy_read(in->paths[0], &f->tensor, err); /* which may be a single number */
    rc = wf_sequence_open(&f->files.set, &f->sequence, err);
    return p->job ? rc : wf_format_unknown(f->files.set.format, in->paths[0], rc, err);
}

/* All records of a file against the input: a message then has the shape of the file. What is
 * rounded for an input of bfloat16 would be copied; the first batch is held against that one. */
static wf_status check_feed(const wf_prediction *p, const wf_prediction_feed *f, wf_err *err)
{
    const wf_field_info *info = f->sequence ? wf_sequence_field(f->sequence) : NULL;
    int64_t dims[WF_MAX_RANK];
    wf_tensor *blank = NULL;
    uint32_t rank = 0;
    wf_fed fed = {0};
    wf_status rc;

    if (!info || info->rank + 1 > WF_MAX_RANK || f->value->dtype == WF_BF16)
        return WF_OK;
    wf_job_data_dims(f->value, info, wf_sequence_records(f->sequence), &rank, dims);
    WF_TRY(wf_tensor_new_blank(info->dtype, rank, dims, &blank, err));
    rc = wf_fed_place(p->graph, p->name, 1, &(wf_feed){f->value->name, info->path, blank}, &fed,
                      err);
    wf_fed_close(&fed);
    wf_tensor_free(&blank);
    return rc;
}

static wf_status count_records(wf_prediction *p, wf_err *err)
{
    const char *first = NULL;

    for (size_t i = 0; i < p->ask.n_inputs; i++) {
        const wf_prediction_feed *f = &p->feeds[i];
        uint64_t n = f->batched ? wf_sequence_records(f->sequence) : 0;

        if (f->batched && first && n != p->records)
            return wf_fail(err, WF_SHAPE, "give each input the same number of records",
                           "input \"%.64s\" has %" PRIu64 " records, and \"%.64s\" %" PRIu64,
                           f->value->name, n, first, p->records);
        if (f->batched) {
            first = f->value->name;
            p->records = n;
        }
    }
    p->single = !first || p->records <= p->ask.batch;
    p->records = first ? p->records : 1;
    if (p->ask.records && p->ask.records != p->records)
        return wf_fail(err, WF_INVALID, "give every host the same files",
                       "the files hold %" PRIu64 " records here, and %" PRIu64
                       " where the prediction was begun",
                       p->records, p->ask.records);
    p->ask.records = p->records;
    return WF_OK;
}

/* How much of the files is in memory at a time. */
static void choose_chunk(wf_prediction *p)
{
    uint64_t bytes = 1, batches;

    for (size_t i = 0; i < p->ask.n_inputs; i++)
        if (p->feeds[i].batched)
            bytes = WF_MAX(bytes, wf_sequence_field(p->feeds[i].sequence)->record_bytes);
    for (size_t i = 0; i < p->n_outputs && !p->single; i++) {
        size_t row = wf_dtype_size(p->outputs[i].dtype);

        for (uint32_t k = 1; k < p->outputs[i].rank; k++)
            row *= (size_t)p->outputs[i].dims[k]; /* a batch of them was in memory */
        bytes = WF_MAX(bytes, row);
    }
    batches = CHUNK_BYTES / bytes / p->ask.batch;
    p->chunk = p->single ? p->records : WF_MAX(batches, (uint64_t)CHUNK_BATCHES) * p->ask.batch;
}

static uint64_t ceil_div(uint64_t a, uint64_t b)
{
    return a / b + (a % b != 0);
}

static wf_status choose_splits(wf_prediction *p, wf_err *err)
{
    uint64_t batch = p->ask.batch, batches = ceil_div(p->records, batch), each;

    each =
        WF_MIN(WF_MAX(ceil_div(batches, PARTS), (uint64_t)LEAST_BATCHES), (uint64_t)MOST_BATCHES);
    if (p->ask.split_records)
        each = ceil_div(p->ask.split_records, batch);
    p->ask.split_records = p->single ? p->records : each * batch;
    p->n_splits = ceil_div(p->records, p->ask.split_records);
    if (p->n_splits <= MOST_SPLITS)
        return WF_OK;
    return wf_fail(err, WF_USAGE, "raise --batch",
                   "%" PRIu64 " records in parts of %" PRIu64 " make %" PRIu64
                   " parts; there may be %d",
                   p->records, p->ask.split_records, p->n_splits, MOST_SPLITS);
}

uint64_t wf_prediction_first(const wf_prediction *p, uint64_t split)
{
    return split * p->ask.split_records;
}

uint64_t wf_prediction_end(const wf_prediction *p, uint64_t split)
{
    return WF_MIN((split + 1) * p->ask.split_records, p->records);
}

/* ---- runs ---- */

/* Records [first, first + n) of an input, as the model takes them. */
static wf_status fill_feed(wf_prediction_feed *f, uint64_t first, uint64_t n, wf_err *err)
{
    const wf_field_info *info = wf_sequence_field(f->sequence);
    int64_t dims[WF_MAX_RANK];
    uint32_t rank = 0;

    if (info->rank + 1 > WF_MAX_RANK)
        return wf_fail(err, WF_SHAPE, NULL, "%s has %u axes, %d may be", info->path, info->rank + 1,
                       WF_MAX_RANK);
    wf_job_data_dims(f->value, info, n, &rank, dims);
    if (!f->tensor || f->tensor->dims[0] < dims[0]) {
        wf_tensor_free(&f->tensor);
        WF_TRY(wf_tensor_new(info->dtype, rank, dims, &f->tensor, err));
    }
    f->now = *f->tensor;
    f->now.dims[0] = dims[0];
    return wf_sequence_read(f->sequence, first, (size_t)n, f->tensor->data, err);
}

wf_status wf_prediction_fill(wf_prediction *p, uint64_t first, uint64_t n, wf_feed feeds[],
                             wf_err *err)
{
    for (size_t i = 0; i < p->ask.n_inputs; i++) {
        wf_prediction_feed *f = &p->feeds[i];

        if (f->batched)
            WF_TRY(fill_feed(f, first, n, err));
        else if (!f->tensor)
            WF_TRY(fill_feed(f, 0, wf_sequence_records(f->sequence), err));
        else
            f->now = *f->tensor;
        feeds[i] = (wf_feed){f->value->name, p->ask.inputs[i].paths[0], &f->now};
    }
    return WF_OK;
}

static wf_status run(wf_prediction *p, uint64_t first, uint64_t n, wf_named_list *out, wf_err *err)
{
    wf_predict how = {.n_feeds = p->ask.n_inputs,
                      .batch = p->single ? 0 : p->ask.batch,
                      .pool = p->how.pool,
                      .device = p->how.device};
    char unfed[WF_UNFED_NAME];
    wf_feed feeds[WF_PREDICTION_INPUTS];
    wf_status rc;

    WF_TRY(wf_prediction_fill(p, first, n, feeds, err));
    how.feeds = feeds;
    rc = wf_predictor_run(p->predictor, &how, out, unfed, err);
    if (rc != WF_OK && unfed[0] && err)
        snprintf(err->hint, sizeof err->hint, "add --input %.60s=FILE", unfed);
    return rc;
}

wf_status wf_prediction_check_output(const wf_prediction *p, const wf_prediction_output *o,
                                     uint64_t n, wf_err *err)
{
    if (p->single || (o->rank > 0 && o->dims[0] == (int64_t)n))
        return WF_OK;
    return wf_fail(err, WF_SHAPE, "raise --batch to the number of records",
                   "output \"%.64s\" is of a batch and not of each record", o->label);
}

/* The outputs, as the first batch has them. */
static wf_status look_at_outputs(wf_prediction *p, wf_err *err)
{
    uint64_t n = WF_MIN(p->records, p->ask.batch);
    wf_named_list out = {0};
    wf_status rc = run(p, 0, n, &out, err);

    if (rc == WF_OK) {
        p->outputs = wf_arena_array(p->arena, out.n, sizeof *p->outputs);
        rc = p->outputs ? WF_OK : wf_fail_nomem(err, out.n * sizeof *p->outputs);
    }
    for (size_t i = 0; rc == WF_OK && i < out.n; i++) {
        const wf_tensor *t = out.rows[i].tensor;
        wf_prediction_output *o = &p->outputs[p->n_outputs++];

        *o = (wf_prediction_output){
            wf_arena_strdup(p->arena, out.rows[i].name), t->dtype, t->rank, {0}};
        memcpy(o->dims, t->dims, sizeof o->dims);
        rc = o->label ? wf_prediction_check_output(p, o, n, err)
                      : wf_fail_nomem(err, strlen(out.rows[i].name));
    }
    wf_named_close(&out);
    return rc;
}

/* ---- opened ---- */

static wf_status open_all(wf_prediction *p, wf_err *err)
{
    WF_TRY(wf_prediction_choose_out(p, err));
    WF_TRY(read_model(p, err));
    for (size_t i = 0; i < p->ask.n_inputs; i++) {
        WF_TRY(open_feed(p, i, err));
        WF_TRY(check_feed(p, &p->feeds[i], err));
    }
    WF_TRY(wf_prediction_check_inputs(p, err));
    WF_TRY(count_records(p, err));
    WF_TRY(wf_prediction_check_hosts(p, err));
    WF_TRY(p->how.divides ? wf_divided_look(p, err) : look_at_outputs(p, err));
    WF_TRY(wf_prediction_check_outputs(p, err));
    choose_chunk(p);
    WF_TRY(choose_splits(p, err));
    return wf_prediction_make_tag(p, err);
}

wf_status wf_prediction_open(const wf_prediction_ask *ask, const wf_prediction_how *how,
                             wf_prediction **out, wf_err *err)
{
    wf_prediction *p = calloc(1, sizeof *p);
    wf_status rc;

    *out = NULL;
    if (!p)
        return wf_fail_nomem(err, sizeof *p);
    p->ask = *ask;
    p->how = *how;
    p->how.divides &= ask->job != NULL;
    p->id = wf_random_id();
    p->arena = wf_arena_new(0);
    if (!p->ask.batch)
        p->ask.batch = WF_PREDICTION_BATCH;
    rc = p->arena ? open_all(p, err) : wf_fail_nomem(err, 0);
    if (rc == WF_OK)
        *out = p;
    else
        wf_prediction_free(&p);
    return rc;
}

void wf_prediction_free(wf_prediction **p)
{
    if (!*p)
        return;
    wf_predictor_free(&(*p)->predictor);
    wf_divided_close(*p);
    for (size_t i = 0; i < WF_PREDICTION_INPUTS; i++) {
        wf_sequence_free(&(*p)->feeds[i].sequence);
        wf_tensor_free(&(*p)->feeds[i].tensor);
    }
    wf_graph_free(&(*p)->graph);
    wf_weights_close(&(*p)->weights);
    wf_job_free(&(*p)->job);
    wf_arena_free(&(*p)->arena);
    free(*p);
    *p = NULL;
}

const char *wf_prediction_parts(const wf_prediction *p)
{
    return p->parts;
}

uint64_t wf_prediction_tag(const wf_prediction *p)
{
    return p->ask.tag;
}

uint64_t wf_prediction_records(const wf_prediction *p)
{
    return p->records;
}

uint64_t wf_prediction_split_records(const wf_prediction *p)
{
    return p->ask.split_records;
}

uint64_t wf_prediction_splits(const wf_prediction *p)
{
    return p->n_splits;
}

uint64_t wf_prediction_batch(const wf_prediction *p)
{
    return p->single ? p->records : p->ask.batch;
}

/* ---- splits ---- */

static wf_status compute(wf_prediction *p, uint64_t split, wf_part_writer *w, wf_err *err)
{
    uint64_t end = wf_prediction_end(p, split);

    for (uint64_t at = wf_prediction_first(p, split); at < end; at += p->chunk) {
        wf_named_list out = {0};
        wf_status rc;

        if (p->how.stopped && p->how.stopped(p->how.arg))
            return wf_fail(err, WF_STOPPED, NULL, "stopped");
        rc = run(p, at, WF_MIN(p->chunk, end - at), &out, err);
        if (rc == WF_OK)
            rc = wf_part_add(p, w, &out, err);
        wf_named_close(&out);
        if (rc != WF_OK)
            return rc;
    }
    return WF_OK;
}

wf_status wf_prediction_split(wf_prediction *p, uint64_t split, wf_err *err)
{
    wf_part_writer w = {0};
    wf_status rc;

    wf_assert(split < p->n_splits && !p->how.divides);
    if (wf_prediction_has(p, split))
        return WF_OK;
    rc = wf_part_open(p, split, &w, err);
    if (rc == WF_OK)
        rc = compute(p, split, &w, err);
    if (rc == WF_OK)
        rc = wf_part_finish(p, split, &w, err);
    wf_part_close(p, split, &w);
    return rc;
}
