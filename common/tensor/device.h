/* SPDX-License-Identifier: Apache-2.0 */
/* common/tensor/device.h - where memory lies and where work runs.
 *
 * A device has memory, streams and events. Work (a kernel, a copy, a fill) is queued on a stream,
 * whose work runs in order, at the earliest when it is queued and at the latest when somebody waits
 * for it. An event marks a point of a stream. The cpu is the device without any of that: its memory
 * is the process's own, its one stream is the calling thread, and its events are done.
 *
 * What computes on a device is in its rows (common/kernels/kernel.h); the two together are what a
 * plug-in brings.
 *
 * Rules for those who use a device
 *   D1  memory of a device that is not the host is read and written by its kernels, copies and
 *       fills alone
 *   D2  the operands of queued work stay as they are until that work is done: the host neither
 *       frees nor writes what it reads, nor reads what it writes
 *   D3  a failure of queued work is reported by a later wait for its stream or an event behind it,
 *       and by every one after that; also by such waits of streams that were made beside its own,
 *       where they have waited for the work
 *
 * Threading: a device serves many threads; a stream or an event serves one at a time, but for
 * waits and queries of an event, which any thread may make.
 */
#ifndef WF_TENSOR_DEVICE_H
#define WF_TENSOR_DEVICE_H

#include "common/base/status.h"
#include <stdbool.h>
#include <stddef.h>

typedef struct wf_device wf_device;

/* The beginning of each device's own struct. */
typedef struct wf_stream {
    const wf_device *device;
} wf_stream;
typedef struct wf_device_event {
    const wf_device *device;
} wf_device_event;
typedef struct wf_device_graph {
    const wf_device *device;
} wf_device_graph;

typedef enum wf_copy_way {
    WF_COPY_IN = 1, /* from the host to the device */
    WF_COPY_OUT,    /* from the device to the host */
    WF_COPY_WITHIN  /* inside the device; the two places do not overlap */
} wf_copy_way;

/* What a device can do. Callers use the functions below; `bytes` of a copy or fill is never 0. */
struct wf_device {
    const char *name;  /* as cluster.yaml has it: "cpu" */
    const char *about; /* what it is: "NVIDIA H100 PCIe, compute capability 9.0"; NULL: the cpu */
    bool is_host; /* its memory is the process's own, and its work is done when a call returns */
    size_t (*memory)(const wf_device *d);
    size_t (*memory_left)(const wf_device *d); /* NULL: nobody knows */
    void *(*alloc)(const wf_device *d, size_t bytes);
    void (*free)(const wf_device *d, void *data);
    /* Memory of the host that does not move, so that copies need no hand of the host's; aligned as
     * alloc's. NULL, both: such memory is none better than other. */
    void *(*host_alloc)(const wf_device *d, size_t bytes);
    void (*host_free)(const wf_device *d, void *data);
    /* The same for memory that the host has, from `at` on; false: it stays as it is. Whoever asks
     * lets go of it before he gives it back. NULL, both: as above. */
    bool (*host_pin)(const wf_device *d, void *at, size_t bytes);
    void (*host_unpin)(const wf_device *d, void *at);
    wf_status (*stream_new)(const wf_device *d, wf_stream **out, wf_err *err);
    /* NULL: stream_new does, since failures follow events from stream to stream. */
    wf_status (*stream_beside)(wf_stream *s, wf_stream **out, wf_err *err);
    void (*stream_free)(wf_stream *s);
    wf_status (*stream_wait)(wf_stream *s, wf_err *err);
    wf_status (*stream_after)(wf_stream *s, wf_device_event *e, wf_err *err);
    wf_status (*copy)(wf_stream *s, wf_copy_way way, void *to, const void *from, size_t bytes,
                      wf_err *err);
    wf_status (*fill)(wf_stream *s, void *to, int byte, size_t bytes, wf_err *err);
    wf_status (*event_new)(const wf_device *d, wf_device_event **out, wf_err *err);
    void (*event_free)(wf_device_event *e);
    wf_status (*event_record)(wf_device_event *e, wf_stream *s, wf_err *err);
    wf_status (*event_wait)(wf_device_event *e, wf_err *err);
    bool (*event_done)(wf_device_event *e);
    /* NULL, all four: the device records nothing. */
    wf_status (*record_begin)(wf_stream *s, wf_err *err);
    wf_status (*record_end)(wf_stream *s, wf_device_graph **out, wf_err *err);
    wf_status (*graph_launch)(wf_device_graph *g, wf_stream *s, wf_err *err);
    void (*graph_free)(wf_device_graph *g);
};

/* The devices of weft's own: wf_cpu is the processor and the process's own memory. */
#define WF_DEVICE(name) extern const wf_device wf_##name;
#include "common/tensor/devices.def"
#undef WF_DEVICE
/* All of them; ends with NULL. */
extern const wf_device *const wf_devices[];

