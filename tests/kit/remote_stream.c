/* SPDX-License-Identifier: Apache-2.0 */
/* tests/kit/remote_stream.c - streams and events of the remote devices.
 *
 * Work waits in the stream's list; whoever waits does it, on its own thread, one piece at a time
 * over all streams. */
#include "tests/kit/remote.h"
#include "tests/kit/remote_device.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t mutex;
static size_t queued, waits, done;

void remote_set_up(void)
{
    pthread_mutexattr_t recursive; /* a stream waits for another in the lock */

    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&mutex, &recursive);
    pthread_mutexattr_destroy(&recursive);
}

void remote_lock(void)
{
    pthread_mutex_lock(&mutex);
}

void remote_unlock(void)
{
    pthread_mutex_unlock(&mutex);
}

typedef struct remote_stream remote_stream;

struct remote_stream {
    wf_stream base;
    remote_work *first, **last;
    uint64_t queued, finished;
    wf_err failure; /* of the first work that failed; what is behind it is dropped */
};

typedef struct remote_event {
    wf_device_event base;
    remote_stream *stream; /* NULL: never recorded */
    uint64_t target;
} remote_event;

void remote_append(wf_stream *s, remote_work *w)
{
    remote_stream *rs = (remote_stream *)s;

    remote_lock();
    *rs->last = w;
    rs->last = &w->next;
    rs->queued++;
    queued++;
    remote_unlock();
}

static wf_status enqueue(wf_stream *s, const remote_work *like, wf_err *err)
{
    remote_work *w = malloc(sizeof *w);

    if (!w)
        return wf_fail_nomem(err, sizeof *w);
    *w = *like;
    remote_append(s, w);
    return WF_OK;
}

/* Does the work up to number `target` and reports the stream's failure; in the lock. */
static wf_status catch_up(remote_stream *s, uint64_t target, wf_err *err)
{
    while (s->finished < target) {
        remote_work *w = s->first;
        wf_err why = {0};

        s->first = w->next;
        if (!s->first)
            s->last = &s->first;
        s->finished++;
        done++;
        if (s->failure.status == WF_OK && w->act(w, &why) != WF_OK)
            s->failure = why;
        free(w);
    }
    if (s->failure.status != WF_OK && err)
        *err = s->failure;
    return s->failure.status;
}

static wf_status remote_stream_new(const wf_device *d, wf_stream **out, wf_err *err)
{
    remote_stream *s = calloc(1, sizeof *s);

    if (!s)
        return wf_fail_nomem(err, sizeof *s);
    s->base.device = d;
    s->last = &s->first;
    *out = &s->base;
    return WF_OK;
}

static wf_status remote_stream_wait(wf_stream *s, wf_err *err)
{
    remote_stream *rs = (remote_stream *)s;
    wf_status rc;

    remote_lock();
    rc = catch_up(rs, rs->queued, err);
    rs->failure = (wf_err){0};
    remote_unlock();
    return rc;
}

static void remote_stream_free(wf_stream *s)
{
    wf_status ignored = remote_stream_wait(s, NULL);

    (void)ignored;
    free(s);
}

static wf_status wait_for_other(remote_work *w, wf_err *err)
{
    return catch_up(w->other, w->target, err);
}

static wf_status remote_stream_after(wf_stream *s, wf_device_event *e, wf_err *err)
{
    remote_event *re = (remote_event *)e;

    if (!re->stream)
        return WF_OK;
    remote_lock();
    waits++;
    remote_unlock();
    return enqueue(
        s, &(remote_work){.act = wait_for_other, .other = re->stream, .target = re->target}, err);
}

static wf_status do_copy(remote_work *w, wf_err *err)
{
    void *to = w->way == WF_COPY_OUT ? w->to : remote_behind(w->to, w->bytes, "a copy");
    const void *from = w->way == WF_COPY_IN ? w->from : remote_behind(w->from, w->bytes, "a copy");

    (void)err;
    memcpy(to, from, w->bytes);
    return WF_OK;
}

static wf_status remote_copy(wf_stream *s, wf_copy_way way, void *to, const void *from,
                             size_t bytes, wf_err *err)
{
    remote_lock();
    if (way == WF_COPY_IN)
        remote_need_host(from, bytes, "a copy to the device");
    if (way == WF_COPY_OUT)
        remote_need_host(to, bytes, "a copy to the host");
    remote_unlock();
    return enqueue(
        s, &(remote_work){.act = do_copy, .way = way, .to = to, .from = from, .bytes = bytes}, err);
}

static wf_status do_fill(remote_work *w, wf_err *err)
{
    (void)err;
    memset(remote_behind(w->to, w->bytes, "a fill"), w->byte, w->bytes);
    return WF_OK;
}

static wf_status remote_fill(wf_stream *s, void *to, int byte, size_t bytes, wf_err *err)
{
    return enqueue(s, &(remote_work){.act = do_fill, .to = to, .byte = byte, .bytes = bytes}, err);
}

static wf_status remote_event_new(const wf_device *d, wf_device_event **out, wf_err *err)
{
    remote_event *e = calloc(1, sizeof *e);

    if (!e)
        return wf_fail_nomem(err, sizeof *e);
    e->base.device = d;
    *out = &e->base;
    return WF_OK;
}

static void remote_event_free(wf_device_event *e)
{
    free(e);
}

static wf_status remote_event_record(wf_device_event *e, wf_stream *s, wf_err *err)
{
    remote_event *re = (remote_event *)e;

    (void)err;
    remote_lock();
    re->stream = (remote_stream *)s;
    re->target = re->stream->queued;
    remote_unlock();
    return WF_OK;
}

static wf_status remote_event_wait(wf_device_event *e, wf_err *err)
{
    remote_event *re = (remote_event *)e;
    wf_status rc = WF_OK;

    remote_lock();
    if (re->stream)
        rc = catch_up(re->stream, re->target, err);
    remote_unlock();
    return rc;
}

static bool remote_event_done(wf_device_event *e)
{
    remote_event *re = (remote_event *)e;
    bool is_done = true;

    remote_lock();
    if (re->stream && re->stream->finished < re->target) {
        wf_status ignored = catch_up(re->stream, re->stream->finished + 1, NULL);

        (void)ignored; /* a wait reports it */
        is_done = re->stream->finished >= re->target;
    }
    remote_unlock();
    return is_done;
}

size_t remote_devices_queued(void)
{
    return queued;
}

size_t remote_devices_waits(void)
{
    return waits;
}

size_t remote_devices_done(void)
{
    return done;
}

wf_device remote_device_called(const char *name)
{
    return (wf_device){.name = name,
                       .memory = remote_memory,
                       .alloc = remote_alloc,
                       .free = remote_free,
                       .stream_new = remote_stream_new,
                       .stream_free = remote_stream_free,
                       .stream_wait = remote_stream_wait,
                       .stream_after = remote_stream_after,
                       .copy = remote_copy,
                       .fill = remote_fill,
                       .event_new = remote_event_new,
                       .event_free = remote_event_free,
                       .event_record = remote_event_record,
                       .event_wait = remote_event_wait,
                       .event_done = remote_event_done};
}
