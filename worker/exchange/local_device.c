/* SPDX-License-Identifier: Apache-2.0 */
/* worker/exchange/local_device.c - variables that live on the worker's device: their weights, slots
 * and gradients are memory of it, and a step copies none of them.
 *
 * Updates run on a stream of their own. They are queued when the host knows that the step's
 * gradients are there and are numbers, so nothing has to be undone; an event behind them holds back
 * the next run that reads the weights (wf_exchange.written), and through it the next one that
 * writes the gradients. Gradients are clipped in front of them, but for those that leave the worker
 * (wf_exchange_sends): what comes back for an update is a mean of clipped ones.
 */
#include "common/base/pages.h"
#include "common/base/size.h"
#include "common/session/rule.h"
#include "common/tensor/tensor.h"
#include "worker/exchange/local_state.h"

#include <stdlib.h>
#include <string.h>

const wf_device *wf_local_home(const Weft__Start *start, const wf_device *device, uint32_t variable)
{
    return start->variables[variable]->rows_most ? &wf_cpu : device;
}

/* Weights; of what is trained or averaged also the gradient, and that of one of several batches;
 * and slots. */
static uint32_t count_arrays(const Weft__Start *start, const Weft__Variable *v, const wf_opt *opt)
{
    uint32_t several = wf_exchange_mirrors(start) ||
                       (!wf_exchange_sends(start) && opt->shared[WF_OPT_ACCUMULATION] > 1);

    if (v->kind == WF_KIND_TRAINABLE)
        return 2 + several + wf_opt_n_slots(opt);
    return v->kind == WF_KIND_STATISTIC ? 2 + several : 1;
}

/* A size that is none is told when the exchange is opened. Where replicas add up their gradients, a
 * batch has its own. Where the slots are divided it is the most: one worker has all of them. */
size_t wf_local_device_bytes(const Weft__Start *start, const wf_device *device)
{
    size_t all = 0, bytes;
    wf_opt opt;

    if (wf_rule_get(start->rule, start->options, start->n_options, &opt, NULL) != WF_OK)
        return 0;
    for (uint32_t i = 0; i < start->n_variables; i++) {
        const Weft__Variable *v = start->variables[i];
        int64_t n;

        if (wf_exchange_home(start, device, i)->is_host || v->n_dims > WF_MAX_RANK ||
            !wf_dims_elems((uint32_t)v->n_dims, v->dims, &n) ||
            !wf_mul_size((size_t)n, count_arrays(start, v, &opt) * sizeof(float), &bytes))
            continue;
        all = bytes <= SIZE_MAX - all ? all + bytes : SIZE_MAX;
    }
    return all;
}

static wf_status make_room(wf_local *l, wf_err *err)
{
    wf_local_device *on = &l->on;
    size_t n = l->conf.start->n_variables;

    on->stage = wf_pages_alloc(WF_LOCAL_STAGE * sizeof(float));
    on->segments = calloc(n, sizeof *on->segments);
    on->averages = calloc(n, sizeof *on->averages);
    return on->stage && on->segments && on->averages
               ? WF_OK
               : wf_fail_nomem(err, WF_LOCAL_STAGE * sizeof(float));
}

static bool is_clipped(const wf_local_variable *v)
{
    return !v->elsewhere && !v->device->is_host && wf_local_is_trainable(v);
}

static wf_clip_limits limits_of(const wf_local *l)
{
    const double global = l->opt.shared[WF_OPT_GLOBAL_CLIPNORM], norm = l->on.norm;
    wf_clip_limits limits = {.value = l->opt.shared[WF_OPT_CLIPVALUE],
                             .norm = l->opt.shared[WF_OPT_CLIPNORM]};

    if (norm > 0)
        limits.by = norm > global ? (float)(global / norm) : 0;
    else
        limits.global_norm = global;
    return limits;
}

/* Memory for norms: one number for all, the sum of squares of each, and a part for each gradient.
 */
