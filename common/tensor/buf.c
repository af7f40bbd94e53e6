/* SPDX-License-Identifier: Apache-2.0 */
/* common/tensor/buf.c */
#include "common/tensor/buf.h"
#include "common/base/pages.h"
#include "common/base/size.h"

#include <stdlib.h>
#include <string.h>

static void free_own(void *data, void *hint)
{
    (void)hint;
    free(data);
}

wf_buf *wf_buf_wrap(void *data, size_t bytes, void (*release)(void *data, void *hint), void *hint)
{
    wf_buf *b = malloc(sizeof *b);

    if (!b)
        return NULL;
    *b = (wf_buf){.data = data, .bytes = bytes, .refs = 1, .release = release, .hint = hint};
    return b;
}

wf_buf *wf_buf_new(size_t bytes)
{
    size_t room = wf_align_up(WF_MAX(bytes, (size_t)1), WF_BUF_ALIGN);
    void *data;
    wf_buf *b;

    if (room < bytes)
        return NULL;
    data = wf_pages_alloc(room);
    if (!data)
        return NULL;
    memset(data, 0, room);
    b = wf_buf_wrap(data, bytes, free_own, NULL);
    if (!b)
        free(data);
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
