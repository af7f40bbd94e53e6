/* SPDX-License-Identifier: Apache-2.0 */
/* ps/slice_state.c - the state of a slice as a message to another ps. Its parts are a head
 * (protobuf: number of updates, what was seen, the names of the arrays, a digest), then the arrays
 * as the slice's kind saves them, each in a frame. */
#include "common/base/size.h"
#include "common/wire/control.h"
#include "ps/state.h"

#include <stdlib.h>
#include <string.h>

/* One more frame, with a copy of the bytes: the slice may be gone before the message has left. */
static wf_status add_frame(wf_msg *m, uint32_t slice, const void *data, size_t bytes,
                           bool checksums, wf_part *part, wf_err *err)
{
    wf_buf *b = wf_buf_new(bytes);
    wf_status rc;

    if (!b)
        return wf_fail_nomem(err, bytes);
    if (bytes)
        memcpy(b->data, data, bytes);
    *part = (wf_part){.slice = slice,
                      .codec = WF_CODEC_BYTES,
                      .frame = (uint8_t)m->n_frames,
                      .bytes = bytes,
                      .checksum = checksums ? wf_part_checksum(b->data, bytes) : 0};
    rc = wf_msg_add_frame(m, b, b->data, bytes, err);
    wf_buf_unref(&b);
    return rc;
}

static wf_status put_clocks(const wf_clocks *clocks, Weft__SliceState *head, wf_arena *a,
                            wf_err *err)
{
    Weft__ClockRow *rows = wf_arena_array(a, clocks->n, sizeof *rows);

    head->clocks = wf_arena_array(a, clocks->n, sizeof(*head->clocks));
    if (!rows || !head->clocks)
        return wf_fail_nomem(err, clocks->n * sizeof *rows);
    for (uint32_t i = 0; i < clocks->n; i++) {
        const wf_clock *from = &clocks->rows[i];

        weft__clock_row__init(&rows[i]);
        rows[i].incarnation = from->incarnation;
        rows[i].shift = from->shift;
        rows[i].at = from->at;
        rows[i].last = from->last;
        rows[i].number = from->number;
        head->clocks[head->n_clocks++] = &rows[i];
    }
    return WF_OK;
}

static wf_status add_head(const wf_slice *s, const wf_slice_array arrays[], uint32_t n,
                          const wf_clocks *clocks, wf_arena *a, bool checksums, wf_msg *m,
                          wf_part *part, wf_err *err)
{
    Weft__SliceState head = WEFT__SLICE_STATE__INIT;
    char *names[WF_SLICE_ARRAYS];
    wf_bytes seen = {0}, packed = {0};
    uint8_t *to;
    wf_status rc;

    wf_seen_encode(&s->seen, &seen);
    rc = wf_bytes_check(&seen, err);
    if (rc == WF_OK)
        rc = put_clocks(clocks, &head, a, err);
    head.slice = s->id;
    head.updates = s->updates;
    head.clock = s->clock;
    head.digest = s->ops->digest(s);
    head.seen = (ProtobufCBinaryData){.len = seen.size, .data = seen.data};
    head.arrays = names;
    for (uint32_t i = 0; i < n; i++)
        names[head.n_arrays++] = (char *)(arrays[i].slot ? arrays[i].slot : "");
    to = rc == WF_OK ? wf_bytes_extend(&packed, weft__slice_state__get_packed_size(&head)) : NULL;
    if (to)
        weft__slice_state__pack(&head, to);
    if (rc == WF_OK)
        rc = wf_bytes_check(&packed, err);
    if (rc == WF_OK)
        rc = add_frame(m, s->id, packed.data, packed.size, checksums, part, err);
    wf_bytes_close(&packed);
    wf_bytes_close(&seen);
    return rc;
}

static wf_status put_arrays(const wf_slice *s, const wf_slice *copy, const wf_clocks *clocks,
                            wf_arena *a, bool checksums, wf_msg *m, wf_err *err)
{
    wf_slice_array arrays[WF_SLICE_ARRAYS];
    uint32_t n = s->ops->save(copy, arrays);
    wf_part parts[1 + WF_SLICE_ARRAYS];

    WF_TRY(add_head(s, arrays, n, clocks, a, checksums, m, &parts[0], err));
    for (uint32_t i = 0; i < n; i++)
        WF_TRY(add_frame(m, s->id, arrays[i].data, arrays[i].bytes, checksums, &parts[1 + i], err));
    return wf_parts_put(m, parts, 1 + n, err);
}

