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

static wf_status init(wf_apart *f, wf_err *err)
{
    f->bad = wf_device_alloc(f->device, f->most * sizeof *f->bad);
    if (!f->bad)
        return wf_fail(err, WF_NOMEM, "lower the batch, or use a device with more memory",
                       "%s has no %zu bytes left", f->device->name, f->most * sizeof *f->bad);
    f->seen = wf_buf_new_pinned(f->device, f->most * sizeof *f->bad);
    f->segments = calloc(f->most + 1, sizeof *f->segments);
    f->outputs = calloc(f->most + 1, sizeof *f->outputs);
    f->sums = calloc(f->most + 1, sizeof *f->sums);
    if (!f->seen || !f->segments || !f->outputs || !f->sums)
        return wf_fail_nomem(err, f->most * sizeof *f->segments);
    return wf_stream_new(f->device, &f->stream, err);
}

wf_status wf_apart_new(const wf_device *device, const wf_device_updates *updates, size_t most,
                       wf_apart **out, wf_err *err)
{
    wf_apart *f = calloc(1, sizeof *f);
    wf_status rc;

    if (!f)
        return wf_fail_nomem(err, sizeof *f);
    f->device = device;
    f->on = updates;
    f->most = most;
    *out = f;
    rc = init(f, err);
    if (rc != WF_OK)
        wf_apart_free(out);
    return rc;
}

void wf_apart_free(wf_apart **f)
{
    wf_apart *it = *f;

    *f = NULL;
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

void wf_apart_begin(wf_apart *f)
{
    f->n = f->n_sums = 0;
}

void wf_apart_look(wf_apart *f, uint32_t i, const float *data, uint64_t count,
                   wf_device_event *done)
{
    wf_assert(f->n < f->most);
    f->outputs[f->n] = i;
    f->segments[f->n] = (wf_finite_segment){count, data, f->bad + f->n};
    f->n++;
    f->last = done;
}

void wf_apart_sum(wf_apart *f, float *to, const float *from, uint64_t count, wf_device_event *done)
{
    wf_assert(f->n_sums < f->most);
    f->sums[f->n_sums++] = (wf_sum_segment){count, to, from};
    f->last = done;
}

static wf_status look(wf_apart *f, wf_err *err)
{
    size_t bytes = f->n * sizeof *f->bad;

    if (f->n == 0)
        return WF_OK;
    WF_TRY(wf_stream_fill(f->stream, f->bad, 0, bytes, err));
    WF_TRY(f->on->finite(f->stream, f->n, f->segments, err));
    return wf_stream_copy(f->stream, WF_COPY_OUT, f->seen->data, f->bad, bytes, err);
}

wf_status wf_apart_start(wf_apart *f, float by, bool first, wf_err *err)
{
    if (f->n + f->n_sums == 0)
        return WF_OK;
    WF_TRY(wf_stream_after(f->stream, f->last, err));
    if (f->n_sums > 0)
        WF_TRY(f->on->sum(f->stream, by, first, f->n_sums, f->sums, err));
    return look(f, err);
}

wf_status wf_apart_wait(wf_apart *f, int64_t *bad, wf_err *err)
{
    const int32_t *seen = f->seen->data;

    *bad = -1;
    WF_TRY(wf_stream_wait(f->stream, err));
    for (size_t i = 0; i < f->n && *bad < 0; i++)
        if (seen[i])
            *bad = f->outputs[i];
    return WF_OK;
}
