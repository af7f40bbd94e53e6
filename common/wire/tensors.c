/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/tensors.c */
#include "common/wire/tensors.h"
#include "common/base/size.h"
#include "common/wire/control.h"
#include "common/wire/grammar.h"
#include "common/wire/parts.h"

#include <string.h>

enum { ALIGN = 64 };

void wf_tensor_head(const wf_tensor *t, Weft__TensorHead *head, int64_t dims[])
{
    weft__tensor_head__init(head);
    memcpy(dims, t->dims, t->rank * sizeof *dims);
    head->dtype = t->dtype;
    head->dims = dims;
    head->n_dims = t->rank;
}

wf_status wf_tensor_head_check(const Weft__TensorHead *head, size_t *bytes, wf_err *err)
{
    size_t size = wf_dtype_size((wf_dtype)head->dtype);
    int64_t elems = 0;

    *bytes = 0;
    if (!size || !wf_dtype_computes((wf_dtype)head->dtype))
        return wf_fail(err, WF_PROTO, "upgrade this side", "a tensor of dtype %u", head->dtype);
    if (head->n_dims > WF_MAX_RANK || !wf_dims_elems((uint32_t)head->n_dims, head->dims, &elems) ||
        (uint64_t)elems > WF_TENSORS_BYTES / size)
        return wf_fail(err, WF_PROTO, NULL,
                       "a tensor of %zu axes and %lld elements; it may have %d axes and %d MiB",
                       head->n_dims, (long long)elems, WF_MAX_RANK, WF_TENSORS_BYTES >> 20);
    *bytes = (size_t)elems * size;
    return WF_OK;
}

/* ---- writing ---- */

typedef struct writer {
    wf_msg *m;
    wf_part parts[1 + WF_TENSORS_MOST];
    uint32_t n;
    bool checksums;
} writer;

/* A part of the last frame. */
static void add_part(writer *w, size_t offset, size_t bytes)
{
    wf_part *p = &w->parts[w->n];

    *p = (wf_part){.slice = w->n++, .codec = WF_CODEC_NONE};
    if (bytes == 0)
        return;
    p->codec = WF_CODEC_BYTES;
    p->frame = (uint8_t)(w->m->n_frames - 1);
    p->offset = offset;
    p->bytes = bytes;
    p->checksum = w->checksums ? wf_part_checksum(wf_part_data(w->m, p), bytes) : 0;
}

/* A frame of `bytes` at `data`, in buf or, without one, copied. */
static wf_status add_frame(writer *w, wf_buf *buf, const void *data, size_t bytes, wf_err *err)
{
    wf_buf *own = buf ? NULL : wf_buf_new(bytes);
    wf_status rc;

    if (!buf && !own)
        return wf_fail_nomem(err, bytes);
    if (own)
        memcpy(own->data, data, bytes);
    rc = wf_msg_add_frame(w->m, buf ? buf : own, own ? own->data : data, bytes, err);
    wf_buf_unref(&own);
    return rc;
}

static wf_status put_body(writer *w, const ProtobufCMessage *body, wf_err *err)
{
    size_t n = protobuf_c_message_get_packed_size(body);
    const wf_kind_row *row = wf_kind_find(w->m->head.kind);
    wf_buf *buf;
    wf_status rc;

    if (!row || n > row->control_limit)
        return wf_fail(err, WF_FULL, NULL, "a %s of %zu bytes, where %zu are allowed",
                       wf_kind_name(w->m->head.kind), n, row ? row->control_limit : 0);
    buf = wf_buf_new(n + 1);
    if (!buf)
        return wf_fail_nomem(err, n);
    protobuf_c_message_pack(body, buf->data);
    rc = n ? wf_msg_add_frame(w->m, buf, buf->data, n, err) : WF_OK;
    wf_buf_unref(&buf);
    if (rc == WF_OK)
        add_part(w, 0, n);
    return rc;
}