static wf_status make_scratch(wf_local *l, wf_err *err)
{
    wf_local_device *on = &l->on;
    uint64_t at = 1 + l->n_variables, doubles = at;

    for (uint32_t i = 0; i < l->n_variables; i++)
        if (is_clipped(&l->variables[i]))
            doubles += wf_clip_scratch(l->variables[i].count);
    on->scratch = wf_buf_new_on(on->device, doubles * sizeof(double));
    if (!on->scratch)
        return wf_fail(err, WF_NOMEM, "lower the batch, or use a device with more memory",
                       "%s has no %zu bytes left for the norms of gradients", on->device->name,
                       (size_t)doubles * sizeof(double));
    for (uint32_t i = 0; i < l->n_variables; i++)
        if (is_clipped(&l->variables[i])) {
            on->clips[i].scratch = (double *)on->scratch->data + at;
            at += wf_clip_scratch(l->variables[i].count);
        }
    return WF_OK;
}

/* What clipping needs, if the job asks for it, and it is done here. */
static wf_status make_clips(wf_local *l, wf_err *err)
{
    const wf_clip_limits limits = limits_of(l);

    if (wf_exchange_sends(l->conf.start) ||
        (limits.value <= 0 && limits.norm <= 0 && limits.global_norm <= 0))
        return WF_OK;
    l->on.clips = calloc(l->n_variables, sizeof *l->on.clips);
    if (!l->on.clips)
        return wf_fail_nomem(err, l->n_variables * sizeof *l->on.clips);
    return limits.norm > 0 || limits.global_norm > 0 ? make_scratch(l, err) : WF_OK;
}

wf_status wf_local_device_open(wf_local *l, wf_err *err)
{
    const wf_exchange_conf *c = &l->conf;
    wf_local_device *on = &l->on;
    bool any = false;

    for (uint32_t i = 0; i < c->start->n_variables; i++)
        any |= !wf_exchange_home(c->start, c->place.device, i)->is_host;
    if (!any)
        return WF_OK;
    on->device = c->place.device;
    on->updates = c->place.updates;
    WF_TRY(make_room(l, err));
    WF_TRY(make_clips(l, err));
    WF_TRY(wf_stream_new(on->device, &on->stream, err));
    WF_TRY(wf_device_event_new(on->device, &on->written, err));
    l->base.written = on->written;
    return WF_OK;
}

void wf_local_device_close(wf_local *l)
{
    wf_stream_free(&l->on.stream);
    wf_device_event_free(&l->on.written);
    free(l->on.stage);
    free(l->on.segments);
    free(l->on.averages);
    free(l->on.clips);
    wf_buf_unref(&l->on.scratch);
}

wf_status wf_local_array(const wf_local_variable *v, const char *what, size_t bytes, wf_buf **out,
                         wf_err *err)
{
    *out = wf_buf_new_on(v->device, bytes);
    if (*out)
        return WF_OK;
    if (v->device->is_host)
        return wf_fail_nomem(err, bytes);
    return wf_fail(err, WF_NOMEM,
                   "lower the batch, use a device with more memory, or train with parameter "
                   "servers, which hold the variables",
                   "%s has no %zu bytes left for the %s of \"%.200s\"", v->device->name, bytes,
                   what, v->row->name);
}

wf_status wf_local_put(const wf_local *l, wf_buf *array, uint64_t at, uint64_t n, wf_err *err)
{
    WF_TRY(wf_stream_copy(l->on.stream, WF_COPY_IN, (float *)array->data + at, l->on.stage,
                          n * sizeof(float), err));
    return wf_stream_wait(l->on.stream, err);
}

wf_status wf_local_get(const wf_local *l, const wf_buf *array, uint64_t at, uint64_t n, wf_err *err)
{
    WF_TRY(wf_stream_copy(l->on.stream, WF_COPY_OUT, l->on.stage, (float *)array->data + at,
                          n * sizeof(float), err));
    return wf_stream_wait(l->on.stream, err);
}

wf_status wf_local_read(const wf_local *l, const wf_local_variable *v, const wf_buf *array,
                        uint64_t at, uint64_t n, float to[], wf_err *err)
{
    const float *from = v->device->is_host ? (const float *)array->data + at : l->on.stage;

    if (!v->device->is_host)
        WF_TRY(wf_local_get(l, array, at, n, err));
    memcpy(to, from, n * sizeof *to);
    return WF_OK;
}

wf_status wf_local_write(const wf_local *l, const wf_local_variable *v, wf_buf *array, uint64_t at,
                         uint64_t n, const void *from, wf_err *err)
{
    float *to = v->device->is_host ? (float *)array->data + at : l->on.stage;

    memcpy(to, from, n * sizeof *to);
    return v->device->is_host ? WF_OK : wf_local_put(l, array, at, n, err);
}

