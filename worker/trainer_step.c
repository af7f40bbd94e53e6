/* SPDX-License-Identifier: Apache-2.0 */
/* worker/trainer_step.c - steps are computed, and their gradients leave. */
#include "common/base/clock.h"
#include "common/base/size.h"
#include "common/data/reader.h"
#include "common/exec/exec.h"
#include "common/log/log.h"
#include "worker/trainer_state.h"

#include <math.h>
#include <stdlib.h>

/* A gradient is final: it leaves while the rest is computed. */
static wf_status leave(void *arg, uint32_t variable, wf_err *err)
{
    wf_trainer *t = arg;

    WF_TRY(wf_exchange_push(t->hand->step.exchange, t->hand->step.step, variable, err));
    t->conf.flush(t->conf.flush_arg);
    return WF_OK;
}

static wf_status give(wf_trainer *t, uint32_t variable, wf_err *err)
{
    return wf_gradients_take(t->hand->gradients, variable) ? leave(t, variable, err) : WF_OK;
}

/* Whether a step with gradients that are not finite is left out, so that none of them may leave
 * before all were looked at. */
static bool may_drop(const wf_trainer *t)
{
    return t->start->skip_nan || wf_loss_scale_may_fall(&t->scale);
}

static bool is_alone(const wf_hand *h)
{
    return h->replicas.n == 1;
}

/* A replica, while it runs. */
typedef struct run {
    wf_trainer *t;
    wf_hand *hand;
    uint32_t number;
    wf_replica *of;
} run;

/* A gradient that stays on the device: it is added to those of the step's other batches, and looked
 * at. Under `on_nan: skip` the step's alone is, as on the host: a bad one of a batch makes it bad.
 */
static void note_apart(const run *r, uint32_t i, uint32_t variable, wf_device_event *done)
{
    const wf_trainer *t = r->t;
    const float *data = wf_plan_output_data(r->of->plan, i);
    uint64_t count = (uint64_t)wf_plan_output(r->of->plan, i)->elems;
    float *sum = wf_gradients_of_step(r->hand->gradients, r->number, variable);
    bool several = data != sum;

    if (several)
        wf_apart_sum(r->of->apart, sum, data, count, done);
    if (!several || !may_drop(t))
        wf_apart_look(r->of->apart, i, data, count, done);
    else if (wf_gradients_is_last(r->hand->gradients))
        wf_apart_look(r->of->apart, i, sum, count, done);
}

static wf_status look_at_gradient(wf_replica *r, uint32_t i, wf_err *err)
{
    if (wf_output_is_finite(r->plan, i))
        return WF_OK;
    r->bad_output = i;
    return wf_fail(err, WF_NUMERIC, NULL, "a gradient is no number");
}

/* Each gradient is looked at while it is warm, and a bad one never leaves; under `on_nan: skip` all
 * of them are, at the end. Nobody waits for one that stays on the device, or for a loss: the end of
 * the run is waited for. Nor does anybody wait for what a GPU copies to the host before all of the
 * run is queued, nor while another GPU is still to be started. Beside the trainer's thread none
 * leaves. */
static wf_status on_ready(void *arg, uint32_t i, wf_device_event *done, wf_err *err)
{
    const run *r = arg;
    wf_trainer *t = r->t;
    int32_t variable = t->train.outputs[i].variable;

    if (variable < 0)
        return WF_OK;
    if (!wf_plan_output(r->of->plan, i)->device->is_host) {
        note_apart(r, i, (uint32_t)variable, done);
    } else if (is_alone(r->hand) && !done->device->is_host) {
        t->late[t->n_late++] = (struct late_gradient){i, done};
        return WF_OK;
    } else if (is_alone(r->hand) || r->hand->replicas.beside) {
        WF_TRY(wf_device_event_wait(done, err));
        if (!may_drop(t))
            WF_TRY(look_at_gradient(r->of, i, err));
    }
    return is_alone(r->hand) && !r->hand->thread ? give(t, (uint32_t)variable, err) : WF_OK;
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
    const wf_train_step *s = &t->hand->step;
    const wf_measure *loss = &t->measures[0];

    if (!t->loss_log)
        return;
    fprintf(t->loss_log, "%u %u %u %lu %lu %a\n", s->generation, s->step, s->batch.epoch,
            (unsigned long)s->batch.split, (unsigned long)s->batch.number, loss->sum / loss->count);
    fflush(t->loss_log);
}

