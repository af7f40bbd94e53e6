/* SPDX-License-Identifier: Apache-2.0 */
/* worker/apart.c */
#include "worker/apart.h"
#include "common/base/cc.h"
#include "common/tensor/buf.h"

#include <stdlib.h>

struct wf_apart {
    const wf_device *device;
    const wf_device_updates *on;
    wf_stream *stream;
    int32_t *bad;                /* [most] of the device */
    wf_buf *seen;                /* int32 [most]: their copy on the host */
    wf_finite_segment *segments; /* [n] of room most, as their outputs */
    uint32_t *outputs;
    wf_sum_segment *sums; /* [n_sums] of room most */
    size_t n, n_sums, most;
    wf_device_event *last; /* behind the last gradient */
};

static wf_status init(wf_apart *a, wf_err *err)
{
    a->bad = wf_device_alloc(a->device, a->most * sizeof *a->bad);
    if (!a->bad)
        return wf_fail(err, WF_NOMEM, "lower the batch, or use a device with more memory",
                       "%s has no %zu bytes left", a->device->name, a->most * sizeof *a->bad);
    a->seen = wf_buf_new_pinned(a->device, a->most * sizeof *a->bad);
    a->segments = calloc(a->most + 1, sizeof *a->segments);
    a->outputs = calloc(a->most + 1, sizeof *a->outputs);
    a->sums = calloc(a->most + 1, sizeof *a->sums);
    if (!a->seen || !a->segments || !a->outputs || !a->sums)
        return wf_fail_nomem(err, a->most * sizeof *a->segments);
    return wf_stream_new(a->device, &a->stream, err);
}

wf_status wf_apart_new(const wf_device *device, const wf_device_updates *updates, size_t most,
                       wf_apart **out, wf_err *err)
{
    wf_apart *a = calloc(1, sizeof *a);
    wf_status rc;

    if (!a)
        return wf_fail_nomem(err, sizeof *a);
    a->device = device;
    a->on = updates;
    a->most = most;
    *out = a;
    rc = init(a, err);
    if (rc != WF_OK)
        wf_apart_free(out);
    return rc;
}

void wf_apart_free(wf_apart **a)
{
    wf_apart *it = *a;

    *a = NULL;
    if (!it)
        return;
    wf_stream_free(&it->stream);
    wf_device_free(it->device, it->bad);
    wf_buf_unref(&it->seen);
    free(it->segments);
    free(it->outputs);
    free(it->sums);
    free(it);
}

void wf_apart_begin(wf_apart *a)
{
    a->n = a->n_sums = 0;
    a->last = NULL;
}

void wf_apart_look(wf_apart *a, uint32_t i, const float *data, uint64_t count,
                   wf_device_event *done)
{
    wf_assert(a->n < a->most);
    a->outputs[a->n] = i;
    a->segments[a->n] = (wf_finite_segment){count, data, a->bad + a->n};
    a->n++;
    a->last = done;
}

void wf_apart_sum(wf_apart *a, float *to, const float *from, uint64_t count, wf_device_event *done)
{
    wf_assert(a->n_sums < a->most);
    a->sums[a->n_sums++] = (wf_sum_segment){count, to, from};
    a->last = done;
}

wf_status wf_apart_clear(wf_apart *a, float *sum, uint64_t count, wf_device_event *after,
                         wf_err *err)
{
    WF_TRY(wf_stream_after(a->stream, after, err));
    return wf_stream_fill(a->stream, sum, 0, count * sizeof *sum, err);
}

static wf_status look(wf_apart *a, wf_err *err)
{
    size_t bytes = a->n * sizeof *a->bad;

    if (a->n == 0)
        return WF_OK;
    WF_TRY(wf_stream_fill(a->stream, a->bad, 0, bytes, err));
    WF_TRY(a->on->finite(a->stream, a->n, a->segments, err));
    return wf_stream_copy(a->stream, WF_COPY_OUT, a->seen->data, a->bad, bytes, err);
}

wf_status wf_apart_start(wf_apart *a, float by, bool first, wf_err *err)
{
    if (a->n + a->n_sums == 0)
        return WF_OK;
    if (a->last)
        WF_TRY(wf_stream_after(a->stream, a->last, err));
    if (a->n_sums > 0)
        WF_TRY(a->on->sum(a->stream, by, first, a->n_sums, a->sums, err));
    return look(a, err);
}

wf_status wf_apart_wait(wf_apart *a, int64_t *bad, wf_err *err)
{
    const int32_t *seen = a->seen->data;

    *bad = -1;
    WF_TRY(wf_stream_wait(a->stream, err));
    for (size_t i = 0; i < a->n && *bad < 0; i++)
        if (seen[i])
            *bad = a->outputs[i];
    return WF_OK;
}
