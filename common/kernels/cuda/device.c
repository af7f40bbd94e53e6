/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/device.c */
#include "common/kernels/cuda/device.h"
#include "common/kernels/cuda/dnn/way.h"
#include "common/kernels/cuda/rows.h"

#include <stdio.h>
#include <stdlib.h>

enum { LEAST_MAJOR = 8 };

typedef struct cuda_event {
    wf_device_event base;
    wf_cuda_event *of;
    const wf_cuda_fault *fault; /* of the stream that it was recorded on; NULL: on none */
} cuda_event;

static const wf_cuda_gpu *gpu_of(const wf_device *d)
{
    return wf_cuda_gpu_of(d);
}

wf_cuda_stream *wf_cuda_stream_of(const wf_stream *s)
{
    return ((const wf_cuda_lane *)s)->of;
}

wf_cuda_fault *wf_cuda_fault_of(const wf_stream *s)
{
    return ((const wf_cuda_lane *)s)->fault;
}

wf_status wf_cuda_fail(const wf_cuda_gpu *g, int error, wf_err *err)
{
    if (error == WF_CUDA_NO_MEMORY)
        return wf_fail(err, WF_NOMEM, "lower the batch, or use a GPU with more memory",
                       "%s has no memory left", g->name);
    return wf_fail(err, WF_BROKEN, "look for messages of the driver, with dmesg and nvidia-smi",
                   "%s: %s (CUDA error %d)", g->name, g->calls->error_string(error), error);
}

/* What a call gave, by the thread that is to use this GPU. */
#define CALL(g, call, err)                                                                         \
    do {                                                                                           \
        int error_ = (g)->calls->use((g)->index);                                                  \
                                                                                                   \
        if (error_ == 0)                                                                           \
            error_ = (g)->calls->call;                                                             \
        if (error_ != 0)                                                                           \
            return wf_cuda_fail((g), error_, (err));                                               \
    } while (0)

/* ---- memory ---- */

static size_t cuda_memory(const wf_device *d)
{
    return gpu_of(d)->has.memory;
}

static size_t cuda_memory_left(const wf_device *d)
{
    const wf_cuda_gpu *g = gpu_of(d);
    size_t left, all;

    if (g->calls->use(g->index) != 0 || g->calls->memory_left(&left, &all) != 0)
        return 0;
    return left;
}

static void *cuda_alloc(const wf_device *d, size_t bytes)
{
    const wf_cuda_gpu *g = gpu_of(d);
    void *data = NULL;

    if (g->calls->use(g->index) != 0 || g->calls->alloc(&data, bytes ? bytes : 1) != 0)
        return NULL;
    return data;
}

/* Only a failure that the device had before keeps memory from being given back; it goes with the
 * process then. */
static void cuda_free(const wf_device *d, void *data)
{
    const wf_cuda_gpu *g = gpu_of(d);

    if (g->calls->use(g->index) == 0)
        (void)g->calls->free(data);
}

static void *cuda_host_alloc(const wf_device *d, size_t bytes)
{
    const wf_cuda_gpu *g = gpu_of(d);
    void *data = NULL;

    if (g->calls->use(g->index) != 0 || g->calls->alloc_seen(&data, bytes ? bytes : 1) != 0)
        return NULL;
    return data;
}

static void cuda_host_free(const wf_device *d, void *data)
{
    const wf_cuda_gpu *g = gpu_of(d);

    if (g->calls->use(g->index) == 0)
        (void)g->calls->free_seen(data);
}

static bool cuda_host_pin(const wf_device *d, void *at, size_t bytes)
{
    const wf_cuda_gpu *g = gpu_of(d);

    return g->calls->use(g->index) == 0 && g->calls->pin(at, bytes) == 0;
}

static void cuda_host_unpin(const wf_device *d, void *at)
{
    const wf_cuda_gpu *g = gpu_of(d);

    if (g->calls->use(g->index) == 0)
        (void)g->calls->unpin(at);
}

/* ---- streams ---- */

