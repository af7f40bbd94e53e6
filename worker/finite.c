/* SPDX-License-Identifier: Apache-2.0 */
/* worker/finite.c */
#include "worker/finite.h"
#include "common/base/cc.h"
#include "common/tensor/buf.h"

#include <stdlib.h>

struct wf_finite {
    const wf_device *device;
    wf_finite_fn *look;
    wf_stream *stream;
    int32_t *bad;                /* [most] of the device */
    wf_buf *seen;                /* int32 [most]: their copy on the host */
    wf_finite_segment *segments; /* [n] of room most, as their outputs */
    uint32_t *outputs;
    size_t n, most;
    wf_device_event *last; /* behind the last gradient */
};

static wf_status init(wf_finite *f, wf_err *err)
{
    f->bad = wf_device_alloc(f->device, f->most * sizeof *f->bad);
    if (!f->bad)
        return wf_fail(err, WF_NOMEM, "lower the batch, or use a device with more memory",
                       "%s has no %zu bytes left", f->device->name, f->most * sizeof *f->bad);
    f->seen = wf_buf_new_pinned(f->device, f->most * sizeof *f->bad);
    f->segments = calloc(f->most + 1, sizeof *f->segments);
    f->outputs = calloc(f->most + 1, sizeof *f->outputs);
    if (!f->seen || !f->segments || !f->outputs)
        return wf_fail_nomem(err, f->most * sizeof *f->segments);
    return wf_stream_new(f->device, &f->stream, err);
}

wf_status wf_finite_new(const wf_device *device, const wf_device_updates *updates, size_t most,
                        wf_finite **out, wf_err *err)
{
    wf_finite *f = calloc(1, sizeof *f);
    wf_status rc;

    if (!f)
        return wf_fail_nomem(err, sizeof *f);
    f->device = device;
    f->look = updates->finite;
    f->most = most;
    *out = f;
    rc = init(f, err);
    if (rc != WF_OK)
        wf_finite_free(out);
    return rc;
}

void wf_finite_free(wf_finite **f)
{
    wf_finite *it = *f;

    *f = NULL;
    if (!it)
        return;
    wf_stream_free(&it->stream);
    wf_device_free(it->device, it->bad);
    wf_buf_unref(&it->seen);
    free(it->segments);
    free(it->outputs);
    free(it);
}

void wf_finite_begin(wf_finite *f)
{
    f->n = 0;
}

void wf_finite_add(wf_finite *f, uint32_t i, const float *data, uint64_t count,
                   wf_device_event *done)
{
    wf_assert(f->n < f->most);
    f->outputs[f->n] = i;
    f->segments[f->n] = (wf_finite_segment){count, data, f->bad + f->n};
    f->n++;
    f->last = done;
}

wf_status wf_finite_start(wf_finite *f, wf_err *err)
{
    size_t bytes = f->n * sizeof *f->bad;

    if (f->n == 0)
        return WF_OK;
    WF_TRY(wf_stream_after(f->stream, f->last, err));
    WF_TRY(wf_stream_fill(f->stream, f->bad, 0, bytes, err));
    WF_TRY(f->look(f->stream, f->n, f->segments, err));
    return wf_stream_copy(f->stream, WF_COPY_OUT, f->seen->data, f->bad, bytes, err);
}

wf_status wf_finite_wait(wf_finite *f, int64_t *bad, wf_err *err)
{
    const int32_t *seen = f->seen->data;

    *bad = -1;
    WF_TRY(wf_stream_wait(f->stream, err));
    for (size_t i = 0; i < f->n && *bad < 0; i++)
        if (seen[i])
            *bad = f->outputs[i];
    return WF_OK;
}
