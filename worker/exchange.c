/* SPDX-License-Identifier: Apache-2.0 */
/* worker/exchange.c */
#include "worker/exchange.h"
#include "common/base/size.h"
#include "common/wire/control.h"

#include <stdlib.h>
#include <string.h>

static const wf_exchange_kind *const kinds[] = {
    &wf_exchange_divided, &wf_exchange_hybrid, &wf_exchange_local, &wf_exchange_mirrored,
    &wf_exchange_none,    &wf_exchange_ps,     &wf_exchange_ring};

static const wf_exchange_kind *find_kind(const Weft__Start *start)
{
    for (size_t i = 0; i < WF_COUNT(kinds); i++)
        if (strcmp(kinds[i]->name, start->strategy) == 0)
            return kinds[i];
    return NULL;
}

wf_status wf_exchange_open(const wf_exchange_conf *conf, wf_exchange **out, wf_err *err)
{
    const wf_exchange_kind *kind = find_kind(conf->start);

    if (!kind)
        return wf_fail(err, WF_PROTO, "let all tasks run one release of weft",
                       "a start with the strategy \"%.80s\", which this worker does not know",
                       conf->start->strategy);
    return kind->open(conf, out, err);
}

const wf_device *wf_exchange_home(const Weft__Start *start, const wf_device *device,
                                  uint32_t variable)
{
    const wf_exchange_kind *kind = find_kind(start);

    return device && kind && kind->home ? kind->home(start, device, variable) : &wf_cpu;
}

bool wf_exchange_mirrors(const Weft__Start *start)
{
    const wf_exchange_kind *kind = find_kind(start);

    return kind && kind->mirrors;
}

bool wf_exchange_sends(const Weft__Start *start)
{
    const wf_exchange_kind *kind = find_kind(start);

    return kind && kind->sends;
}

bool wf_exchange_comes_ahead(const Weft__Start *start)
{
    const wf_exchange_kind *kind = find_kind(start);

    return kind && kind->ahead && start->pipeline > 0 && !start->bounded && !start->together;
}

size_t wf_exchange_device_bytes(const Weft__Start *start, const wf_device *device)
{
    const wf_exchange_kind *kind = find_kind(start);

    return device && kind && kind->device_bytes ? kind->device_bytes(start, device) : 0;
}

void wf_exchange_free(wf_exchange **x)
{
    if (!*x)
        return;
    wf_exchange_save_end(*x);
    (*x)->ops->free(*x);
    *x = NULL;
}

wf_status wf_exchange_on_view(wf_exchange *x, const Weft__View *view, uint32_t number, wf_err *err)
{
    return x->ops->on_view ? x->ops->on_view(x, view, number, err) : WF_OK;
}

wf_status wf_exchange_on_up(wf_exchange *x, const wf_peer *peer, wf_err *err)
{
    return x->ops->on_up ? x->ops->on_up(x, peer, err) : WF_OK;
}

void wf_exchange_on_down(wf_exchange *x, const wf_peer *peer)
{
    if (x->ops->on_down)
        x->ops->on_down(x, peer);
}

wf_status wf_exchange_on_message(wf_exchange *x, const wf_peer *from, const wf_msg *m,
                                 int64_t now_ns, wf_err *err)
{
    return x->ops->on_message ? x->ops->on_message(x, from, m, now_ns, err) : WF_OK;
}

wf_status wf_exchange_retry(wf_exchange *x, int64_t now_ns, wf_err *err)
{
    return x->ops->retry ? x->ops->retry(x, now_ns, err) : WF_OK;
}

wf_status wf_exchange_name_rows(wf_exchange *x, int set, uint32_t variable, const uint64_t ids[],
                                uint64_t n, wf_err *err)
{
    if (!x->ops->name_rows)
        return wf_fail(err, WF_UNSUPPORTED, NULL, "this exchange has no tables");
    return x->ops->name_rows(x, set, variable, ids, n, err);
}

wf_status wf_exchange_want(wf_exchange *x, int set, uint32_t step, wf_err *err)
{
    x->set_step[set] = step;
    return x->ops->want(x, set, step, err);
}

