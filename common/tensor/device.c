/* SPDX-License-Identifier: Apache-2.0 */
/* common/tensor/device.c - the calls that go to a device, and the cpu. */
#include "common/tensor/device.h"
#include "common/base/machine.h"
#include "common/base/pages.h"
#include "common/base/size.h"
#include "common/tensor/buf.h"

#include <stdlib.h>
#include <string.h>

const wf_device *const wf_devices[] = {
#define WF_DEVICE(name) &wf_##name,
#include "common/tensor/devices.def"
#undef WF_DEVICE
    NULL};

/* Whether a name is `kind` with a number behind it. */
static bool is_numbered(const char *name, const char *kind, int *index)
{
    enum { DIGITS_MOST = 3 };
    const char *digits = name + strlen(kind);
    size_t n;

    if (strncmp(name, kind, strlen(kind)) != 0)
        return false;
    n = strspn(digits, "0123456789");
    if (n == 0 || n > DIGITS_MOST || digits[n] || (digits[0] == '0' && n > 1))
        return false;
    *index = atoi(digits);
    return true;
}

bool wf_device_is_gpu(const char *name, int *index)
{
    return is_numbered(name, "cuda:", index);
}

bool wf_device_is_cpu(const char *name)
{
    int ignored;

    return strcmp(name, wf_cpu.name) == 0 || is_numbered(name, "cpu:", &ignored);
}

size_t wf_device_memory(const wf_device *d)
{
    return d->memory(d);
}

size_t wf_device_memory_left(const wf_device *d)
{
    return d->memory_left ? d->memory_left(d) : d->memory(d);
}

void *wf_device_alloc(const wf_device *d, size_t bytes)
{
    return d->alloc(d, bytes);
}

void wf_device_free(const wf_device *d, void *data)
{
    if (data)
        d->free(d, data);
}

wf_status wf_stream_new(const wf_device *d, wf_stream **out, wf_err *err)
{
    return d->stream_new(d, out, err);
}

wf_status wf_stream_beside(wf_stream *s, wf_stream **out, wf_err *err)
{
    const wf_device *d = s->device;

    return d->stream_beside ? d->stream_beside(s, out, err) : d->stream_new(d, out, err);
}

void wf_stream_free(wf_stream **s)
{
    if (*s)
        (*s)->device->stream_free(*s);
    *s = NULL;
}

wf_status wf_stream_wait(wf_stream *s, wf_err *err)
{
    return s->device->stream_wait(s, err);
}

wf_status wf_stream_after(wf_stream *s, wf_device_event *e, wf_err *err)
{
    wf_assert(s->device == e->device);
    return s->device->stream_after(s, e, err);
}

wf_status wf_stream_copy(wf_stream *s, wf_copy_way way, void *to, const void *from, size_t bytes,
                         wf_err *err)
{
    return bytes ? s->device->copy(s, way, to, from, bytes, err) : WF_OK;
}

wf_status wf_stream_fill(wf_stream *s, void *to, int byte, size_t bytes, wf_err *err)
{
    return bytes ? s->device->fill(s, to, byte, bytes, err) : WF_OK;
}

wf_status wf_device_read(const wf_device *d, void *to, const void *from, size_t bytes, wf_err *err)
{
    wf_stream *s = NULL;
    wf_status rc;

    WF_TRY(wf_stream_new(d, &s, err));
    rc = wf_stream_copy(s, WF_COPY_OUT, to, from, bytes, err);
    if (rc == WF_OK)
        rc = wf_stream_wait(s, err);
    wf_stream_free(&s);
    return rc;
}

wf_status wf_device_copy(wf_stream *to_stream, void *to, wf_stream *from_stream, const void *from,
                         size_t bytes, wf_err *err)
{
    void *host = wf_device_alloc(&wf_cpu, bytes);
    wf_status rc;

    if (!host)
        return wf_fail_nomem(err, bytes);
    rc = wf_stream_copy(from_stream, WF_COPY_OUT, host, from, bytes, err);
    if (rc == WF_OK)
        rc = wf_stream_wait(from_stream, err);
    if (rc == WF_OK)
        rc = wf_stream_copy(to_stream, WF_COPY_IN, to, host, bytes, err);
    if (rc == WF_OK)
        rc = wf_stream_wait(to_stream, err);
    wf_device_free(&wf_cpu, host);
    return rc;
}

