/* SPDX-License-Identifier: Apache-2.0 */
/* common/exec/run.c - one run of a plan: kernels in order; outputs announced as they become final.
 */
#include "common/exec/plan.h"
#include "common/graph/op.h"
#include "common/optim/finite.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

/* Gives outputs that nobody bound a place; allocates the first time only (P3). */
static wf_status place_outputs(wf_plan *p, wf_err *err)
{
    for (uint32_t i = 0; i < p->n_outs; i++) {
        wf_plan_out *out = &p->outs[i];

        if (!out->direct || p->tensors[out->value->index].data)
            continue;
        if (!out->own) {
            out->own = out->port.device->is_host && !out->stream->device->is_host
                           ? wf_buf_new_pinned(out->stream->device, out->port.bytes)
                           : wf_buf_new_on(out->port.device, out->port.bytes);
            if (!out->own)
                return wf_fail(err, WF_NOMEM, NULL, "%s has no %zu bytes left for output \"%s\"",
                               out->port.device->name, out->port.bytes, out->port.name);
        }
        wf_room_move(p, p->room_of[out->value->index], out->own->data);
    }
    return WF_OK;
}

static wf_status check_inputs(const wf_plan *p, wf_err *err)
{
    for (uint32_t i = 0; i < p->n_ins; i++)
        if (p->ins[i].used && p->ins[i].port.bytes && !p->tensors[p->ins[i].value->index].data)
            return wf_fail(err, WF_INVALID, "feed it", "input \"%s\" has no content",
                           p->ins[i].port.variable ? p->ins[i].port.variable : p->ins[i].port.name);
    return WF_OK;
}

/* An output that lies elsewhere goes to the place that is bound. */
static wf_status bring(const wf_plan *p, const wf_plan_out *out, wf_err *err)
{
    const void *from = p->tensors[out->value->index].data;

    if (out->direct || !out->bound || out->port.bytes == 0 || out->bound == from)
        return WF_OK;
    if (!out->port.device->is_host)
        return wf_stream_copy(out->stream, WF_COPY_WITHIN, out->bound, from, out->port.bytes, err);
    memcpy(out->bound, from, out->port.bytes);
    return WF_OK;
}

static wf_status announce(wf_plan *p, uint32_t first, uint32_t n, wf_ready_fn *on_ready, void *arg,
                          wf_err *err)
{
    for (uint32_t i = first; i < first + n; i++) {
        wf_plan_out *out = &p->outs[p->ready[i]];

        WF_TRY(bring(p, out, err));
        WF_TRY(wf_device_event_record(out->done, out->stream, err));
        if (on_ready)
            WF_TRY(on_ready(arg, p->ready[i], out->done, err));
    }
    return WF_OK;
}

wf_status wf_plan_prepare_run(wf_plan *p, const wf_step_key *key, wf_err *err)
{
    wf_assert(!p->measure_only);
    WF_TRY(check_inputs(p, err));
    WF_TRY(place_outputs(p, err));
    return wf_plan_draw(p, key, err);
}

wf_status wf_step_queue(wf_step *s, wf_err *err)
{
    wf_status rc = s->kernel->run(&s->run, s->in, s->out, err);

    if (rc != WF_OK)
        return wf_err_wrap(err, rc, "%s \"%s\"", s->run.node->op->name, s->run.node->name);
    return WF_OK;
}

wf_status wf_step_run(wf_plan *p, wf_step *s, wf_err *err)
{
    WF_TRY(wf_step_before(p, s, err));
    WF_TRY(s->brings ? wf_step_bring(p, s, err) : wf_step_queue(s, err));
    return wf_step_behind(p, s, err);
}

wf_status wf_plan_start(wf_plan *p, const wf_step_key *key, wf_ready_fn *on_ready, void *arg,
                        wf_err *err)
{
    p->taking = p->takes_ahead;
    p->takes_ahead = false;
    WF_TRY(wf_plan_prepare_run(p, key, err));
    if (p->n_ready_at_start)
        WF_TRY(announce(p, 0, p->n_ready_at_start, on_ready, arg, err));
    for (uint32_t i = 0, end, next = 0; i < p->n_steps; i = end) {
        wf_stretch *stretch = next < p->n_stretches ? &p->stretches[next] : NULL;

        end = i + 1;
        if (stretch && stretch->begin == i) {
            WF_TRY(wf_stretch_run(p, stretch, err));
            end = stretch->end;
            next++;
        } else {
            WF_TRY(wf_step_run(p, &p->steps[i], err));
        }
        for (const wf_step *s = &p->steps[i]; s < &p->steps[end]; s++)
            if (s->n_ready)
                WF_TRY(announce(p, s->first_ready, s->n_ready, on_ready, arg, err));
    }
    p->has_run = true;
    return WF_OK;
}

