/* SPDX-License-Identifier: Apache-2.0 */
/* worker/loop.c - the step loop: pull, compute, push; hold for a cut; evaluate.
 *
 * The pull for the step after the next leaves before the next step's gradients do (pipeline 1), so
 * that the ps apply and send while this worker computes. Whether pulling ahead is right depends on
 * the data's order alone, never on timing (W3): at a barrier (a cut, the first batch of an epoch)
 * what was pulled ahead is dropped and asked for anew, with all own pushes in it. So a run that
 * goes on from a checkpoint computes the same bits as one that was never stopped.
 */
#include "common/base/bytes.h"
#include "common/base/size.h"
#include "common/log/log.h"
#include "common/wire/control.h"
#include "worker/state.h"

#include <stdlib.h>
#include <string.h>

wf_status wf_worker_new(const wf_worker_conf *conf, wf_net *net, wf_peer *master, wf_worker **out,
                        wf_err *err)
{
    wf_worker *w = calloc(1, sizeof *w);

    if (!w)
        return wf_fail_nomem(err, sizeof *w);
    w->conf = *conf;
    w->net = net;
    w->master = master;
    *out = w;
    return WF_OK;
}

void wf_worker_free(wf_worker **w)
{
    if (!*w)
        return;
    wf_member_halt(*w);
    free((*w)->ps);
    free((*w)->ps_address);
    free(*w);
    *w = NULL;
}

wf_status wf_worker_tell(wf_worker *w, wf_msg **m, wf_err *err)
{
    (*m)->head.job = w->job_number;
    (*m)->head.generation = w->generation;
    (*m)->head.view = w->view;
    if (!w->master->up) {
        wf_net_free_msg(w->net, m);
        return WF_OK;
    }
    return wf_net_send(w->net, w->master, WF_LANE_CONTROL, 0, m, err);
}

wf_status wf_worker_say(wf_worker *w, uint16_t kind, const ProtobufCMessage *body, wf_err *err)
{
    wf_msg *m = NULL;
    wf_status rc;

    WF_TRY(wf_net_msg(w->net, kind, &m, err));
    rc = body ? wf_control_put(m, body, err) : WF_OK;
    m->head.cut = w->cut;
    m->head.step = w->step;
    if (rc == WF_OK)
        rc = wf_worker_tell(w, &m, err);
    wf_net_free_msg(w->net, &m);
    return rc;
}

wf_status wf_worker_say_fault(wf_worker *w, wf_err *err)
{
    Weft__Fault body = WEFT__FAULT__INIT;
    Weft__Split split = WEFT__SPLIT__INIT;

    body.status = w->fault.status;
    body.what = w->fault.what;
    body.mend = w->fault.mend;
    split.id = w->fault_batch.split;
    split.epoch = w->fault_batch.epoch;
    split.begin = split.next = w->fault_batch.begin;
    split.end = w->fault_batch.end;
    if (split.end > split.begin)
        body.split = &split;
    return wf_worker_say(w, WF_FAULT, &body.base, err);
}

void wf_worker_fault(wf_worker *w, const wf_err *why)
{
    WF_LOG_ERROR("worker.fault", "%s", why->what);
    w->faulted = true;
    w->fault = *why;
    w->fault_batch = w->computing ? w->batch : (wf_batch_id){0};
    w->fault_unsent = wf_worker_say_fault(w, NULL) != WF_OK;
    if (w->fault_unsent)
        WF_LOG_ERROR("worker.fault_unsent", "no memory");
}

void wf_worker_spent(wf_worker *w, uint64_t compute_ns, uint64_t wait_ns, uint64_t transfer_ns,
                     uint64_t data_ns)
{
    w->compute_ns += compute_ns;
    w->wait_ns += wait_ns;
    w->transfer_ns += transfer_ns;
    w->data_ns += data_ns;
}

uint32_t wf_worker_index(const wf_worker *w)
{
    return w->conf.index;
}

uint32_t wf_worker_step(const wf_worker *w)
{
    return w->step;
}

uint16_t wf_worker_generation(const wf_worker *w)
{
    return w->generation;
}

uint16_t wf_worker_job_number(const wf_worker *w)
{
    return w->job_number;
}

uint32_t wf_worker_base(const wf_worker *w)
{
    return w->client ? wf_client_base(w->client) : 0;
}

bool wf_worker_waits_for_weights(const wf_worker *w)
{
    return w->client && !w->computing && !w->held &&
           wf_client_set_step(w->client, (int)((w->step + 1) % 2)) == w->step + 1;
}

