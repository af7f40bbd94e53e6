/* SPDX-License-Identifier: Apache-2.0 */
/* worker/exchange/ring_device.c - variables that live on this worker's device. A plan reads their
 * weights there, and writes gradients to the host, where they are added up. Of a step the means go
 * to the device, once, and the update is made there. No weight is copied, but for those that others
 * have updated (ring_owners.c).
 *
 * Copies to the device run on the stream of updates, in front of them, from memory that is pinned:
 * the host queues them and goes on. They are behind nothing but the update before, and a plan's
 * next run is behind the event after the update (wf_exchange.written). Before the host writes again
 * what a copy reads, it waits for that event. By then this worker has made a step in between, whose
 * run waited for it; one that gives nothing has not.
 */
#include "common/base/size.h"
#include "worker/exchange/ring_state.h"

#include <string.h>

enum { PIECE = 1 << 14 /* elements of a mean that a thread makes at a time */ };

static wf_status no_room(const wf_ring *r, size_t bytes, const char *what, wf_err *err)
{
    return wf_fail(err, WF_NOMEM,
                   "lower the batch, use a device with more memory, or train with parameter "
                   "servers, which hold the variables",
                   "%s has no %zu bytes left for %s", r->local.on.device->name, bytes, what);
}

wf_status wf_ring_device_open(wf_ring *r, size_t bytes, wf_err *err)
{
    const wf_device *device = r->local.on.device;

    r->brought = wf_buf_new_on(device, bytes);
    if (!r->brought)
        return no_room(r, bytes, "the mean gradients of a step", err);
    r->means = wf_buf_new_pinned(device, bytes);
    if (!r->means)
        return wf_fail_nomem(err, bytes);
    if (!r->is_divided)
        return WF_OK;
    r->weights = wf_buf_new_pinned(device, bytes);
    return r->weights ? WF_OK : wf_fail_nomem(err, bytes);
}

wf_status wf_ring_device_plan(wf_ring *r, wf_err *err)
{
    if (!r->brought || r->n_members <= 2 || wf_ring_keeps(r) || r->own)
        return WF_OK;
    r->own = wf_buf_new_pinned(r->local.on.device, r->means->bytes);
    return r->own ? WF_OK : wf_fail_nomem(err, r->means->bytes);
}

void wf_ring_device_close(wf_ring *r)
{
    wf_buf_unref(&r->brought);
    wf_buf_unref(&r->own);
    wf_buf_unref(&r->weights);
}

wf_status wf_ring_device_wait(const wf_ring *r, wf_err *err)
{
    return r->brought ? wf_device_event_wait(r->local.on.written, err) : WF_OK;
}

/* ---- means ---- */

typedef struct making {
    const wf_ring *r;
    uint32_t bucket;
} making;

static void make_pieces(void *arg, int64_t begin, int64_t end)
{
    const making *m = arg;
    const wf_ring_bucket *b = &m->r->buckets[m->bucket];
    uint64_t at = (uint64_t)begin * PIECE;

    wf_ring_make_means(m->r, m->bucket, at, WF_MIN((uint64_t)end * PIECE, b->n) - at,
                       (float *)m->r->means->data + b->at + at);
}

static wf_status bring_bucket(const wf_ring *r, uint32_t bucket, const wf_buf *from, wf_err *err)
{
    const wf_ring_bucket *b = &r->buckets[bucket];

    return wf_stream_copy(r->local.on.stream, WF_COPY_IN, (float *)r->brought->data + b->at,
                          (const float *)from->data + b->at, b->n * sizeof(float), err);
}

/* A bucket is on its way while the next one's means are made. */
wf_status wf_ring_bring_means(wf_ring *r, wf_err *err)
{
    const wf_buf *alone = r->n_members == 1 ? r->sums[wf_ring_slot(r->clock + 1)] : NULL;

    if (!alone)
        WF_TRY(wf_ring_device_wait(r, err));
    for (uint32_t b = 0; b < r->n_buckets; b++) {
        making m = {r, b};

        if (!alone)
            wf_pool_for(r->local.conf.pool, (int64_t)((r->buckets[b].n + PIECE - 1) / PIECE), 1,
                        make_pieces, &m);
        WF_TRY(bring_bucket(r, b, alone ? alone : r->means, err));
    }
    return WF_OK;
}

/* ---- weights of shares ---- */

static float *room_of(const wf_ring *r, uint32_t variable)
{
    return (float *)r->weights->data + r->variables[variable].at;
}

wf_status wf_ring_fetch_share(const wf_ring *r, wf_err *err)
{
    const wf_local *l = &r->local;
    bool any = false;

    for (uint32_t i = 0; i < l->n_variables; i++) {
        const wf_local_variable *v = &l->variables[i];

        if (!r->updated[i] || !v->has_slots || v->device->is_host || v->count == 0)
            continue;
        WF_TRY(wf_stream_copy(l->on.stream, WF_COPY_OUT, room_of(r, i), v->weights->data,
                              v->count * sizeof(float), err));
        any = true;
    }
    return any ? wf_stream_wait(l->on.stream, err) : WF_OK;
}

wf_status wf_ring_bring_weights(const wf_ring *r, uint32_t variable, uint64_t at,
                                const uint8_t *bytes, uint64_t n, wf_err *err)
{
    const wf_local_variable *v = &r->local.variables[variable];
    float *room = room_of(r, variable) + at;

    if (r->weights_in == 0) /* of this step: those of the last one were read from here (D2) */
        WF_TRY(wf_ring_device_wait(r, err));
    memcpy(room, bytes, n * sizeof(float));
    WF_TRY(wf_stream_copy(r->local.on.stream, WF_COPY_IN, (float *)v->weights->data + at, room,
                          n * sizeof(float), err));
    return wf_device_event_record(r->local.on.written, r->local.on.stream, err);
}
