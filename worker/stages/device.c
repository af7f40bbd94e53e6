/* SPDX-License-Identifier: Apache-2.0 */
/* worker/stages/device.c - a stage whose plans run on a device that is not the host.
 *
 * All values that its parts take and give lie in rooms of the device. One that comes in, or is fed,
 * is copied there when the first part takes it, and serves both parts; one that the forward part
 * makes for the backward part stays there; one that goes to another stage is copied to the host
 * behind the kernel that makes it. So a value passes the bus once at most.
 *
 * A value has a room for each micro-batch that may be under way (H1), which the micro-batches take
 * in turns: few addresses recur, and recordings of kernels with them (common/exec/replay.c).
 *
 * Where the device updates variables they live there (exchange/local_device.c), and gradients of
 * micro-batches are added up there; the sum is looked at for NaN.
 */
#include "common/base/size.h"
#include "worker/stages/state.h"

#include <stdlib.h>

wf_status wf_stage_device_open(wf_stage *s, wf_err *err)
{
    wf_stage_device *on = &s->on;

    if (s->conf.device->is_host)
        return WF_OK;
    on->device = s->conf.device;
    if (!wf_stage_predicts(s))
        on->updates = wf_updates_of(on->device);
    WF_TRY(wf_stream_new(on->device, &on->stream, err));
    WF_TRY(wf_device_event_new(on->device, &on->brought, err));
    if (!on->updates)
        return WF_OK;
    return wf_apart_new(on->device, on->updates, s->conf.start->n_variables, &on->apart, err);
}

void wf_stage_device_close(wf_stage *s)
{
    wf_apart_free(&s->on.apart);
    wf_stream_free(&s->on.stream);
    wf_device_event_free(&s->on.brought);
}

bool wf_stage_is_apart(const wf_stage *s, uint32_t variable)
{
    return s->on.updates && !wf_exchange_home(s->conf.start, s->on.device, variable)->is_host;
}

/* ---- rooms ---- */

/* Forward parts that no backward part follows are done before the next begins. */
static uint32_t count_slots(const wf_stage *s, bool trains)
{
    const Weft__Start *start = s->conf.start;

    return trains ? WF_MIN((uint32_t)start->n_stages - start->stage, start->micro_batches) : 1;
}

static wf_status make_room(wf_stage *s, uint32_t slot, uint32_t value, size_t bytes, wf_buf **out,
                           wf_err *err)
{
    wf_stage_book *b = wf_stage_book_now(s);
    size_t n = (size_t)count_slots(s, s->now.trains) * b->n_values;
    wf_buf **room;

    if (!b->rooms) {
        b->rooms = calloc(n + 1, sizeof(*b->rooms));
        if (!b->rooms)
            return wf_fail_nomem(err, n * sizeof(*b->rooms));
        b->n_rooms = n;
    }
    room = &b->rooms[(size_t)slot * b->n_values + value];
    *out = *room;
    if (*room && (*room)->bytes >= bytes)
        return WF_OK;
    wf_buf_unref(room);
    *out = *room = wf_buf_new_on(s->on.device, WF_MAX(bytes, (size_t)1));
    if (*room)
        return WF_OK;
    return wf_fail(err, WF_NOMEM, NULL, "%s has no %zu bytes left for \"%.200s\" of a micro-batch",
                   s->on.device->name, bytes, b->values[value].name);
}

static wf_status reserve_ports(wf_stage *s, const wf_stage_port ports[], uint32_t n,
                               const wf_port *(*port_of)(const wf_plan *p, uint32_t i),
                               const wf_plan *p, wf_err *err)
{
    for (uint32_t i = 0; i < n; i++) {
        const wf_port *port = port_of(p, i);
        wf_buf *ignored;

        if (ports[i].value < 0 || port->device->is_host)
            continue;
        for (uint32_t slot = 0; slot < count_slots(s, s->now.trains); slot++)
            WF_TRY(make_room(s, slot, (uint32_t)ports[i].value, port->bytes, &ignored, err));
    }
    return WF_OK;
}

wf_status wf_stage_reserve(wf_stage *s, const wf_stage_part *part, const wf_plan *p, wf_err *err)
{
    if (!s->on.device)
        return WF_OK;
    WF_TRY(reserve_ports(s, part->in, part->n_in, wf_plan_input, p, err));
    return reserve_ports(s, part->out, part->n_out, wf_plan_output, p, err);
}

wf_status wf_stage_room(wf_stage *s, uint32_t batch, uint32_t value, size_t bytes, wf_err *err)
{
    wf_stage_held *h = wf_stage_hold(s, batch, value);
    wf_buf *room;

    WF_TRY(make_room(s, batch % count_slots(s, s->now.trains), value, bytes, &room, err));
    wf_buf_unref(&h->on);
    h->on = wf_buf_ref(room);
    return WF_OK;
}