float *wf_worker_gradient_buffer(wf_worker *w, uint32_t variable)
{
    return wf_client_gradient(w->client, w->step + 1, variable);
}

wf_status wf_worker_gradient(wf_worker *w, uint32_t variable, wf_err *err)
{
    return wf_client_push(w->client, w->step + 1, variable, err);
}

wf_status wf_worker_drop_step(wf_worker *w, wf_err *err)
{
    w->dropped++;
    return wf_client_push_nothing(w->client, w->step + 1, err);
}

const float *wf_worker_weights(const wf_worker *w, int set, uint32_t variable)
{
    return wf_client_weights(w->client, set, variable);
}

static wf_status add_metric(wf_worker *w, const wf_measure *m, wf_err *err)
{
    wf_measure *to = NULL;

    for (uint32_t i = 0; i < w->n_metrics && !to; i++)
        if (strcmp(w->metrics[i].name, m->name) == 0)
            to = &w->metrics[i];
    if (!to) {
        if (w->n_metrics == WF_MEASURES_MOST)
            return WF_OK;
        to = &w->metrics[w->n_metrics++];
        *to = (wf_measure){0};
        memcpy(to->name, m->name, sizeof to->name);
        memcpy(to->metric, m->metric, sizeof to->metric);
    }
    return wf_measure_merge(to, m, err);
}

static wf_status pull_for(wf_worker *w, uint32_t step, wf_err *err)
{
    int set = (int)(step % 2);

    if (wf_client_set_step(w->client, set) == step)
        return WF_OK;
    return wf_client_pull(w->client, set, step, err);
}

/* A message's list of measures, and the bytes that it borrows. */
typedef struct measure_list {
    Weft__Metric rows[WF_MEASURES_MOST], *list[WF_MEASURES_MOST];
    size_t n;
    wf_bytes sums;
} measure_list;

static wf_status list_measures(measure_list *to, wf_measure metrics[], uint32_t n, wf_err *err)
{
    size_t starts[WF_MEASURES_MOST + 1] = {0};

    to->sums = (wf_bytes){0};
    to->n = WF_MIN(n, (uint32_t)WF_MEASURES_MOST);
    for (size_t i = 0; i < to->n; i++) {
        starts[i] = to->sums.size;
        if (metrics[i].sums.n)
            wf_sums_encode(&metrics[i].sums, &to->sums);
    }
    starts[to->n] = to->sums.size;
    for (size_t i = 0; i < to->n; i++) { /* once the bytes move no more */
        weft__metric__init(&to->rows[i]);
        to->rows[i].name = metrics[i].name;
        to->rows[i].metric = metrics[i].metric;
        to->rows[i].sum = metrics[i].sum;
        to->rows[i].count = metrics[i].count;
        to->rows[i].sums.len = starts[i + 1] - starts[i];
        to->rows[i].sums.data = to->rows[i].sums.len ? to->sums.data + starts[i] : NULL;
        to->list[i] = &to->rows[i];
    }
    return wf_bytes_check(&to->sums, err);
}

static wf_status say_progress(wf_worker *w, wf_err *err)
{
    Weft__Progress body = WEFT__PROGRESS__INIT;
    Weft__Split open[WF_WORKER_SPLITS], *open_list[WF_WORKER_SPLITS];
    measure_list measures;
    wf_status rc;

    if (!w->master->up)
        return WF_OK;
    rc = list_measures(&measures, w->metrics, w->n_metrics, err);
    body.metrics = measures.list;
    body.n_metrics = measures.n;
    body.open = open_list;
    body.n_open = wf_splits_open(w, open, open_list);
    body.steps = wf_client_acked(w->client);
    body.samples = w->samples;
    body.dropped = w->dropped;
    body.compute_ns = w->compute_ns;
    body.wait_ns = w->wait_ns;
    body.transfer_ns = w->transfer_ns;
    body.data_ns = w->data_ns;
    w->dropped = 0;
    w->samples = w->compute_ns = w->wait_ns = w->transfer_ns = w->data_ns = 0;
    if (rc == WF_OK)
        rc = wf_worker_say(w, WF_PROGRESS, &body.base, err);
    wf_bytes_close(&measures.sums);
    wf_measures_close(w->metrics, w->n_metrics);
    w->n_metrics = 0;
    return rc;
}

