/* SPDX-License-Identifier: Apache-2.0 */
/* worker/trainer_predicted.c - a job that predicts by a model that is divided among workers: the
 * worker of the first stage reads the records of a split, and writes its parts; a split is computed
 * in one round of all stages, or in several where it has very many batches. */
#include "common/base/clock.h"
#include "common/base/size.h"
#include "common/onnx/onnx.h"
#include "worker/trainer_state.h"

#include <stdlib.h>
#include <string.h>

/* ---- begun and ended ---- */

static wf_status take_output(const Weft__Output *from, wf_prediction_shape *to, wf_err *err)
{
    Weft__StageEdge e = WEFT__STAGE_EDGE__INIT;
    int64_t ignored;

    e.name = from->label;
    e.dtype = from->dtype;
    e.sizes = from->sizes;
    e.n_sizes = from->n_sizes;
    WF_TRY(wf_stage_edge_elems(&e, 1, &ignored, err));
    *to = (wf_prediction_shape){
        .label = from->label, .dtype = (wf_dtype)from->dtype, .rank = (uint32_t)from->n_sizes};
    for (size_t i = 0; i < from->n_sizes; i++)
        to->sizes[i] = from->sizes[i];
    return WF_OK;
}

wf_status wf_predicted_open(wf_trainer *t, const Weft__Start *start, wf_err *err)
{
    struct wf_predicted *p = &t->predicted;
    wf_prediction_shape *outputs =
        wf_arena_array(t->prediction_arena, start->n_eval_outputs + 1, sizeof *outputs);

    if (!outputs)
        return wf_fail_nomem(err, start->n_eval_outputs * sizeof *outputs);
    for (size_t i = 0; i < start->n_eval_outputs; i++)
        WF_TRY(take_output(start->eval_outputs[i], &outputs[i], err));
    WF_TRY(wf_onnx_decode(start->eval_graph.data, start->eval_graph.len, NULL, &p->graph, err));
    p->fed = calloc(p->graph->n_inputs + 1, sizeof(*p->fed));
    p->fields = calloc(p->graph->n_inputs + 1, sizeof *p->fields);
    if (!p->fed || !p->fields)
        return wf_fail_nomem(err, p->graph->n_inputs * sizeof *p->fields);
    p->model = (wf_prediction_model){p->graph, outputs, start->n_eval_outputs};
    return WF_OK;
}

void wf_predicted_close(wf_trainer *t)
{
    wf_graph_free(&t->predicted.graph);
    free(t->predicted.fed);
    free(t->predicted.fields);
    t->predicted = (struct wf_predicted){0};
}

/* ---- records and results ---- */

static wf_status read_records(void *arg, bool trains, const wf_batch **out, wf_err *err)
{
    wf_trainer *t = arg;
    struct wf_predicted *p = &t->predicted;
    uint64_t n = WF_MIN(wf_prediction_batch(t->prediction), p->end - p->read);
    int64_t began_ns = wf_now_ns();

    (void)trains;
    WF_TRY(wf_prediction_take(t->prediction, p->read, n, p->fed, err));
    for (size_t i = 0; i < p->graph->n_inputs; i++)
        p->fields[i] = p->fed[i] ? *p->fed[i] : (wf_tensor){0};
    p->batch = (wf_batch){.n = n, .fields = p->fields};
    p->read += n;
    t->hands[0].result.data_ns += (uint64_t)(wf_now_ns() - began_ns);
    *out = &p->batch;
    return WF_OK;
}

static void release_records(void *arg, bool trains, const wf_batch **batch)
{
    (void)arg, (void)trains;
    *batch = NULL; /* the prediction has them */
}

static wf_status take_results(void *arg, uint32_t batch, const void *const outputs[], wf_err *err)
{
    wf_trainer *t = arg;
    struct wf_predicted *p = &t->predicted;
    uint64_t n = WF_MIN(wf_prediction_batch(t->prediction), p->end - p->taken);

    (void)batch;
    p->taken += n;
    return wf_prediction_add(t->prediction, n, outputs, err);
}

wf_status wf_predicted_begin(wf_trainer *t, wf_worker_job *out, wf_err *err)
{
    wf_stage_conf conf;

    WF_TRY(wf_trainer_stage_conf(t, t->start, &conf, err));
    conf.read = read_records;
    conf.release = release_records;
    conf.predicted = t->predicted.graph;
    conf.take = take_results;
    conf.arg = t;
    WF_TRY(wf_stage_new(&conf, &t->stage, err));
    out->place = (wf_exchange_place){.stages = wf_stage_exchange(t->stage)};
    return WF_OK;
}

/* ---- splits ---- */

static wf_status tell(wf_trainer *t, wf_worker *w, wf_status rc, wf_err *err)
{
    wf_train_result *out = &t->hands[0].result;

    t->round = NO_ROUND;
    out->why.status = rc;
    out->compute_ns = (uint64_t)(wf_now_ns() - t->hands[0].began_ns) - out->data_ns;
    return wf_worker_on_computed(w, out, err);
}

/* As many batches of the split as a round may have. */
static wf_status begin_round(wf_trainer *t, wf_err *err)
{
    struct wf_predicted *p = &t->predicted;
    uint64_t batch = wf_prediction_batch(t->prediction);
    uint64_t most = WF_STAGE_ROUND_MOST * batch;

    t->round = A_PART_ROUND;
    p->round_end = WF_MIN(p->end, p->read + most);
    return wf_trainer_begin_records(t, (wf_stage_round){.number = p->read / batch}, p->read,
                                    p->round_end, batch, err);
}

/* Another worker may have had it before: then its parts are there. */
static wf_status begin_split(wf_trainer *t, uint64_t split, wf_err *err)
{
    struct wf_predicted *p = &t->predicted;

    p->read = p->taken = wf_prediction_first(t->prediction, split);
    p->end = wf_prediction_end(t->prediction, split);
    WF_TRY(wf_prediction_begin_split(t->prediction, split, err));
    return begin_round(t, err);
}

/* The split is over, well or not: half a part is of no use. */
static wf_status end_split(wf_trainer *t, wf_worker *w, wf_status rc, wf_err *err)
{
    wf_err *why = &t->hands[0].result.why, ignored;
    wf_status ended =
        wf_prediction_end_split(t->prediction, rc == WF_OK, rc == WF_OK ? why : &ignored);

    return tell(t, w, rc == WF_OK ? ended : rc, err);
}

wf_status wf_predicted_split(wf_trainer *t, uint64_t split, wf_worker *w, wf_err *err)
{
    wf_status rc;

    t->hands[0].began_ns = wf_now_ns();
    t->hands[0].result = (wf_train_result){0};
    if (wf_prediction_has(t->prediction, split))
        return tell(t, w, WF_OK, err);
    rc = begin_split(t, split, &t->hands[0].result.why);
    return rc == WF_OK ? WF_OK : end_split(t, w, rc, err);
}

wf_status wf_predicted_end_round(wf_trainer *t, const wf_err *why, wf_worker *w, wf_err *err)
{
    const struct wf_predicted *p = &t->predicted;
    wf_err *out = &t->hands[0].result.why;
    wf_status rc = why->status;

    *out = *why;
    if (rc == WF_OK && p->taken < p->round_end) /* the round was cut short: a link is lost */
        rc = wf_fail(out, WF_AGAIN, NULL, "a stage is gone");
    if (rc == WF_OK && p->round_end < p->end) {
        rc = begin_round(t, out);
        if (rc == WF_OK)
            return WF_OK;
    }
    return end_split(t, w, rc, err);
}
