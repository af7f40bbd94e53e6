/* SPDX-License-Identifier: Apache-2.0 */
/* worker/stages/compute.c - the actions of a round: a micro-batch goes forward or back through this
 * stage, sums of squares are taken, and the variables are updated. Where the stage has a thread,
 * its plans, its sums of gradients and its updates run there; what they take is bound before on the
 * worker's thread, which sends what they made.
 */
#include "common/base/size.h"
#include "worker/stages/state.h"

#include <string.h>

wf_status wf_stage_plan(wf_stage *s, int which, uint64_t records, wf_plan **out, wf_err *err)
{
    const wf_stage_place place = {.device = s->conf.device,
                                  .home = s->on.updates ? s->on.device : NULL,
                                  .pool = s->conf.pool};

    return wf_stage_part_plan(wf_stage_book_now(s), which, records, &place, out, err);
}

static wf_status hold_copy(wf_stage *s, uint32_t batch, uint32_t value, const wf_tensor *from,
                           wf_err *err)
{
    wf_stage_held *h = wf_stage_hold(s, batch, value);
    size_t bytes = wf_tensor_bytes(from);

    h->buf = wf_stage_buf(s, bytes);
    if (!h->buf)
        return wf_fail_nomem(err, bytes);
    memcpy(h->buf->data, from->data, bytes);
    h->dtype = from->dtype;
    h->elems = wf_elems(from);
    return WF_OK;
}

/* The records of a micro-batch, of which the fields that nobody takes are left out. */
static wf_status feed(wf_stage *s, uint32_t batch, wf_err *err)
{
    const wf_stage_book *b = wf_stage_book_now(s);
    const wf_batch *records = NULL;
    wf_status rc = WF_OK;

    WF_TRY(s->conf.read(s->conf.arg, s->now.trains, &records, err));
    if (records->n != s->now.records[batch])
        rc = wf_fail(err, WF_INVALID, "this is a bug in weft",
                     "the reader gives %lu records, and not %u", (unsigned long)records->n,
                     s->now.records[batch]);
    for (uint32_t i = 0; rc == WF_OK && i < b->n_values; i++)
        if (b->values[i].field >= 0 && records->fields[b->values[i].field].data)
            rc = hold_copy(s, batch, i, &records->fields[b->values[i].field], err);
    s->conf.release(s->conf.arg, s->now.trains, &records);
    for (uint32_t i = 0; rc == WF_OK && i < b->n_values; i++)
        if (b->values[i].field >= 0 && b->values[i].goes)
            rc = wf_stage_send_value(s, batch, i, err);
    return rc;
}

static wf_status bind_inputs(wf_stage *s, const wf_stage_part *part, uint32_t batch, wf_plan *p,
                             wf_err *err)
{
    for (uint32_t i = 0; i < part->n_in; i++) {
        const wf_port *port = wf_plan_input(p, i);
        const wf_stage_held *h;

        if (part->in[i].variable >= 0) {
            wf_plan_bind_input(p, i,
                               wf_exchange_weights(s->own, 0, (uint32_t)part->in[i].variable));
            continue;
        }
        if (part->in[i].value < 0)
            continue; /* the graph holds its content */
        h = wf_stage_hold(s, batch, (uint32_t)part->in[i].value);
        if (!wf_stage_has(h) || h->dtype != port->dtype || h->elems != port->elems)
            return wf_fail(err, WF_SHAPE, NULL,
                           "\"%.200s\" has %ld elements of %s, and the graph takes %ld of %s",
                           port->name, (long)h->elems, wf_dtype_name(h->dtype), (long)port->elems,
                           wf_dtype_name(port->dtype));
        if (!port->device->is_host)
            WF_TRY(wf_stage_bring(s, batch, (uint32_t)part->in[i].value, err));
        wf_plan_bind_input(p, i, port->device->is_host ? h->buf->data : h->on->data);
    }
    return WF_OK;
}

/* Memory of an output: of the port's device, and of the host if anyone reads it there. */
static wf_status make_output(wf_stage *s, uint32_t batch, uint32_t value, const wf_port *port,
                             wf_err *err)
{
    const wf_stage_value *v = &wf_stage_book_now(s)->values[value];
    wf_stage_held *h = wf_stage_hold(s, batch, value);

    wf_buf_unref(&h->buf);
    if (port->device->is_host || v->goes || v->result >= 0) {
        h->buf = wf_stage_buf(s, port->bytes);
        if (!h->buf)
            return wf_fail_nomem(err, port->bytes);
    }
    h->dtype = port->dtype;
    h->elems = port->elems;
    return port->device->is_host ? WF_OK : wf_stage_room(s, batch, value, port->bytes, err);
}

static wf_status bind_outputs(wf_stage *s, const wf_stage_part *part, uint32_t batch, wf_plan *p,
                              wf_err *err)
{
    for (uint32_t i = 0; i < part->n_out; i++) {
        const wf_port *port = wf_plan_output(p, i);
        const wf_stage_held *h;
        float *to;

        if (part->out[i].variable >= 0) {
            WF_TRY(wf_stage_gradient(s, (uint32_t)part->out[i].variable, &to, err));
            wf_plan_bind_output(p, i, to);
            continue;
        }
        if (part->out[i].value < 0)
            continue;
        WF_TRY(make_output(s, batch, (uint32_t)part->out[i].value, port, err));
        h = wf_stage_hold(s, batch, (uint32_t)part->out[i].value);
        wf_plan_bind_output(p, i, port->device->is_host ? h->buf->data : h->on->data);
    }
    return WF_OK;
}