/* ---- updates ---- */

static wf_update_segment segment_of(const wf_local *l, const wf_local_variable *v)
{
    wf_update_segment s = {.n = v->count, .w = v->weights->data, .g = v->gradient->data};

    for (uint32_t i = 0; i < wf_local_n_slots(l, v); i++)
        s.slots[i] = v->slots[i]->data;
    return s;
}

/* Updates segments that have had the same number of them. */
static wf_status update(wf_local *l, uint64_t updates, size_t n, wf_err *err)
{
    double options[WF_MAX_OPTIONS];

    if (n == 0)
        return WF_OK;
    wf_opt_options(&l->opt, updates, options);
    return l->on.updates->update(l->on.stream, l->opt.rule, options, updates, n, l->on.segments,
                                 err);
}

/* Variables that were saved by several tasks may have had different numbers of updates. */
static wf_status update_trainable(wf_local *l, wf_err *err)
{
    uint64_t updates = 0;
    size_t n = 0;

    for (uint32_t i = 0; i < l->n_variables; i++) {
        const wf_local_variable *v = &l->variables[i];

        if (!v->pushed || v->device->is_host || !wf_local_is_trainable(v))
            continue;
        if (v->updates != updates) {
            WF_TRY(update(l, updates, n, err));
            n = 0;
        }
        updates = v->updates;
        l->on.segments[n++] = segment_of(l, v);
    }
    return update(l, updates, n, err);
}

static wf_status update_statistics(wf_local *l, wf_err *err)
{
    size_t n = 0;

    for (uint32_t i = 0; i < l->n_variables; i++) {
        const wf_local_variable *v = &l->variables[i];

        if (v->pushed && !v->device->is_host && !wf_local_is_trainable(v))
            l->on.averages[n++] = (wf_average_segment){.n = v->count,
                                                       .momentum = v->row->momentum,
                                                       .w = v->weights->data,
                                                       .now = v->gradient->data};
    }
    return n ? l->on.updates->average(l->on.stream, n, l->on.averages, err) : WF_OK;
}

wf_status wf_local_device_squares(wf_local *l, const bool of[], double out[], wf_err *err)
{
    wf_local_device *on = &l->on;
    double *squares;

    memset(out, 0, l->n_variables * sizeof out[0]);
    if (!on->scratch)
        return WF_OK;
    squares = (double *)on->scratch->data + 1;
    for (uint32_t i = 0; i < l->n_variables; i++) {
        const wf_local_variable *v = &l->variables[i];

        if (is_clipped(v)) {
            on->clips[i].n = of[i] ? v->count : 0;
            on->clips[i].g = v->gradient->data;
        }
    }
    WF_TRY(on->updates->squares(on->stream, squares, l->n_variables, on->clips, err));
    WF_TRY(
        wf_stream_copy(on->stream, WF_COPY_OUT, out, squares, l->n_variables * sizeof out[0], err));
    return wf_stream_wait(on->stream, err);
}

/* Variables that get no gradient in this step have no part in the norm of all. */
static wf_status clip(wf_local *l, wf_err *err)
{
    const wf_clip_limits limits = limits_of(l);
    wf_local_device *on = &l->on;

    if (!on->clips)
        return WF_OK;
    for (uint32_t i = 0; i < l->n_variables; i++) {
        const wf_local_variable *v = &l->variables[i];

        if (is_clipped(v)) {
            on->clips[i].n = v->pushed ? v->count : 0;
            on->clips[i].g = v->gradient->data;
        }
    }
    return on->updates->clip(on->stream, &limits, on->scratch ? on->scratch->data : NULL,
                             l->n_variables, on->clips, err);
}

static wf_status update_all(wf_local *l, wf_err *err)
{
    WF_TRY(clip(l, err));
    WF_TRY(update_trainable(l, err));
    WF_TRY(update_statistics(l, err));
    return wf_device_event_record(l->on.written, l->on.stream, err);
}

wf_status wf_local_device_update(wf_local *l, wf_err *err)
{
    return l->on.device ? wf_err_wrap(err, update_all(l, err), "updating variables") : WF_OK;
}