wf_status wf_stage_bring(wf_stage *s, uint32_t batch, uint32_t value, wf_err *err)
{
    wf_stage_held *h = wf_stage_hold(s, batch, value);
    size_t bytes = (size_t)h->elems * wf_dtype_size(h->dtype);

    if (h->on)
        return WF_OK;
    WF_TRY(wf_stage_room(s, batch, value, bytes, err));
    return wf_stream_copy(s->on.stream, WF_COPY_IN, h->on->data, h->buf->data, bytes, err);
}

/* ---- a run ---- */

typedef struct running {
    wf_stage *s;
    const wf_stage_part *part;
    const wf_plan *plan;
    uint32_t batch;
} running;

/* Adds up the gradients of micro-batches; the sum of all is looked at. */
static void note_gradient(const running *r, uint32_t i, wf_device_event *done)
{
    const wf_stage *s = r->s;
    uint64_t count = (uint64_t)wf_plan_output(r->plan, i)->elems;
    const float *data = wf_plan_output_data(r->plan, i);
    float *sum = wf_gradients_of_step(s->gradients, 0, (uint32_t)r->part->out[i].variable);

    if (data != sum)
        wf_apart_sum(s->on.apart, sum, data, count, done);
    if (wf_gradients_is_last(s->gradients))
        wf_apart_look(s->on.apart, i, sum, count, done);
}

static wf_status on_ready(void *arg, uint32_t i, wf_device_event *done, wf_err *err)
{
    const running *r = arg;
    const wf_stage_port *port = &r->part->out[i];
    const wf_stage_held *h;

    if (wf_plan_output(r->plan, i)->device->is_host)
        return WF_OK;
    if (port->variable >= 0)
        note_gradient(r, i, done);
    if (port->value < 0)
        return WF_OK;
    h = wf_stage_hold(r->s, r->batch, (uint32_t)port->value);
    if (!h->buf) /* nobody but the backward part takes it */
        return WF_OK;
    WF_TRY(wf_stream_after(r->s->on.stream, done, err));
    return wf_stream_copy(r->s->on.stream, WF_COPY_OUT, h->buf->data, h->on->data,
                          wf_plan_output(r->plan, i)->bytes, err);
}

static wf_status start(running *r, wf_plan *p, const wf_step_key *key, wf_err *err)
{
    wf_stage *s = r->s;

    WF_TRY(wf_device_event_record(s->on.brought, s->on.stream, err));
    WF_TRY(wf_plan_after_event(p, s->on.brought, err));
    if (s->own && s->own->written)
        WF_TRY(wf_plan_after_event(p, s->own->written, err));
    if (s->on.apart)
        wf_apart_begin(s->on.apart);
    WF_TRY(wf_plan_start(p, key, on_ready, r, err));
    if (!s->on.apart || !s->now.trains)
        return WF_OK;
    return wf_apart_start(s->on.apart, wf_gradients_weight(s->gradients, 0),
                          wf_gradients_is_first(s->gradients), err);
}

static wf_status bad_gradient(const running *r, int64_t output, wf_err *err)
{
    const Weft__Start *of = r->s->conf.start;

    return wf_fail(err, WF_NUMERIC,
                   "look at the data, lower the learning rate, or take on_nan: rollback",
                   "the gradient of \"%.200s\" has NaN or infinity",
                   of->variables[r->part->out[output].variable]->name);
}

wf_status wf_stage_run(wf_stage *s, const wf_stage_part *part, wf_plan *p, uint32_t batch,
                       const wf_step_key *key, wf_err *err)
{
    running r = {s, part, p, batch};
    int64_t bad = -1;
    wf_status rc, waited;

    if (!s->on.device)
        return wf_plan_run(p, key, NULL, NULL, err);
    rc = start(&r, p, key, err);
    /* All of it is waited for, also after a failure: memory is the device's until then. */
    waited = wf_plan_wait(p, rc == WF_OK ? err : NULL);
    rc = rc == WF_OK ? waited : rc;
    waited = wf_stream_wait(s->on.stream, rc == WF_OK ? err : NULL);
    rc = rc == WF_OK ? waited : rc;
    if (s->on.apart)
        waited = wf_apart_wait(s->on.apart, &bad, rc == WF_OK ? err : NULL);
    rc = rc == WF_OK ? waited : rc;
    s->now.is_bad |= bad >= 0;
    return rc == WF_OK && bad >= 0 && !s->sums.skips ? bad_gradient(&r, bad, err) : rc;
}