/* All of them in one frame, one behind the other. */
static wf_status put_packed(writer *w, uint32_t n, const wf_tensor *const tensors[], wf_err *err)
{
    size_t room = 0, at = 0;
    wf_buf *buf;
    wf_status rc;

    for (uint32_t i = 0; i < n; i++)
        room += wf_align_up(wf_tensor_bytes(tensors[i]), ALIGN);
    buf = wf_buf_new(room + 1);
    if (!buf)
        return wf_fail_nomem(err, room);
    for (uint32_t i = 0; i < n; i++) {
        size_t bytes = wf_tensor_bytes(tensors[i]);

        if (bytes)
            memcpy((char *)buf->data + at, tensors[i]->data, bytes);
        at += wf_align_up(bytes, ALIGN);
    }
    rc = room ? wf_msg_add_frame(w->m, buf, buf->data, room, err) : WF_OK;
    wf_buf_unref(&buf);
    at = 0;
    for (uint32_t i = 0; rc == WF_OK && i < n; i++) {
        add_part(w, at, wf_tensor_bytes(tensors[i]));
        at += wf_align_up(wf_tensor_bytes(tensors[i]), ALIGN);
    }
    return rc;
}

static wf_status put_each(writer *w, uint32_t n, const wf_tensor *const tensors[], wf_err *err)
{
    for (uint32_t i = 0; i < n; i++) {
        size_t bytes = wf_tensor_bytes(tensors[i]);

        if (bytes)
            WF_TRY(add_frame(w, tensors[i]->buf, tensors[i]->data, bytes, err));
        add_part(w, 0, bytes);
    }
    return WF_OK;
}

wf_status wf_tensors_put(wf_msg *m, const ProtobufCMessage *body, uint32_t n,
                         const wf_tensor *const tensors[], bool checksums, wf_err *err)
{
    writer w = {.m = m, .checksums = checksums};
    size_t bytes = 0;

    wf_assert(m->n_frames == 0);
    for (uint32_t i = 0; i < n; i++)
        bytes += wf_tensor_bytes(tensors[i]);
    if (n > WF_TENSORS_MOST || bytes > WF_TENSORS_BYTES)
        return wf_fail(err, WF_FULL, "send them in several calls",
                       "%u tensors of %zu MiB together; a call takes %d of %d MiB", n, bytes >> 20,
                       WF_TENSORS_MOST, WF_TENSORS_BYTES >> 20);
    WF_TRY(put_body(&w, body, err));
    WF_TRY(n < WF_MAX_FRAMES ? put_each(&w, n, tensors, err) : put_packed(&w, n, tensors, err));
    return wf_parts_put(m, w.parts, w.n, err);
}

/* ---- reading ---- */

/* Part i, which the net has checked; no bytes where it has none. */
static wf_status part_at(const wf_msg *m, uint32_t i, const void **data, size_t *n, wf_err *err)
{
    wf_part p;

    if (!wf_parts_at(m, i, &p) || (p.codec != WF_CODEC_BYTES && p.codec != WF_CODEC_NONE))
        return wf_fail(err, WF_PROTO, NULL, "a %s without part %u", wf_kind_name(m->head.kind), i);
    *n = p.codec == WF_CODEC_BYTES ? p.bytes : 0;
    *data = *n ? wf_part_data(m, &p) : "";
    return WF_OK;
}

wf_status wf_tensors_body(const wf_msg *m, const ProtobufCMessageDescriptor *type, void *out,
                          wf_err *err)
{
    const wf_kind_row *row = wf_kind_find(m->head.kind);
    const void *data;
    size_t n;

    WF_TRY(part_at(m, 0, &data, &n, err));
    if (!row || n > row->control_limit)
        return wf_fail(err, WF_PROTO, NULL, "a %s with a body of %zu bytes",
                       wf_kind_name(m->head.kind), n);
    return wf_control_unpack(data, n, type, out, err);
}

wf_status wf_tensors_take(const wf_msg *m, uint32_t i, const Weft__TensorHead *head,
                          wf_tensor **out, wf_err *err)
{
    const void *data;
    size_t n, bytes;

    *out = NULL;
    WF_TRY(wf_tensor_head_check(head, &bytes, err));
    WF_TRY(part_at(m, 1 + i, &data, &n, err));
    if (n != bytes)
        return wf_fail(err, WF_PROTO, NULL, "a tensor of %zu bytes came with %zu", bytes, n);
    WF_TRY(wf_tensor_new((wf_dtype)head->dtype, (uint32_t)head->n_dims, head->dims, out, err));
    if (n)
        memcpy((*out)->data, data, n);
    return WF_OK;
}