void wf_exchange_drop(wf_exchange *x, int set)
{
    x->set_step[set] = 0;
}

bool wf_exchange_ready(const wf_exchange *x, int set)
{
    return x->set_step[set] && x->ops->ready(x, set);
}

wf_exchange *wf_exchange_of_replica(wf_exchange *x, uint32_t replica)
{
    return x->ops->of_replica ? x->ops->of_replica(x, replica) : x;
}

const float *wf_exchange_weights(const wf_exchange *x, int set, uint32_t variable)
{
    return x->ops->weights(x, set, variable);
}

void wf_exchange_begin_step(wf_exchange *x, uint32_t step, uint32_t records)
{
    if (x->ops->begin_step)
        x->ops->begin_step(x, step, records);
}

float *wf_exchange_gradient(wf_exchange *x, uint32_t step, uint32_t variable)
{
    return x->ops->gradient(x, step, variable);
}

wf_status wf_exchange_push(wf_exchange *x, uint32_t step, uint32_t variable, wf_err *err)
{
    return x->ops->push(x, step, variable, err);
}

wf_status wf_exchange_squares(wf_exchange *x, const bool of[], double out[], wf_err *err)
{
    return x->ops->squares ? x->ops->squares(x, of, out, err) : WF_OK;
}

void wf_exchange_clip_by(wf_exchange *x, double norm)
{
    if (x->ops->clip_by)
        x->ops->clip_by(x, norm);
}

wf_status wf_exchange_drop_step(wf_exchange *x, uint32_t step, wf_err *err)
{
    return x->ops->drop_step(x, step, err);
}

wf_status wf_exchange_end_step(wf_exchange *x, uint32_t step, wf_err *err)
{
    return x->ops->end_step(x, step, err);
}

wf_status wf_exchange_leave(wf_exchange *x, wf_err *err)
{
    return x->ops->leave ? x->ops->leave(x, err) : WF_OK;
}

uint32_t wf_exchange_in_flight(const wf_exchange *x)
{
    return x->begun - x->acked;
}

void wf_exchange_barrier(wf_exchange *x, uint32_t step)
{
    x->base = step;
    for (int set = 0; set < WF_EVAL_SET; set++)
        wf_exchange_drop(x, set);
}

wf_status wf_exchange_tune(wf_exchange *x, double learning_rate, wf_err *err)
{
    return x->ops->tune ? x->ops->tune(x, learning_rate, err) : WF_OK;
}

wf_status wf_exchange_save_begin(wf_exchange *x, uint32_t cut, const char *folder, wf_err *err)
{
    wf_exchange_save *s = &x->saving;

    wf_exchange_save_end(x);
    s->n = x->ops->count_shards(x);
    s->folder = strdup(folder);
    s->shards = calloc(s->n + 1, sizeof *s->shards);
    if (!s->folder || !s->shards) {
        wf_exchange_save_end(x);
        return wf_fail_nomem(err, s->n * sizeof *s->shards);
    }
    s->cut = cut;
    return x->ops->save(x, err);
}

void wf_exchange_save_end(wf_exchange *x)
{
    wf_exchange_save *s = &x->saving;

    for (uint32_t i = 0; s->shards && i < s->n; i++)
        wf_control_free(&s->shards[i].result);
    free(s->shards);
    free(s->folder);
    *s = (wf_exchange_save){0};
}

bool wf_exchange_copied(const wf_exchange *x)
{
    for (uint32_t i = 0; i < x->saving.n; i++)
        if (!x->saving.shards[i].copied)
            return false;
    return x->saving.cut > 0;
}

bool wf_exchange_saved(const wf_exchange *x)
{
    for (uint32_t i = 0; i < x->saving.n; i++)
        if (!x->saving.shards[i].result)
            return false;
    return x->saving.cut > 0;
}

uint32_t wf_exchange_frozen_left(const wf_exchange *x)
{
    return x->ops->frozen_left ? x->ops->frozen_left(x) : 0;
}

void wf_exchange_name_late(const wf_exchange *x, wf_exchange_wait wait, uint32_t of,
                           wf_waiting *out)
{
    if (x->ops->name_late)
        x->ops->name_late(x, wait, of, out);
}