wf_status wf_worker_computed(wf_worker *w, uint32_t n, const wf_measure metrics[], wf_err *err)
{
    wf_open_split *s = wf_splits_current(w);
    wf_step_place *place;

    if (!w->computing) /* the job was halted meanwhile */
        return WF_OK;
    WF_TRY(wf_client_push_end(w->client, w->step + 1, err));
    /* The pull that may leave behind these gradients goes with them, so that each slice comes back
     * as soon as it is updated. */
    WF_TRY(pull_for(w, w->step + 2 + w->job.pipeline, err));
    wf_assert(s && s->id == w->batch.split && s->next == w->batch.begin);
    w->computing = false;
    w->step++;
    w->epoch = w->batch.epoch;
    w->any_step = true;
    s->next = w->batch.end;
    place = &w->places[w->step % WF_WORKER_STEPS];
    *place = (wf_step_place){w->step, s->id, s->next};
    w->samples += w->batch.end - w->batch.begin;
    for (uint32_t i = 0; i < n; i++)
        WF_TRY(add_metric(w, &metrics[i], err));
    if (w->dropped) /* before its split is done: the job may end with that */
        WF_TRY(say_progress(w, err));
    return wf_splits_settle(w, err);
}

/* From here on pulls count on all pushes so far, and what was pulled ahead is void. */
static void barrier(wf_worker *w)
{
    wf_client_set_base(w->client, w->step);
    wf_client_drop(w->client, 0);
    wf_client_drop(w->client, 1);
    w->any_step = false;
}

static bool cut_is_here(const wf_open_split *s)
{
    return s->cut_at && s->next + 1 >= s->cut_at;
}

/* W2: nothing in flight, so the place in the data and the weights say the same. */
static wf_status report_hold(wf_worker *w, wf_err *err)
{
    Weft__CutReport body = WEFT__CUT_REPORT__INIT;
    Weft__Split open[WF_WORKER_SPLITS], *open_list[WF_WORKER_SPLITS];
    Weft__Split *rows, **list;
    wf_status rc;

    if (w->reported || wf_client_in_flight(w->client) > 0)
        return WF_OK;
    WF_TRY(wf_splits_settle(w, err));
    rows = calloc(WF_WORKER_FINISHED, sizeof *rows);
    list = calloc(WF_WORKER_FINISHED, sizeof(*list));
    if (rows && list) {
        body.index = w->conf.index;
        body.incarnation = w->conf.incarnation;
        body.steps = w->step;
        body.clock = w->step;
        body.open = open_list;
        body.n_open = wf_splits_open(w, open, open_list);
        body.finished = list;
        body.n_finished = wf_splits_finished(w, rows, list);
        barrier(w);
        w->reported = true;
        rc = wf_worker_say(w, WF_CUT_REPORT, &body.base, err);
    } else {
        rc = wf_fail_nomem(err, WF_WORKER_FINISHED * sizeof *rows);
    }
    free(rows);
    free(list);
    return rc;
}

/* Without a master there is no cut, and training goes on (W4): it asks again with a later split. */
static wf_status announce_cut(wf_worker *w, wf_open_split *s, wf_err *err)
{
    if (!w->master->up)
        s->cut_at = 0;
    if (w->due_sent || !w->master->up)
        return WF_OK;
    w->due_sent = true;
    return wf_worker_say(w, WF_CUT_DUE, NULL, err);
}

static wf_status begin_step(wf_worker *w, wf_open_split *s, wf_err *err)
{
    uint32_t step = w->step + 1;
    int set = (int)(step % 2);

    w->batch = (wf_batch_id){
        .epoch = s->epoch,
        .split = s->id,
        .number = (s->next - s->begin) / w->job.batch,
        .begin = s->next,
        .end = WF_MIN(s->next + w->job.batch, s->end),
    };
    if (w->job.pipeline > 0)
        WF_TRY(pull_for(w, step + 1, err));
    w->computing = true;
    w->eval_set_of = 0;
    w->wait.kind = WF_WAIT_NONE; /* the call may take long */
    return w->conf.ops.compute(w->conf.ops.arg, step, set, &w->batch, err);
}

/* Begins the next step if its weights are in and nothing holds it. */
static wf_status try_step(wf_worker *w, wf_err *err)
{
    wf_open_split *s = wf_splits_current(w);
    uint32_t step = w->step + 1;

    if (!s)
        return WF_OK;
    if (cut_is_here(s))
        return announce_cut(w, s, err);
    if (w->any_step && s->epoch != w->epoch) {
        if (wf_client_in_flight(w->client) > 0)
            return WF_OK;
        barrier(w);
    }
    WF_TRY(pull_for(w, step, err));
    if (!wf_client_set_ready(w->client, (int)(step % 2)) ||
        wf_client_in_flight(w->client) > w->job.pipeline)
        return WF_OK;
    return begin_step(w, s, err);
}