/* The batch that was read while the one before was computed, or else the reader's next. */
static wf_status read_next(wf_trainer *t, const wf_batch **out, bool *brought, wf_err *err)
{
    const struct next_batch next = t->next;

    t->next = (struct next_batch){0};
    if (!next.known)
        return wf_data_reader_next(t->train.reader, out, err);
    *out = next.batch;
    *brought = next.brought;
    if (!next.batch)
        *err = next.why;
    return next.batch ? WF_OK : next.why.status;
}

/* *brought: the replicas' plans have it already. */
static wf_status next_batch(wf_trainer *t, const wf_batch_id *id, const wf_batch **out,
                            bool *brought, wf_err *err)
{
    struct batch_ahead *a = &t->ahead[t->hand->step.step % WF_COUNT(t->ahead)];
    const wf_batch *b = NULL;

    *brought = false;
    if (!wf_tables_any(&t->train.tables)) {
        WF_TRY(read_next(t, &b, brought, err));
    } else if (a->step == t->hand->step.step) {
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

/* Gradients leave in the order in which the GPU copies them, while it goes on. */
static wf_status take_late(const run *r, wf_err *err)
{
    wf_trainer *t = r->t;

    for (uint32_t i = 0; i < t->n_late; i++) {
        uint32_t output = t->late[i].output;

        WF_TRY(wf_device_event_wait(t->late[i].done, err));
        if (!may_drop(t))
            WF_TRY(look_at_gradient(r->of, output, err));
        WF_TRY(give(t, (uint32_t)t->train.outputs[output].variable, err));
    }
    return WF_OK;
}

/* Queues the run, and behind it what is due to gradients that stay on the device. A replica without
 * records has a part in sums all the same: none. */
static wf_status start_run(const run *r, wf_err *err)
{
    const wf_gradients *g = r->hand->gradients;
    wf_replica *of = r->of;
    bool late = is_alone(r->hand) && !r->hand->thread;

    if (late)
        r->t->n_late = 0;
    if (of->plan)
        WF_TRY(wf_plan_start(of->plan, &of->key, on_ready, (void *)(uintptr_t)r, err));
    if (of->apart)
        WF_TRY(wf_apart_start(of->apart, wf_gradients_weight(g, r->number),
                              wf_gradients_is_first(g), err));
    return late ? take_late(r, err) : WF_OK;
}

/* A hand's replicas, while they run. */
typedef struct runs {
    wf_trainer *t;
    wf_hand *hand;
} runs;

static void start_replica(void *arg, uint32_t i)
{
    const runs *all = arg;
    run r = {all->t, all->hand, i, &all->hand->replicas.of[i]};

    r.of->rc = start_run(&r, &r.of->err);
}

/* Gradients of the host that no other thread has looked at. */
static wf_status look_at_copied(const wf_trainer *t, const wf_hand *h, wf_replica *r, wf_err *err)
{
    if (is_alone(h) || h->replicas.beside || may_drop(t))
        return WF_OK;
    for (uint32_t i = 0; i < t->train.n_outputs; i++)
        if (t->train.outputs[i].variable >= 0 && wf_plan_output(r->plan, i)->device->is_host)
            WF_TRY(look_at_gradient(r, i, err));
    return WF_OK;
}

/* Waits for what was started, also if not all of it was. */
static void end_replica(const wf_trainer *t, const wf_hand *h, wf_replica *r)
{
    wf_status waited = WF_OK;

    if (r->plan)
        waited = wf_plan_wait(r->plan, r->rc == WF_OK ? &r->err : NULL);
    r->rc = r->rc == WF_OK ? waited : r->rc;
    if (r->rc == WF_OK && r->apart)
        r->rc = wf_apart_wait(r->apart, &r->bad_output, &r->err);
    if (r->rc == WF_OK && r->bad_output >= 0 && !may_drop(t))
        r->rc = wf_fail(&r->err, WF_NUMERIC, NULL, "a gradient is no number");
    if (r->rc == WF_OK && r->plan)
        r->rc = look_at_copied(t, h, r, &r->err);
}

/* Brings the replicas their shares of the next batch, if they are as large as those in hand. */
static void bring_shares(wf_trainer *t)
{
    wf_replicas *all = &t->hand->replicas;
    struct next_batch *next = &t->next;
    uint64_t begin;

    for (uint32_t i = 0; i < all->n; i++)
        if (wf_replica_share(next->batch->n, all->n, i, &begin) != all->of[i].batch.n)
            return;
    next->brought = true;
    for (uint32_t i = 0; i < all->n; i++) {
        wf_replica *r = &all->of[i];

        (void)wf_replica_share(next->batch->n, all->n, i, &begin);
        if (r->plan && r->rc == WF_OK)
            r->rc = wf_side_bring_ahead(&t->train, r->plan, next->batch, begin, &r->err);
    }
}

/* Whether there was one, or what is wrong with it is known now. */
static bool read_ahead(wf_trainer *t)
{
    struct next_batch *next = &t->next;

    next->why.status = wf_data_reader_next(t->train.reader, &next->batch, &next->why);
    next->known = next->batch || next->why.status != WF_OK;
    return next->known;
}

static bool may_read_ahead(const wf_trainer *t)
{
    return t->train.reader && !wf_tables_any(&t->train.tables) && !t->next.known;
}

/* While GPUs compute: the next batch is read, and brought to them. One of another size, as of the
 * last records of a split, has other plans, and is copied when its step begins. */
static void bring_next(wf_trainer *t)
{
    int64_t began_ns = wf_now_ns();

    if (t->devices[0]->is_host || !may_read_ahead(t))
        return;
    (void)read_ahead(t);
    t->hand->result.data_ns += (uint64_t)(wf_now_ns() - began_ns);
    if (t->next.batch)
        bring_shares(t);
}

bool wf_trainer_read_ahead(wf_trainer *t)
{
    return !t->stage && may_read_ahead(t) && read_ahead(t);
}

void wf_step_compute(wf_trainer *t, wf_hand *hand)
{
    wf_replicas *all = &hand->replicas;

    wf_replicas_each(all, start_replica, &(runs){t, hand});
    if (!hand->thread)
        bring_next(t);
    for (uint32_t i = 0; i < all->n; i++)
        end_replica(t, hand, &all->of[i]);
}

static wf_status no_room(const wf_port *gradient, wf_err *err)
{
    if (gradient->device->is_host)
        return wf_fail_nomem(err, gradient->bytes);
    return wf_fail(err, WF_NOMEM, "lower the batch, or use a device with more memory",
                   "%s has no %zu bytes left for the gradient of \"%.200s\" in a batch",
                   gradient->device->name, gradient->bytes, gradient->variable);
}

/* Where a replica is to write its gradient; `like` is that output of a plan. */
static wf_status find_room(wf_trainer *t, uint32_t replica, uint32_t variable, const wf_port *like,
                           float **out, wf_err *err)
{
    wf_exchange *x = wf_exchange_of_replica(t->hand->step.exchange, replica);

    *out = wf_gradients_into(t->hand->gradients, replica, variable,
                             wf_exchange_gradient(x, t->hand->step.step, variable));
    return *out ? WF_OK : no_room(like, err);
}

static wf_status bind_replica(wf_trainer *t, uint32_t number, wf_err *err)
{
    const wf_exchange *x = wf_exchange_of_replica(t->hand->step.exchange, number);
    wf_replica *r = &t->hand->replicas.of[number];

    WF_TRY(wf_side_plan(&t->train, t->hand->first_replica + number, r->batch.n, &r->plan, err));
    WF_TRY(wf_side_bind(&t->train, r->plan, x, t->hand->step.set, &r->batch, err));
    for (uint32_t i = 0; i < t->train.n_outputs; i++) {
        int32_t variable = t->train.outputs[i].variable;
        float *to;

        if (variable < 0)
            continue;
        WF_TRY(find_room(t, number, (uint32_t)variable, wf_plan_output(r->plan, i), &to, err));
        wf_plan_bind_output(r->plan, i, to);
    }
    return WF_OK;
}

/* A replica whose share is empty; the first one's never is. Its sum of a step begins with zeros,
 * and is looked at as others are. No run of a plan waits here for the update of the step before,
 * which reads the memory of that sum. */
static wf_status idle_replica(wf_trainer *t, uint32_t number, wf_err *err)
{
    wf_device_event *written = wf_exchange_of_replica(t->hand->step.exchange, number)->written;
    const wf_plan *like = t->hand->replicas.of[0].plan;
    wf_replica *r = &t->hand->replicas.of[number];

    for (uint32_t i = 0; i < t->train.n_outputs; i++) {
        const wf_port *port = wf_plan_output(like, i);
        int32_t variable = t->train.outputs[i].variable;
        float *ignored, *sum;

        if (variable < 0 || port->device->is_host)
            continue;
        WF_TRY(find_room(t, number, (uint32_t)variable, port, &ignored, err));
        sum = wf_gradients_of_step(t->hand->gradients, number, (uint32_t)variable);
        if (wf_gradients_is_first(t->hand->gradients))
            WF_TRY(wf_apart_clear(r->apart, sum, (uint64_t)port->elems, written, err));
        else if (wf_gradients_is_last(t->hand->gradients) && may_drop(t))
            wf_apart_look(r->apart, i, sum, (uint64_t)port->elems, NULL);
    }
    return WF_OK;
}

/* Gradients that did not leave while the replicas ran, once all are there. */
static wf_status take_gradients(wf_trainer *t, wf_err *err)
{
    if (is_alone(t->hand) && !t->hand->thread)
        return WF_OK;
    for (uint32_t i = 0; i < t->train.n_outputs; i++)
        if (t->train.outputs[i].variable >= 0)
            WF_TRY(give(t, (uint32_t)t->train.outputs[i].variable, err));
    return WF_OK;
}

/* Room for each output of a plan, once: a graph from the wire may name a variable twice. */
static wf_status make_late(wf_trainer *t, wf_err *err)
{
    if (!t->late)
        t->late = calloc(t->train.n_outputs + (size_t)1, sizeof *t->late);
    return t->late ? WF_OK : wf_fail_nomem(err, t->train.n_outputs * sizeof *t->late);
}

/* What became of a run; then the gradients that it left behind go. */
static wf_status end_run(wf_trainer *t, wf_err *err)
{
    const wf_replicas *all = &t->hand->replicas;

    for (uint32_t i = 0; i < all->n; i++)
        if (all->of[i].rc != WF_OK) {
            *err = all->of[i].err;
            return all->of[i].rc;
        }
    return take_gradients(t, err);
}

/* brought: the replicas' plans have the batch. */
static wf_status bind(wf_trainer *t, bool brought, wf_err *err)
{
    wf_replicas *all = &t->hand->replicas;

    WF_TRY(make_late(t, err));
    for (uint32_t i = 0; i < all->n; i++) {
        if (all->of[i].apart)
            wf_apart_begin(all->of[i].apart);
        WF_TRY(all->of[i].batch.n ? bind_replica(t, i, err) : idle_replica(t, i, err));
    }
    for (uint32_t i = 0; brought && i < all->n; i++)
        if (all->of[i].plan)
            wf_plan_take_ahead(all->of[i].plan);
    return WF_OK;
}

static wf_status measure(wf_trainer *t, uint32_t *used, wf_err *err)
{
    for (uint32_t i = 0; i < t->hand->replicas.n; i++) {
        const wf_replica *r = &t->hand->replicas.of[i];

        if (r->plan)
            WF_TRY(wf_side_measure(&t->train, r->plan, r->batch.n, t->measures, used, err));
    }
    return WF_OK;
}

/* Records [begin, end) of a step: its split's `number`-th batch. */
wf_status wf_step_prepare(wf_trainer *t, const wf_batch_id *id, wf_err *err)
{
    const wf_step_key key = {t->start->seed, id->epoch, id->split, id->number};
    const wf_batch_id *step = &t->hand->step.batch;
    uint64_t records[WF_REPLICAS_MOST];
    int64_t began_ns = wf_now_ns();
    bool brought;

    WF_TRY(next_batch(t, id, &t->hand->batch, &brought, err));
    t->hand->rows = t->train.rows;
    t->hand->result.data_ns += (uint64_t)(wf_now_ns() - began_ns);
    WF_TRY(wf_replicas_share(&t->hand->replicas, t->hand->batch, t->train.data, &key, err));
    for (uint32_t i = 0; i < t->hand->replicas.n; i++)
        records[i] = t->hand->replicas.of[i].batch.n;
    wf_gradients_begin(t->hand->gradients, records, step->end - step->begin,
                       id->begin == step->begin, id->end == step->end);
    return bind(t, brought, err);
}

static wf_status take_batch(wf_trainer *t, const wf_batch_id *id, wf_err *err)
{
    wf_train_result *out = &t->hand->result;
    wf_status rc = end_run(t, err);

    t->train.rows = t->hand->rows; /* for a diagnosis: the next batch may be in another's hand */
    if (rc == WF_OK)
        rc = measure(t, &out->n_metrics, err);
    if (!t->start->skip_nan &&
        (rc == WF_NUMERIC || (rc == WF_OK && !metrics_are_finite(t->measures, out->n_metrics))))
        rc = wf_step_diagnose(t, id, err);
    return rc;
}

static wf_status run_batch(wf_trainer *t, const wf_batch_id *id, wf_err *err)
{
    wf_status rc = wf_step_prepare(t, id, err);

    if (rc == WF_OK) {
        wf_step_compute(t, t->hand);
        rc = take_batch(t, id, err);
    }
    wf_data_reader_release(t->train.reader, &t->hand->batch);
    return rc;
}

static bool any_bad(const wf_trainer *t)
{
    for (uint32_t i = 0; i < t->hand->replicas.n; i++)
        if (t->hand->replicas.of[i].bad_output >= 0)
            return true;
    return false;
}

static void note_scale(wf_trainer *t, bool finite)
{
    if (wf_loss_scale_note(&t->scale, finite))
        WF_LOG_INFO("worker.loss_scale", "step=%u scale=%.9g", t->hand->step.step,
                    (double)t->scale.scale);
}

/* The gradients of the step leave, or none of them does: under `on_nan: skip`, and where the loss's
 * scale may be to blame. A loss that is no number is not due to the scale. */
static wf_status end_step(wf_trainer *t, wf_err *err)
{
    wf_train_result *out = &t->hand->result;
    const bool number = !may_drop(t) || metrics_are_finite(t->measures, out->n_metrics);
    const bool finite =
        !may_drop(t) || (number && !any_bad(t) && wf_gradients_finite(t->hand->gradients));

    if (number)
        note_scale(t, finite);
    if (finite)
        return wf_gradients_end(t->hand->gradients, leave, t, err);
    WF_LOG_WARN("worker.step_dropped", "step=%u", t->hand->step.step);
    out->n_metrics = 0; /* a sum with NaN in it says nothing of the others */
    out->dropped = true;
    return WF_OK;
}

static wf_status compute(wf_trainer *t, wf_err *err)
{
    const wf_batch_id *id = &t->hand->step.batch;
    wf_batch_id part = *id;

    if (t->opening.begun && atomic_load(&t->opening.ended))
        WF_TRY(wf_trainer_join_opening(t, err)); /* eval data that is wrong ends the job at once */
    clear_metrics(t->measures);
    part.number *= t->batches;
    for (; part.begin < id->end; part.begin = part.end, part.number++) {
        part.end = WF_MIN(part.begin + t->train.batch, id->end);
        WF_TRY(run_batch(t, &part, err));
    }
    return end_step(t, err);
}

wf_status wf_step_take(wf_trainer *t, wf_err *err)
{
    wf_status rc;

    clear_metrics(t->measures);
    rc = take_batch(t, &t->hand->step.batch, err);
    wf_data_reader_release(t->train.reader, &t->hand->batch);
    return rc == WF_OK ? end_step(t, err) : rc;
}

wf_status wf_step_tell(wf_trainer *t, wf_worker *w, wf_status rc, wf_err *err)
{
    wf_train_result *out = &t->hand->result;
    int64_t took_ns = wf_now_ns() - t->hand->began_ns;

    if (rc != WF_OK && rc != WF_NUMERIC)
        rc = wf_err_wrap(&out->why, rc, "step %u", t->hand->step.step);
    out->why.status = rc;
    if (rc == WF_OK)
        log_loss(t);
    out->metrics = t->measures;
    out->compute_ns = (uint64_t)took_ns - out->data_ns;
    return wf_worker_on_computed(w, out, err);
}

wf_status wf_trainer_make_step(wf_trainer *t, wf_worker *w, wf_err *err)
{
    wf_status rc;

    t->hand = &t->hands[0];
    t->hand->step = t->step;
    t->hand->began_ns = wf_now_ns();
    t->hand->result = (wf_train_result){0};
    rc = compute(t, &t->hand->result.why);
    if (rc == WF_OK)
        wf_hands_note(t, wf_now_ns() - t->hand->began_ns);
    return wf_step_tell(t, w, rc, err);
}