wf_status wf_device_event_new(const wf_device *d, wf_device_event **out, wf_err *err)
{
    return d->event_new(d, out, err);
}

void wf_device_event_free(wf_device_event **e)
{
    if (*e)
        (*e)->device->event_free(*e);
    *e = NULL;
}

wf_status wf_device_event_record(wf_device_event *e, wf_stream *s, wf_err *err)
{
    wf_assert(s->device == e->device);
    return e->device->event_record(e, s, err);
}

wf_status wf_device_event_wait(wf_device_event *e, wf_err *err)
{
    return e->device->event_wait(e, err);
}

bool wf_device_event_done(wf_device_event *e)
{
    return e->device->event_done(e);
}

/* ---- the cpu ---- */

static wf_stream cpu_stream = {&wf_cpu};
static wf_device_event cpu_event = {&wf_cpu};

static size_t cpu_memory(const wf_device *d)
{
    (void)d;
    return wf_machine_memory();
}

static void *cpu_alloc(const wf_device *d, size_t bytes)
{
    size_t room = wf_align_up(WF_MAX(bytes, (size_t)1), WF_BUF_ALIGN);
    void *data = room < bytes ? NULL : wf_pages_alloc(room);

    (void)d;
    if (data)
        memset(data, 0, room);
    return data;
}

static void cpu_free(const wf_device *d, void *data)
{
    (void)d;
    free(data);
}

static wf_status cpu_stream_new(const wf_device *d, wf_stream **out, wf_err *err)
{
    (void)d, (void)err;
    *out = &cpu_stream;
    return WF_OK;
}

static void cpu_stream_free(wf_stream *s)
{
    (void)s;
}

static wf_status cpu_stream_wait(wf_stream *s, wf_err *err)
{
    (void)s, (void)err;
    return WF_OK;
}

static wf_status cpu_stream_after(wf_stream *s, wf_device_event *e, wf_err *err)
{
    (void)s, (void)e, (void)err;
    return WF_OK;
}

static wf_status cpu_copy(wf_stream *s, wf_copy_way way, void *to, const void *from, size_t bytes,
                          wf_err *err)
{
    (void)s, (void)way, (void)err;
    memcpy(to, from, bytes);
    return WF_OK;
}

static wf_status cpu_fill(wf_stream *s, void *to, int byte, size_t bytes, wf_err *err)
{
    (void)s, (void)err;
    memset(to, byte, bytes);
    return WF_OK;
}

static wf_status cpu_event_new(const wf_device *d, wf_device_event **out, wf_err *err)
{
    (void)d, (void)err;
    *out = &cpu_event;
    return WF_OK;
}

static void cpu_event_free(wf_device_event *e)
{
    (void)e;
}

static wf_status cpu_event_record(wf_device_event *e, wf_stream *s, wf_err *err)
{
    (void)e, (void)s, (void)err;
    return WF_OK;
}

static wf_status cpu_event_wait(wf_device_event *e, wf_err *err)
{
    (void)e, (void)err;
    return WF_OK;
}

static bool cpu_event_done(wf_device_event *e)
{
    (void)e;
    return true;
}

const wf_device wf_cpu = {
    .name = "cpu",
    .is_host = true,
    .memory = cpu_memory,
    .alloc = cpu_alloc,
    .free = cpu_free,
    .stream_new = cpu_stream_new,
    .stream_free = cpu_stream_free,
    .stream_wait = cpu_stream_wait,
    .stream_after = cpu_stream_after,
    .copy = cpu_copy,
    .fill = cpu_fill,
    .event_new = cpu_event_new,
    .event_free = cpu_event_free,
    .event_record = cpu_event_record,
    .event_wait = cpu_event_wait,
    .event_done = cpu_event_done,
};

bool wf_device_records(const wf_device *d)
{
    return d->record_begin != NULL;
}

wf_status wf_stream_record_begin(wf_stream *s, wf_err *err)
{
    return s->device->record_begin(s, err);
}

wf_status wf_stream_record_end(wf_stream *s, wf_device_graph **out, wf_err *err)
{
    return s->device->record_end(s, out, err);
}

wf_status wf_device_graph_launch(wf_device_graph *g, wf_stream *s, wf_err *err)
{
    return g->device->graph_launch(g, s, err);
}

void wf_device_graph_free(wf_device_graph **g)
{
    if (*g)
        (*g)->device->graph_free(*g);
    *g = NULL;
}