static wf_status try_evaluate(wf_worker *w, wf_err *err)
{
    if (w->evaluating || wf_client_in_flight(w->client) > 0)
        return WF_OK;
    if (w->eval_set_of != w->eval_epoch + 1) {
        w->eval_set_of = w->eval_epoch + 1;
        barrier(w);
        return wf_client_pull(w->client, WF_EVAL_SET, w->step + 1, err);
    }
    if (!wf_client_set_ready(w->client, WF_EVAL_SET))
        return WF_OK;
    w->evaluating = true;
    w->wait.kind = WF_WAIT_NONE;
    return w->conf.ops.evaluate(w->conf.ops.arg, WF_EVAL_SET, w->eval_begin, w->eval_end, err);
}

wf_status wf_worker_evaluated(wf_worker *w, uint64_t records, uint32_t n, wf_measure metrics[],
                              const wf_err *why, wf_err *err)
{
    Weft__EvalResult body = WEFT__EVAL_RESULT__INIT;
    measure_list measures;
    wf_status rc;

    if (!w->evaluating)
        return WF_OK;
    w->eval_wanted = w->evaluating = false;
    rc = list_measures(&measures, metrics, n, err);
    body.metrics = measures.list;
    body.n_metrics = measures.n;
    body.epoch = w->eval_epoch;
    body.id = w->eval_id;
    body.records = records;
    if (why && why->status != WF_OK) {
        body.what = (char *)why->what;
        body.mend = (char *)why->mend;
    }
    if (rc == WF_OK)
        rc = wf_worker_say(w, WF_EVAL_RESULT, &body.base, err);
    wf_bytes_close(&measures.sums);
    return rc;
}

static wf_status report_progress(wf_worker *w, int64_t now_ns, wf_err *err)
{
    if (now_ns - w->reported_ns < w->conf.progress_ns || !w->master->up)
        return WF_OK;
    w->reported_ns = now_ns;
    return say_progress(w, err);
}

/* One step a call: the shell reads what has arrived between two. */
static wf_status next_thing(wf_worker *w, wf_err *err)
{
    if (w->held)
        return report_hold(w, err);
    return w->eval_wanted ? try_evaluate(w, err) : try_step(w, err);
}

wf_status wf_worker_advance(wf_worker *w, int64_t now_ns, wf_err *err)
{
    wf_err why = {0};

    wf_waits_look(w, now_ns);
    if (w->start && w->faulted && w->fault_unsent)
        w->fault_unsent = wf_worker_say_fault(w, NULL) != WF_OK;
    if (!w->start || w->faulted)
        return WF_OK;
    WF_TRY(wf_splits_settle(w, err));
    WF_TRY(wf_client_retry(w->client, now_ns, err));
    WF_TRY(report_progress(w, now_ns, err));
    if (w->computing)
        return WF_OK;
    WF_TRY(wf_splits_want(w, err));
    if (next_thing(w, &why) != WF_OK)
        wf_worker_fault(w, &why);
    return WF_OK;
}

static wf_status on_cut_open(wf_worker *w, const wf_msg *m, int64_t now_ns, wf_err *err)
{
    wf_chief_abort(w);
    w->held = true;
    w->reported = w->due_sent = false;
    w->cut = m->head.cut;
    return wf_chief_begin(w, m, now_ns, err);
}

static wf_status on_resume(wf_worker *w, const wf_msg *m)
{
    if (!w->held || m->head.cut != w->cut)
        return WF_OK;
    w->held = w->reported = w->due_sent = false;
    for (int i = 0; i < WF_WORKER_SPLITS; i++)
        if (w->splits[i].used && cut_is_here(&w->splits[i]))
            w->splits[i].cut_at = 0; /* it has been */
    return WF_OK;
}

/* A unit of an evaluation. The weights stay as they are until the next epoch begins. */
static wf_status on_eval(wf_worker *w, const wf_msg *m, wf_err *err)
{
    Weft__Split *body = NULL;

    WF_TRY(wf_control_get(m, &weft__split__descriptor, &body, err));
    w->eval_wanted = true;
    w->eval_epoch = body->epoch;
    w->eval_id = body->id;
    w->eval_begin = body->begin;
    w->eval_end = body->end;
    wf_control_free(&body);
    return WF_OK;
}