/* The stream is done, or has failed. */
static void close_stream(wf_cuda_lane *s)
{
    const wf_cuda_gpu *g = gpu_of(s->base.device);

    if (g->calls->use(g->index) == 0) {
        if (s->of)
            (void)g->calls->stream_free(s->of);
        if (s->fault && !s->lent)
            (void)g->calls->free_seen(s->fault);
    }
    free(s);
}

/* With a fault of its own where `fault` is NULL. */
static wf_status open_stream(const wf_device *d, wf_cuda_fault *fault, wf_stream **out, wf_err *err)
{
    const wf_cuda_gpu *g = gpu_of(d);
    wf_cuda_lane *s = calloc(1, sizeof *s);
    int error;

    if (!s)
        return wf_fail_nomem(err, sizeof *s);
    s->base.device = d;
    s->fault = fault;
    s->lent = fault;
    error = g->calls->use(g->index);
    if (error == 0)
        error = g->calls->stream_new(&s->of);
    if (error == 0 && !s->lent)
        error = g->calls->alloc_seen((void **)&s->fault, sizeof *s->fault);
    if (error != 0) {
        close_stream(s);
        return wf_cuda_fail(g, error, err);
    }
    if (!s->lent)
        *s->fault = (wf_cuda_fault){0};
    *out = &s->base;
    return WF_OK;
}

static wf_status cuda_stream_new(const wf_device *d, wf_stream **out, wf_err *err)
{
    return open_stream(d, NULL, out, err);
}

static wf_status cuda_stream_beside(wf_stream *s, wf_stream **out, wf_err *err)
{
    return open_stream(s->device, wf_cuda_fault_of(s), out, err);
}

static wf_status cuda_stream_wait(wf_stream *s, wf_err *err)
{
    const wf_cuda_gpu *g = gpu_of(s->device);
    wf_cuda_fault *fault = wf_cuda_fault_of(s);
    wf_status rc = WF_OK;

    CALL(g, stream_wait(wf_cuda_stream_of(s)), err);
    if (fault->taken) {
        rc = wf_cuda_fault_say(fault, err);
        *fault = (wf_cuda_fault){0}; /* a step that is made anew may be right */
    }
    return rc;
}

/* A fault is not said: its node may be gone. */
static void cuda_stream_free(wf_stream *s)
{
    const wf_cuda_gpu *g = gpu_of(s->device);

    if (g->calls->use(g->index) == 0)
        (void)g->calls->stream_wait(wf_cuda_stream_of(s));
    close_stream((wf_cuda_lane *)s);
}

static wf_status cuda_stream_after(wf_stream *s, wf_device_event *e, wf_err *err)
{
    const wf_cuda_gpu *g = gpu_of(s->device);

    CALL(g, stream_after(wf_cuda_stream_of(s), ((cuda_event *)e)->of), err);
    return WF_OK;
}

static wf_status cuda_copy(wf_stream *s, wf_copy_way way, void *to, const void *from, size_t bytes,
                           wf_err *err)
{
    static const wf_cuda_way ways[] = {[WF_COPY_IN] = WF_CUDA_TO_DEVICE,
                                       [WF_COPY_OUT] = WF_CUDA_TO_HOST,
                                       [WF_COPY_WITHIN] = WF_CUDA_WITHIN};
    const wf_cuda_gpu *g = gpu_of(s->device);

    CALL(g, copy(to, from, bytes, ways[way], wf_cuda_stream_of(s)), err);
    return WF_OK;
}

static wf_status cuda_fill(wf_stream *s, void *to, int byte, size_t bytes, wf_err *err)
{
    const wf_cuda_gpu *g = gpu_of(s->device);

    CALL(g, fill(to, byte, bytes, wf_cuda_stream_of(s)), err);
    return WF_OK;
}

/* ---- events ---- */

static wf_status cuda_event_new(const wf_device *d, wf_device_event **out, wf_err *err)
{
    const wf_cuda_gpu *g = gpu_of(d);
    cuda_event *e = calloc(1, sizeof *e);
    int error;

    if (!e)
        return wf_fail_nomem(err, sizeof *e);
    e->base.device = d;
    error = g->calls->use(g->index);
    if (error == 0)
        error = g->calls->event_new(&e->of);
    if (error != 0) {
        free(e);
        return wf_cuda_fail(g, error, err);
    }
    *out = &e->base;
    return WF_OK;
}

