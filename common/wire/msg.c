/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/msg.c */
#include "common/wire/msg.h"
#include "common/wire/grammar.h"

#include <stdlib.h>
#include <string.h>

enum { LARGEST_KEPT = 1 << 16 }; /* control bytes of a pooled message: a graph is not kept */

static void destroy(wf_msg *m)
{
    free(m->control);
    free(m);
}

void wf_msg_pool_close(wf_msg_pool *pool)
{
    while (pool->free) {
        wf_msg *m = pool->free;

        pool->free = m->next;
        destroy(m);
    }
}

wf_status wf_msg_new(wf_msg_pool *pool, uint16_t kind, wf_msg **out, wf_err *err)
{
    wf_msg *m = pool->free;

    if (m) {
        pool->free = m->next;
        m->next = NULL;
    } else {
        m = calloc(1, sizeof *m);
        if (!m)
            return wf_fail_nomem(err, sizeof *m);
    }
    m->head = (wf_header){.version = WF_WIRE_VERSION, .kind = kind};
    *out = m;
    return WF_OK;
}

void wf_msg_free(wf_msg_pool *pool, wf_msg **m)
{
    wf_msg *it = *m;

    *m = NULL;
    if (!it)
        return;
    for (uint32_t i = 0; i < it->n_frames; i++)
        wf_buf_unref(&it->frames[i].buf);
    it->n_frames = 0;
    it->payload_bytes = 0;
    if (it->control_room > LARGEST_KEPT) {
        destroy(it);
        return;
    }
    it->next = pool->free;
    pool->free = it;
}

uint8_t *wf_msg_control(wf_msg *m, size_t n)
{
    if (n > UINT32_MAX)
        return NULL;
    if (n > m->control_room) {
        size_t room = n < 256 ? 256 : n;
        uint8_t *control = realloc(m->control, room);

        if (!control)
            return NULL;
        m->control = control;
        m->control_room = room;
    }
    m->head.control_bytes = (uint32_t)n;
    return m->control;
}

wf_status wf_msg_add_frame(wf_msg *m, wf_buf *buf, const void *data, size_t bytes, wf_err *err)
{
    if (m->n_frames == WF_MAX_FRAMES)
        return wf_fail(err, WF_FULL, NULL, "a message holds at most %d frames", WF_MAX_FRAMES);
    m->frames[m->n_frames++] = (wf_frame){wf_buf_ref(buf), data, bytes};
    m->payload_bytes += bytes;
    return WF_OK;
}

wf_status wf_msg_add_bytes(wf_msg *m, wf_buf *buf, const uint8_t *data, size_t bytes,
                           uint32_t *frame, wf_err *err)
{
    enum { BACK = 2 };

    for (uint32_t i = m->n_frames; i-- > 0 && m->n_frames - i <= BACK;) {
        wf_frame *f = &m->frames[i];

        if (f->buf != buf || f->data + f->bytes != data)
            continue;
        f->bytes += bytes;
        m->payload_bytes += bytes;
        *frame = i;
        return WF_OK;
    }
    *frame = m->n_frames;
    return wf_msg_add_frame(m, buf, data, bytes, err);
}

wf_msg *wf_msg_decode(wf_msg_pool *pool, const uint8_t *data, size_t n)
{
    const wf_kind_row *row;
    wf_header head;
    wf_msg *m = NULL;
    uint8_t *control;

    if (wf_header_decode(data, n, &head, NULL) != WF_OK)
        return NULL;
    row = wf_kind_find(head.kind);
    if (!row || head.control_bytes > row->control_limit)
        return NULL;
    if (wf_msg_new(pool, head.kind, &m, NULL) != WF_OK)
        return NULL;
    control = wf_msg_control(m, head.control_bytes);
    if (!control && head.control_bytes) {
        wf_msg_free(pool, &m);
        return NULL;
    }
    m->head = head;
    if (head.control_bytes)
        memcpy(control, data + WF_HEADER_BYTES, head.control_bytes);
    return m;
}

size_t wf_msg_bytes(const wf_msg *m)
{
    return WF_HEADER_BYTES + m->head.control_bytes + m->payload_bytes;
}

wf_status wf_msg_copy(wf_msg_pool *pool, const wf_msg *m, wf_msg **out, wf_err *err)
{
    wf_msg *copy = NULL;

    WF_TRY(wf_msg_new(pool, m->head.kind, &copy, err));
    if (!wf_msg_control(copy, m->head.control_bytes) && m->head.control_bytes) {
        wf_msg_free(pool, &copy);
        return wf_fail_nomem(err, m->head.control_bytes);
    }
    copy->head = m->head;
    if (m->head.control_bytes)
        memcpy(copy->control, m->control, m->head.control_bytes);
    for (uint32_t i = 0; i < m->n_frames; i++) {
        const wf_frame *f = &m->frames[i];

        copy->frames[i] = (wf_frame){wf_buf_ref(f->buf), f->data, f->bytes};
    }
    copy->n_frames = m->n_frames;
    copy->payload_bytes = m->payload_bytes;
    *out = copy;
    return WF_OK;
}