static wf_status give_values(wf_stage *s, const wf_stage_part *part, uint32_t batch, wf_err *err)
{
    const wf_stage_book *b = wf_stage_book_now(s);

    for (uint32_t i = 0; i < part->n_out; i++)
        if (part->out[i].value >= 0 && b->values[part->out[i].value].goes)
            WF_TRY(wf_stage_send_value(s, batch, (uint32_t)part->out[i].value, err));
    return WF_OK;
}

/* Binds a part of a micro-batch, if this stage has anything to do in it. */
static wf_status prepare(wf_stage *s, int which, uint32_t batch, wf_err *err)
{
    wf_stage_part *part = &wf_stage_book_now(s)->parts[which];
    wf_stage_computing *c = &s->computing;
    uint64_t records = s->now.records[batch];
    wf_plan *p;

    c->part = part;
    if (!part->graph || part->graph->n_nodes == 0)
        return WF_OK;
    c->key = (wf_step_key){s->conf.start->seed, s->now.epoch, s->now.split, s->now.first + batch};
    if (s->now.trains)
        wf_gradients_begin(s->gradients, &records, s->now.all, batch == 0,
                           batch + 1 == s->now.schedule.batches);
    WF_TRY(wf_stage_plan(s, which, records, &p, err));
    WF_TRY(bind_inputs(s, part, batch, p, err));
    WF_TRY(bind_outputs(s, part, batch, p, err));
    c->plan = p;
    return WF_OK;
}

/* Results stay; what the backward part takes does until it has run. */
static void let_go(wf_stage *s, uint32_t batch, bool all)
{
    const wf_stage_book *b = wf_stage_book_now(s);

    for (uint32_t i = 0; i < b->n_values; i++) {
        const wf_stage_value *v = &b->values[i];

        if (all || !v->is_kept)
            wf_buf_unref(&wf_stage_hold(s, batch, i)->on);
        if (v->result < 0 && (all || !v->is_kept))
            wf_buf_unref(&wf_stage_hold(s, batch, i)->buf);
    }
}

/* ---- on any thread ---- */

static wf_status run(wf_stage *s, wf_err *err)
{
    const wf_stage_computing *c = &s->computing;

    if (c->doing == WF_DOES_SUMS)
        return wf_stage_take_squares(s, err);
    if (c->doing == WF_DOES_UPDATE)
        return wf_stage_update(s, err);
    return wf_stage_run(s, c->part, c->plan, c->batch, &c->key, err);
}

/* Adds up gradients: behind the sending of values, where that waits for it. */
static wf_status take_gradients(wf_stage *s, wf_err *err)
{
    const wf_stage_computing *c = &s->computing;

    for (uint32_t i = 0; c->doing == WF_DOES_PART && i < c->part->n_out; i++)
        if (c->part->out[i].variable >= 0)
            WF_TRY(wf_stage_take_gradient(s, (uint32_t)c->part->out[i].variable, err));
    return WF_OK;
}

static void run_beside(void *arg)
{
    wf_stage *s = arg;
    wf_stage_computing *c = &s->computing;

    c->rc = run(s, &c->err);
    if (c->rc == WF_OK)
        c->rc = take_gradients(s, &c->err);
}

/* ---- from beginning to end ---- */

static wf_status end_update(wf_stage *s, wf_err *err)
{
    s->now.updated = true;
    s->now.busy = wf_stage_is_first(s);
    return s->now.busy ? WF_OK : wf_stage_send_outcome(s, WF_STAGE_DONE, NULL, err);
}

static wf_status end(wf_stage *s, wf_err *err)
{
    const wf_stage_computing *c = &s->computing;

    if (c->doing == WF_DOES_SUMS)
        return wf_stage_end_sums(s, err);
    if (c->doing == WF_DOES_UPDATE)
        return end_update(s, err);
    if (c->plan)
        WF_TRY(give_values(s, c->part, c->batch, err));
    if (c->plan && !s->thread)
        WF_TRY(take_gradients(s, err));
    let_go(s, c->batch, c->action == WF_STAGE_GO_BACK || !s->now.trains);
    wf_schedule_note(&s->now.schedule, c->action);
    return WF_OK;
}

static wf_status compute(wf_stage *s, wf_err *err)
{
    if (s->thread) {
        s->computing.under_way = true;
        wf_stepper_give(s->thread, run_beside, s);
        return WF_OK;
    }
    WF_TRY(run(s, err));
    return end(s, err);
}

wf_status wf_stage_compute(wf_stage *s, wf_stage_action a, uint32_t batch, wf_err *err)
{
    bool forward = a == WF_STAGE_GO_FORWARD;

    s->computing = (wf_stage_computing){.action = a, .batch = batch};
    if (forward && wf_stage_is_first(s))
        WF_TRY(feed(s, batch, err));
    WF_TRY(prepare(s, forward ? WF_PART_FORWARD : WF_PART_BACKWARD, batch, err));
    return s->computing.plan ? compute(s, err) : end(s, err);
}

wf_status wf_stage_compute_sums(wf_stage *s, wf_err *err)
{
    s->computing = (wf_stage_computing){.doing = WF_DOES_SUMS};
    return s->sums.squares && !s->now.is_bad ? compute(s, err) : end(s, err);
}

wf_status wf_stage_compute_update(wf_stage *s, wf_err *err)
{
    s->computing = (wf_stage_computing){.doing = WF_DOES_UPDATE};
    return s->now.trains ? compute(s, err) : end(s, err);
}

void wf_stage_wait(wf_stage *s)
{
    if (s->computing.under_way)
        wf_stepper_wait(s->thread);
}

wf_status wf_stage_end_computing(wf_stage *s, wf_err *err)
{
    wf_stage_wait(s);
    s->computing.under_way = false;
    if (s->computing.rc == WF_OK)
        return end(s, err);
    *err = s->computing.err;
    return s->computing.rc;
}