wf_status wf_state_put(const wf_slice *s, const wf_clocks *clocks, bool checksums, wf_msg *m,
                       wf_err *err)
{
    wf_arena *a = wf_arena_new(0);
    wf_slice *copy = NULL;
    wf_status rc = a ? wf_slice_fork(s, &copy, err) : wf_fail_nomem(err, 4096);

    if (rc == WF_OK)
        rc = put_arrays(s, copy, clocks, a, checksums, m, err);
    wf_slice_free(&copy);
    wf_arena_free(&a);
    return rc;
}

wf_status wf_state_head(const wf_msg *m, Weft__SliceState **out, wf_err *err)
{
    wf_part parts[WF_MAX_PARTS];
    wf_status rc;
    uint32_t n;

    WF_TRY(wf_parts_get(m, parts, &n, err));
    for (uint32_t i = 0; i < n; i++)
        if (parts[i].codec != WF_CODEC_BYTES)
            return wf_fail(err, WF_PROTO, NULL, "the state of a slice has a part of codec %u",
                           parts[i].codec);
    if (n == 0)
        return wf_fail(err, WF_PROTO, NULL, "the state of a slice without a head");
    rc = wf_control_unpack(wf_part_data(m, &parts[0]), parts[0].bytes,
                           &weft__slice_state__descriptor, out, err);
    if (rc == WF_OK && (*out)->n_arrays + 1 != n) {
        rc = wf_fail(err, WF_PROTO, NULL, "the state of slice %u has %u parts for %zu arrays",
                     (*out)->slice, n, (*out)->n_arrays);
        wf_control_free(out);
    }
    return rc;
}

typedef struct state_source {
    const wf_msg *msg;
    const Weft__SliceState *head;
    wf_part parts[WF_MAX_PARTS];
} state_source;

static const wf_part *find_array(const state_source *from, const char *slot)
{
    for (size_t i = 0; i < from->head->n_arrays; i++)
        if (strcmp(from->head->arrays[i], slot ? slot : "") == 0)
            return &from->parts[1 + i];
    return NULL;
}

/* Another ps of the same job has them as this one does. */
static wf_dtype dtype_of(void *arg, const wf_slice *s)
{
    (void)arg;
    return wf_slice_dtype(s);
}

/* Whoever loads reads up to the end of an array, so none is longer than it should be. */
static wf_status read_state(void *arg, const wf_slice *s, const char *slot, wf_dtype as,
                            uint64_t first, void *out, uint64_t n, wf_err *err)
{
    const state_source *from = arg;
    const wf_part *p = find_array(from, slot);
    uint64_t width = wf_dtype_size(as);

    if (!p || p->bytes != (first + n) * width)
        return wf_fail(err, WF_PROTO, NULL, "the state of slice %u has no \"%s\" of %llu elements",
                       s->id, slot ? slot : "values", (unsigned long long)(first + n));
    if (n)
        memcpy(out, (const uint8_t *)wf_part_data(from->msg, p) + first * width, n * width);
    return WF_OK;
}

static wf_status read_all_state(void *arg, const wf_slice *s, const char *slot, void **out,
                                uint64_t *bytes, wf_err *err)
{
    const state_source *from = arg;
    const wf_part *p = find_array(from, slot);

    if (!p)
        return wf_fail(err, WF_NOTFOUND, NULL, "the state of slice %u has no \"%s\"", s->id,
                       slot ? slot : "values");
    *out = malloc(p->bytes + 1);
    if (!*out)
        return wf_fail_nomem(err, p->bytes);
    if (p->bytes)
        memcpy(*out, wf_part_data(from->msg, p), p->bytes);
    *bytes = p->bytes;
    return WF_OK;
}

wf_status wf_state_get(const wf_msg *m, const Weft__SliceState *head, wf_slice *s, wf_err *err)
{
    state_source values = {.msg = m, .head = head};
    const wf_slice_source from = {
        .arg = &values, .dtype = dtype_of, .read = read_state, .read_all = read_all_state};
    uint32_t n;

    WF_TRY(wf_parts_get(m, values.parts, &n, err));
    s->updates = head->updates;
    s->clock = head->clock;
    WF_TRY(s->ops->load(s, &from, wf_slice_is_frozen(s), err));
    WF_TRY(wf_seen_decode(&s->seen, head->seen.data, head->seen.len, err));
    if (s->ops->digest(s) != head->digest)
        return wf_fail(err, WF_CORRUPT, NULL, "slice %u is not what was sent", s->id);
    return WF_OK;
}