/* Whether a name says a GPU, and which: "cuda:0" is number 0. */
bool wf_device_is_gpu(const char *name, int *index);
/* Whether a name says the processor: "cpu", or "cpu:0", "cpu:1" and so on, where several replicas
 * of a model are to be told apart. All are wf_cpu. */
bool wf_device_is_cpu(const char *name);

/* The bytes that the device can have at the very most. */
size_t wf_device_memory(const wf_device *d);
/* Those that are left now; all of them where nobody knows. */
size_t wf_device_memory_left(const wf_device *d);
/* Memory of the device, aligned to 64 bytes; NULL when there is none. That of a host is zeroed,
 * another's is of undefined content. bytes 0 gives memory that nobody may use. */
void *wf_device_alloc(const wf_device *d, size_t bytes);
/* Gives memory back that no queued work uses any more; NULL is fine. */
void wf_device_free(const wf_device *d, void *data);

/* The caller owns *out. Errors: WF_NOMEM; what the device says. */
WF_MUST_USE wf_status wf_stream_new(const wf_device *d, wf_stream **out, wf_err *err);
/* Another stream of s's device, for copies of what s computes: what is wrong with that is also
 * reported by waits for this one (D3). It is freed before s is. The caller owns *out. Errors: as
 * wf_stream_new. */
WF_MUST_USE wf_status wf_stream_beside(wf_stream *s, wf_stream **out, wf_err *err);
/* Waits for what is queued, drops its failures, frees *s and sets it to NULL; NULL is fine. */
void wf_stream_free(wf_stream **s);
/* Returns when all that is queued is done. Errors: the first failure of it (D3). */
WF_MUST_USE wf_status wf_stream_wait(wf_stream *s, wf_err *err);
/* What is queued on s from now on begins when e is done. e is of the same device. */
WF_MUST_USE wf_status wf_stream_after(wf_stream *s, wf_device_event *e, wf_err *err);
/* Queues a copy, or a fill of device memory with one byte. */
WF_MUST_USE wf_status wf_stream_copy(wf_stream *s, wf_copy_way way, void *to, const void *from,
                                     size_t bytes, wf_err *err);
WF_MUST_USE wf_status wf_stream_fill(wf_stream *s, void *to, int byte, size_t bytes, wf_err *err);
/* Copies from memory of a device to the host, on a stream of its own, and returns when it is done:
 * for what is read once, of work that was waited for. Errors: WF_NOMEM; what failed. */
WF_MUST_USE wf_status wf_device_read(const wf_device *d, void *to, const void *from, size_t bytes,
                                     wf_err *err);
/* Copies between the memory of two devices by way of the host, and returns when it is done: work
 * that was queued on either stream before is done then too. Errors: WF_NOMEM; what failed (D3). */
WF_MUST_USE wf_status wf_device_copy(wf_stream *to_stream, void *to, wf_stream *from_stream,
                                     const void *from, size_t bytes, wf_err *err);

/* An event that is done until it is recorded. The caller owns *out. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_device_event_new(const wf_device *d, wf_device_event **out, wf_err *err);
/* Frees *e and sets it to NULL; NULL is fine. Nobody may wait for it any more. */
void wf_device_event_free(wf_device_event **e);
/* e marks the end of what is queued on s now. */
WF_MUST_USE wf_status wf_device_event_record(wf_device_event *e, wf_stream *s, wf_err *err);
/* Returns when the work in front of e is done. Errors: its first failure (D3). */
WF_MUST_USE wf_status wf_device_event_wait(wf_device_event *e, wf_err *err);
/* Whether the work in front of e is done, without waiting; a wait then returns at once. */
bool wf_device_event_done(wf_device_event *e);

/* Whether work of the device can be recorded, and queued again as a whole. */
bool wf_device_records(const wf_device *d);
/* From now on the work that this thread queues on s is recorded with its operands' addresses, and
 * not done; until wf_stream_record_end the thread neither waits for anything of the device, nor
 * allocates, nor records events. Errors: what the device says; nothing is recorded then. */
WF_MUST_USE wf_status wf_stream_record_begin(wf_stream *s, wf_err *err);
/* Ends it, also when it fails. The caller owns *out. Errors: WF_NOMEM; what the device says, also
 * for a call in between that must not be recorded. */
WF_MUST_USE wf_status wf_stream_record_end(wf_stream *s, wf_device_graph **out, wf_err *err);
/* Queues all that was recorded on s, a stream of the same device. */
WF_MUST_USE wf_status wf_device_graph_launch(wf_device_graph *g, wf_stream *s, wf_err *err);
/* Frees *g, of which nothing is queued any more, and sets it to NULL; NULL is fine. */
void wf_device_graph_free(wf_device_graph **g);

#endif