static void cuda_event_free(wf_device_event *e)
{
    const wf_cuda_gpu *g = gpu_of(e->device);
    cuda_event *ce = (cuda_event *)e;

    if (g->calls->use(g->index) == 0)
        (void)g->calls->event_free(ce->of);
    free(ce);
}

static wf_status cuda_event_record(wf_device_event *e, wf_stream *s, wf_err *err)
{
    const wf_cuda_gpu *g = gpu_of(e->device);

    ((cuda_event *)e)->fault = wf_cuda_fault_of(s);
    CALL(g, event_record(((cuda_event *)e)->of, wf_cuda_stream_of(s)), err);
    return WF_OK;
}

static wf_status cuda_event_wait(wf_device_event *e, wf_err *err)
{
    const wf_cuda_gpu *g = gpu_of(e->device);
    const wf_cuda_fault *fault = ((cuda_event *)e)->fault;

    CALL(g, event_wait(((cuda_event *)e)->of), err);
    return fault && fault->taken ? wf_cuda_fault_say(fault, err) : WF_OK;
}

/* After a failure nothing is waited for any more: a wait says what failed. */
static bool cuda_event_done(wf_device_event *e)
{
    const wf_cuda_gpu *g = gpu_of(e->device);

    return g->calls->use(g->index) != 0 ||
           g->calls->event_query(((cuda_event *)e)->of) != WF_CUDA_NOT_READY;
}

/* ---- graphs ---- */

typedef struct cuda_graph {
    wf_device_graph base;
    wf_cuda_replayed *of;
} cuda_graph;

static wf_status cuda_record_begin(wf_stream *s, wf_err *err)
{
    const wf_cuda_gpu *g = gpu_of(s->device);

    CALL(g, capture_begin(wf_cuda_stream_of(s)), err);
    return WF_OK;
}

/* Memory is had first: a capture that has begun must be ended, whatever else fails. */
static wf_status cuda_record_end(wf_stream *s, wf_device_graph **out, wf_err *err)
{
    const wf_cuda_gpu *g = gpu_of(s->device);
    cuda_graph *made = calloc(1, sizeof *made);
    wf_cuda_graph *recorded = NULL;
    int error = g->calls->use(g->index), ended;

    ended = g->calls->capture_end(wf_cuda_stream_of(s), &recorded);
    error = error ? error : ended;
    if (error == 0 && made)
        error = g->calls->replay_new(&made->of, recorded);
    if (ended == 0)
        (void)g->calls->graph_free(recorded); /* what replays has its own copy */
    if (error != 0 || !made) {
        free(made);
        return error ? wf_cuda_fail(g, error, err) : wf_fail_nomem(err, sizeof *made);
    }
    made->base.device = s->device;
    *out = &made->base;
    return WF_OK;
}

static wf_status cuda_graph_launch(wf_device_graph *graph, wf_stream *s, wf_err *err)
{
    const wf_cuda_gpu *g = gpu_of(s->device);

    CALL(g, replay(((cuda_graph *)graph)->of, wf_cuda_stream_of(s)), err);
    return WF_OK;
}

static void cuda_graph_free(wf_device_graph *graph)
{
    const wf_cuda_gpu *g = gpu_of(graph->device);

    if (g->calls->use(g->index) == 0)
        (void)g->calls->replay_free(((cuda_graph *)graph)->of);
    free(graph);
}

/* ---- a GPU ---- */