wf_status wf_plan_wait(wf_plan *p, wf_err *err)
{
    wf_status rc = WF_OK;

    for (uint32_t side = 1; side < p->n_sides; side++) { /* all of them, also after a failure */
        wf_status waited = wf_plan_side_wait(&p->sides[side], rc == WF_OK ? err : NULL);

        rc = rc == WF_OK ? waited : rc;
    }
    return rc;
}

wf_status wf_plan_run(wf_plan *p, const wf_step_key *key, wf_ready_fn *on_ready, void *arg,
                      wf_err *err)
{
    wf_status rc = wf_plan_start(p, key, on_ready, arg, err);
    wf_status waited = wf_plan_wait(p, rc == WF_OK ? err : NULL);

    return rc != WF_OK ? rc : waited;
}

static bool all_finite_f64(const double *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(x[i]))
            return false;
    return true;
}

wf_status wf_plan_after_event(wf_plan *p, wf_device_event *e, wf_err *err)
{
    for (uint32_t side = 0; side < p->n_sides; side++)
        if (p->sides[side].device == e->device)
            return wf_stream_after(p->sides[side].stream, e, err);
    return wf_fail(err, WF_USAGE, NULL, "a plan without %s was to wait for an event of it",
                   e->device->name);
}

typedef struct looking {
    const float *x;
    atomic_bool *bad;
} looking;

static void look_at_range(void *arg, int64_t begin, int64_t end)
{
    const looking *l = arg;

    if (!wf_all_finite(l->x + begin, (size_t)(end - begin)))
        atomic_store_explicit(l->bad, true, memory_order_relaxed);
}

/* By the threads that made it: much of it is in the caches of their processors. */
static bool all_finite_f32(const wf_plan *p, const float *x, int64_t n)
{
    enum { SHARE = 1 << 14 };
    atomic_bool bad = false;
    looking l = {x, &bad};

    wf_pool_for(p->pool, n, SHARE, look_at_range, &l);
    return !bad;
}

static bool is_finite(const wf_plan *p, const wf_port *port, const void *data)
{
    if (port->dtype == WF_F32)
        return all_finite_f32(p, data, port->elems);
    if (port->dtype == WF_F64)
        return all_finite_f64(data, port->elems);
    return true;
}

/* The content of an output, in memory of the host: *copy, for the caller, where it lies elsewhere.
 */
static wf_status on_host(const wf_plan *p, uint32_t i, wf_buf **copy, const void **data,
                         wf_err *err)
{
    const wf_plan_out *out = &p->outs[i];
    wf_stream *stream = out->stream;

    *data = wf_plan_output_data(p, i);
    if (out->port.device->is_host)
        return WF_OK;
    *copy = wf_buf_new(out->port.bytes);
    if (!*copy)
        return wf_fail_nomem(err, out->port.bytes);
    WF_TRY(wf_stream_copy(stream, WF_COPY_OUT, (*copy)->data, *data, out->port.bytes, err));
    *data = (*copy)->data;
    return wf_stream_wait(stream, err);
}

static wf_status check_output(const wf_plan *p, uint32_t i, wf_err *err)
{
    const wf_port *port = wf_plan_output(p, i);
    const void *data;
    wf_buf *copy = NULL;
    wf_status rc = on_host(p, i, &copy, &data, err);

    if (rc == WF_OK && !is_finite(p, port, data))
        rc = wf_fail(err, WF_NUMERIC, "lower the learning rate, or look at the data",
                     "%s \"%s\" holds a NaN or an infinity",
                     port->variable ? "the gradient of" : "output",
                     port->variable ? port->variable : port->name);
    wf_buf_unref(&copy);
    return rc;
}

wf_status wf_plan_check_finite(const wf_plan *p, uint32_t n, const uint32_t outputs[], wf_err *err)
{
    for (uint32_t i = 0; i < (outputs ? n : p->n_outs); i++)
        WF_TRY(check_output(p, outputs ? outputs[i] : i, err));
    return WF_OK;
}
