/* SPDX-License-Identifier: Apache-2.0 */
/* common/tensor/buf.c */
#include "common/tensor/buf.h"
#include "common/base/pages.h"
#include "common/base/size.h"

#include <stdlib.h>

static wf_buf *wrap_on(const wf_device *d, void *data, size_t bytes,
                       void (*release)(void *data, void *hint), void *hint)
{
    wf_buf *b = malloc(sizeof *b);

    if (!b)
        return NULL;
    *b = (wf_buf){
        .device = d, .data = data, .bytes = bytes, .refs = 1, .release = release, .hint = hint};
    return b;
}

wf_buf *wf_buf_wrap(void *data, size_t bytes, void (*release)(void *data, void *hint), void *hint)
{
    return wrap_on(&wf_cpu, data, bytes, release, hint);
}

static void free_own(void *data, void *device)
{
    wf_device_free(device, data);
}

wf_buf *wf_buf_new_on(const wf_device *d, size_t bytes)
{
    void *data = wf_device_alloc(d, bytes);
    wf_buf *b;

    if (!data)
        return NULL;
    b = wrap_on(d, data, bytes, free_own, (void *)(uintptr_t)d);
    if (!b)
        wf_device_free(d, data);
    return b;
}

wf_buf *wf_buf_new(size_t bytes)
{
    return wf_buf_new_on(&wf_cpu, bytes);
}

static void free_raw(void *data, void *hint)
{
    (void)hint;
    free(data);
}

wf_buf *wf_buf_new_raw(size_t bytes)
{
    size_t room = wf_align_up(WF_MAX(bytes, (size_t)1), WF_BUF_ALIGN);
    void *data = room < bytes ? NULL : wf_pages_alloc(room);
    wf_buf *b;

    if (!data)
        return NULL;
    b = wf_buf_wrap(data, bytes, free_raw, NULL);
    if (!b)
        free(data);
    return b;
}

static void free_pinned(void *data, void *device)
{
    const wf_device *d = device;

    d->host_free(d, data);
}

wf_buf *wf_buf_new_pinned(const wf_device *d, size_t bytes)
{
    void *data = d->host_alloc ? d->host_alloc(d, bytes) : NULL;
    wf_buf *b;

    if (!data)
        return wf_buf_new(bytes);
    b = wf_buf_wrap(data, bytes, free_pinned, (void *)(uintptr_t)d);
    if (!b)
        d->host_free(d, data);
    return b;
}

wf_buf *wf_buf_ref(wf_buf *b)
{
    __atomic_add_fetch(&b->refs, 1, __ATOMIC_RELAXED);
    return b;
}

void wf_buf_unref(wf_buf **b)
{
    wf_buf *it = *b;

    *b = NULL;
    if (!it || __atomic_sub_fetch(&it->refs, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    if (it->release)
        it->release(it->data, it->hint);
    free(it);
}

uint32_t wf_buf_refs(const wf_buf *b)
{
    return __atomic_load_n(&b->refs, __ATOMIC_ACQUIRE);
}