static wf_status find_gpu(const wf_cuda_calls *calls, const char *kind, int index,
                          wf_cuda_properties *has, wf_err *err)
{
    int n = 0, error = calls->count(&n);

    if (error == WF_CUDA_OLD_DRIVER)
        return wf_fail(err, WF_UNSUPPORTED,
                       "install a driver for CUDA 13 (580 or newer), or use cpu",
                       "%s:%d: this host has no NVIDIA driver, or one that is older than CUDA 13",
                       kind, index);
    if (error == WF_CUDA_NO_DEVICE || (error == 0 && n == 0))
        return wf_fail(err, WF_UNSUPPORTED, "use cpu, or look at nvidia-smi",
                       "%s:%d: this host has no NVIDIA GPU", kind, index);
    if (error == 0 && (index < 0 || index >= n))
        return wf_fail(err, WF_UNSUPPORTED, "GPUs are numbered from 0",
                       "%s:%d: this host has %d GPU%s", kind, index, n, n == 1 ? "" : "s");
    if (error == 0)
        error = calls->properties(index, has);
    if (error != 0)
        return wf_fail(err, WF_IO, "look at nvidia-smi", "%s:%d: %s (CUDA error %d)", kind, index,
                       calls->error_string(error), error);
    if (has->major < LEAST_MAJOR)
        return wf_fail(err, WF_UNSUPPORTED, "use cpu, or a GPU of the Ampere generation or later",
                       "%s:%d: %s has the compute capability %d.%d, and weft needs %d.0", kind,
                       index, has->name, has->major, has->minor, (int)LEAST_MAJOR);
    return WF_OK;
}

wf_status wf_cuda_open(const wf_cuda_calls *calls, const char *kind, int index, wf_cuda_gpu **out,
                       wf_err *err)
{
    wf_cuda_properties has = {0};
    wf_cuda_gpu *g;
    wf_status rc;
    int error;

    WF_TRY(find_gpu(calls, kind, index, &has, err));
    g = calloc(1, sizeof *g);
    if (!g)
        return wf_fail_nomem(err, sizeof *g);
    *out = g;
    snprintf(g->name, sizeof g->name, "%s:%d", kind, index);
    g->calls = calls;
    g->index = index;
    g->has = has;
    snprintf(g->about, sizeof g->about, "%s, compute capability %d.%d", has.name, has.major,
             has.minor);
    g->base = (wf_device){.name = g->name,
                          .about = g->about,
                          .memory = cuda_memory,
                          .memory_left = cuda_memory_left,
                          .alloc = cuda_alloc,
                          .free = cuda_free,
                          .host_alloc = cuda_host_alloc,
                          .host_free = cuda_host_free,
                          .host_pin = cuda_host_pin,
                          .host_unpin = cuda_host_unpin,
                          .stream_new = cuda_stream_new,
                          .stream_beside = cuda_stream_beside,
                          .stream_free = cuda_stream_free,
                          .stream_wait = cuda_stream_wait,
                          .stream_after = cuda_stream_after,
                          .copy = cuda_copy,
                          .fill = cuda_fill,
                          .event_new = cuda_event_new,
                          .event_free = cuda_event_free,
                          .event_record = cuda_event_record,
                          .event_wait = cuda_event_wait,
                          .event_done = cuda_event_done,
                          .record_begin = cuda_record_begin,
                          .record_end = cuda_record_end,
                          .graph_launch = cuda_graph_launch,
                          .graph_free = cuda_graph_free};
    g->rows = (wf_device_rows){.device = &g->base,
                               .files = wf_cuda_files,
                               .n_files = wf_cuda_n_files,
                               .updates = &wf_cuda_updates,
                               .groups = &wf_cuda_groups,
                               .widened = &wf_cuda_widened,
                               .narrow = WF_TYPE(WF_BF16) | WF_TYPE(WF_F16),
                               .keeps_convolved = true};
    rc = wf_cuda_compiled_new(calls, index, g->name, &has, &g->compiled, err);
    if (rc == WF_OK)
        rc = wf_tuned_new(calls, g->name, &has, &g->tuned, err);
    error = rc == WF_OK ? calls->use(index) : 0;
    if (rc == WF_OK && error == 0)
        error = calls->lt_new(&g->lt);
    if (rc == WF_OK)
        rc = error == 0 ? wf_dnn_new(g, &g->dnn, err) : wf_cuda_fail(g, error, err);
    if (rc != WF_OK)
        wf_cuda_close(out);
    return rc;
}

void wf_cuda_close(wf_cuda_gpu **g)
{
    if (*g) {
        wf_dnn_free(&(*g)->dnn);
        wf_cuda_compiled_free(&(*g)->compiled);
        wf_tuned_free(&(*g)->tuned);
        if ((*g)->lt)
            (void)(*g)->calls->lt_free((*g)->lt);
    }
    free(*g);
    *g = NULL;
}