static wf_status on_job_message(wf_worker *w, const wf_msg *m, int64_t now_ns, wf_err *err)
{
    switch (m->head.kind) {
    case WF_SPLIT:
        return wf_splits_on_grant(w, m, err);
    case WF_SPLIT_DONE_OK:
        return wf_splits_on_confirmed(w, m, err);
    case WF_EVAL:
        return on_eval(w, m, err);
    case WF_CUT_OPEN:
        return on_cut_open(w, m, now_ns, err);
    case WF_CUT_RESUME:
        return on_resume(w, m);
    case WF_CUT_REPORT:
        return wf_chief_on_report(w, m, now_ns, err);
    case WF_CUT_COMMIT:
        return wf_chief_on_commit(w, m, now_ns, err);
    case WF_CUT_ABORT:
        wf_chief_abort(w);
        return WF_OK;
    default:
        return WF_OK;
    }
}

static wf_status on_dismiss(const wf_worker *w, const wf_msg *m, wf_err *err)
{
    if (m->head.request == WF_DISMISS_SUPERSEDED)
        return wf_fail(err, WF_SUPERSEDED, NULL, "worker %u: a newer process has this task's place",
                       w->conf.index);
    return wf_fail(err, WF_TIMEOUT, "it starts anew by itself under \"weft up\"",
                   "worker %u: the master gave this process up after a silence", w->conf.index);
}

static wf_status on_master(wf_worker *w, const wf_msg *m, int64_t now_ns, wf_err *err)
{
    if (m->head.kind == WF_DISMISS)
        return on_dismiss(w, m, err);
    if (m->head.kind == WF_START)
        return wf_member_start(w, m, err);
    if (m->head.kind == WF_HALT) { /* the link is in order: it is not of an older time */
        wf_member_halt(w);
        return WF_OK;
    }
    if (!w->start || m->head.job != w->job_number || m->head.generation != w->generation)
        return WF_OK;
    return on_job_message(w, m, now_ns, err);
}

static wf_status on_ps(wf_worker *w, const wf_event *ev, int64_t now_ns, wf_err *err)
{
    uint16_t kind = ev->msg->head.kind;

    if (!w->client || ev->msg->head.job != w->job_number ||
        ev->msg->head.generation != w->generation)
        return WF_OK;
    if (kind == WF_CUT_FORKED || kind == WF_CUT_SAVED)
        return wf_chief_on_ps(w, ev->peer->task.index, ev->msg, now_ns, err);
    return wf_client_on_message(w->client, ev->peer, ev->msg, now_ns, err);
}

/* A peer's bad message is dropped with a word; what the master says wrongly ends the job. */
static wf_status on_message(wf_worker *w, wf_event *ev, int64_t now_ns, wf_err *err)
{
    wf_status rc =
        ev->peer == w->master ? on_master(w, ev->msg, now_ns, err) : on_ps(w, ev, now_ns, err);

    if (rc != WF_PROTO)
        return rc;
    WF_LOG_WARN("worker.bad_message", "kind=%s why=\"%s\"", wf_kind_name(ev->msg->head.kind),
                err->what);
    return WF_OK;
}

wf_status wf_worker_on_event(wf_worker *w, wf_event *ev, int64_t now_ns, wf_err *err)
{
    wf_status rc = WF_OK;

    switch (ev->kind) {
    case WF_EV_UP:
        if (ev->peer == w->master) {
            /* A hold outlives the link, or records would be trained that a checkpoint under way
             * does not name; only the master ends it. What was reported may be lost, and is
             * reported again. Of a chief's checkpoint too much may be lost: the master aborts it.
             */
            wf_chief_abort(w);
            w->reported = w->due_sent = false;
            rc = wf_member_register(w, err);
        } else if (w->client) {
            rc = wf_client_on_up(w->client, ev->peer, err);
            if (rc == WF_OK)
                rc = wf_chief_on_up(w, ev->peer->task.index, err);
        }
        break;
    case WF_EV_DOWN:
        if (ev->peer == w->master)
            w->want_sent = w->due_sent = false;
        break;
    case WF_EV_REFUSED:
        *err = ev->err;
        rc = ev->err.status;
        break;
    case WF_EV_MESSAGE:
        rc = on_message(w, ev, now_ns, err);
        wf_net_free_msg(w->net, &ev->msg);
        break;
    case WF_EV_BEAT: /* for the master */
        wf_net_free_msg(w->net, &ev->msg);
        break;
    }
    return rc;
}
