/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/parts.c */
#include "common/wire/parts.h"
#include "common/wire/grammar.h"

#include <string.h>
#include <xxhash.h>

uint64_t wf_part_checksum(const void *data, size_t n)
{
    uint64_t sum = XXH3_64bits(data, n);

    return sum ? sum : 1;
}

/* A control part of a few words. */
static wf_status put_words(wf_msg *m, const uint32_t words[], uint32_t n, wf_err *err)
{
    uint8_t *to = wf_msg_control(m, n * sizeof(uint32_t));

    if (!to)
        return wf_fail_nomem(err, n * sizeof(uint32_t));
    for (uint32_t i = 0; i < n; i++)
        wf_put_u32(to + i * sizeof(uint32_t), words[i]);
    return WF_OK;
}

static wf_status get_words(const wf_msg *m, uint32_t words[], uint32_t n, wf_err *err)
{
    if (m->head.control_bytes != n * sizeof(uint32_t))
        return wf_fail(err, WF_PROTO, NULL, "a %s with %u control bytes",
                       wf_kind_name(m->head.kind), m->head.control_bytes);
    for (uint32_t i = 0; i < n; i++)
        words[i] = wf_get_u32(m->control + i * sizeof(uint32_t));
    return WF_OK;
}

wf_status wf_pull_put(wf_msg *m, wf_pull_body body, wf_err *err)
{
    return put_words(m, (uint32_t[]){body.list, body.after, body.clock}, 3, err);
}

wf_status wf_pull_get(const wf_msg *m, wf_pull_body *body, wf_err *err)
{
    uint32_t words[3] = {0};

    WF_TRY(get_words(m, words, 3, err));
    *body = (wf_pull_body){words[0], words[1], words[2]};
    return WF_OK;
}

wf_status wf_clock_put(wf_msg *m, wf_clock_body body, wf_err *err)
{
    return put_words(m, (uint32_t[]){body.state, body.clock}, 2, err);
}

wf_status wf_clock_get(const wf_msg *m, wf_clock_body *body, wf_err *err)
{
    uint32_t words[2] = {0};

    WF_TRY(get_words(m, words, 2, err));
    *body = (wf_clock_body){words[0], words[1]};
    if (body->state > WF_CLOCK_JOINS)
        return wf_fail(err, WF_PROTO, "upgrade this side", "a clock of state %u", body->state);
    return WF_OK;
}

const void *wf_part_data(const wf_msg *m, const wf_part *p)
{
    return m->frames[p->frame].data + p->offset;
}

wf_rows wf_part_rows(const wf_msg *m, const wf_part *p)
{
    const uint8_t *from = wf_part_data(m, p);

    if (p->codec != WF_CODEC_ROWS)
        return (wf_rows){0};
    return (wf_rows){.n = wf_get_u64(from), .ids = from + sizeof(uint64_t)};
}

const float *wf_part_values(const wf_msg *m, const wf_part *p, uint64_t *n)
{
    uint64_t head = p->codec == WF_CODEC_ROWS ? sizeof(uint64_t) * (1 + wf_part_rows(m, p).n) : 0;

    *n = (p->bytes - head) / sizeof(float);
    return (const float *)((const uint8_t *)wf_part_data(m, p) + head);
}

wf_status wf_parts_put(wf_msg *m, const wf_part parts[], uint32_t n, wf_err *err)
{
    uint8_t *to;

    if (n > WF_MAX_PARTS)
        return wf_fail(err, WF_FULL, NULL, "%u parts in one message, %d are allowed", n,
                       WF_MAX_PARTS);
    to = wf_msg_control(m, WF_PART_TABLE_BYTES + (size_t)n * WF_PART_BYTES);
    if (!to)
        return wf_fail_nomem(err, (size_t)n * WF_PART_BYTES);
    wf_put_u32(to, n);
    wf_put_u32(to + 4, 0);
    to += WF_PART_TABLE_BYTES;
    for (uint32_t i = 0; i < n; i++, to += WF_PART_BYTES) {
        wf_put_u32(to, parts[i].slice);
        to[4] = parts[i].codec;
        to[5] = parts[i].frame;
        wf_put_u16(to + 6, 0);
        wf_assert(parts[i].offset <= UINT32_MAX && parts[i].bytes <= UINT32_MAX);
        wf_put_u32(to + 8, (uint32_t)parts[i].offset);
        wf_put_u32(to + 12, (uint32_t)parts[i].bytes);
        wf_put_u64(to + 16, parts[i].version);
        wf_put_u64(to + 24, parts[i].checksum);
    }
    return WF_OK;
}

/* The number of rows comes from the sender: it is compared with the bytes before it is used. */
static wf_status check_rows(const wf_msg *m, const wf_part *p, wf_err *err)
{
    uint64_t room = p->bytes / sizeof(uint64_t), n = room ? wf_get_u64(wf_part_data(m, p)) : 0,
             rest;

    if (n == 0 || n > room - 1)
        return wf_fail(err, WF_PROTO, NULL, "a part of slice %u names %llu rows in %llu bytes",
                       p->slice, (unsigned long long)n, (unsigned long long)p->bytes);
    rest = p->bytes - (1 + n) * sizeof(uint64_t);
    if (rest == 0 || rest % (n * sizeof(float)))
        return wf_fail(err, WF_PROTO, NULL,
                       "a part of slice %u has %llu bytes of values for %llu rows", p->slice,
                       (unsigned long long)rest, (unsigned long long)n);
    return WF_OK;
}

static wf_status check_part(const wf_msg *m, const wf_part *p, wf_err *err)
{
    size_t room;

    if (p->codec == WF_CODEC_NONE && p->bytes == 0)
        return WF_OK;
    if (p->codec > WF_CODEC_BYTES)
        return wf_fail(err, WF_PROTO, "upgrade this side", "a part of slice %u has codec %u",
                       p->slice, p->codec);
    if (p->frame >= m->n_frames)
        return wf_fail(err, WF_PROTO, NULL, "a part of slice %u lies in frame %u of %u", p->slice,
                       p->frame, m->n_frames);
    room = m->frames[p->frame].bytes;
    if (p->offset > room || p->bytes > room - p->offset || p->offset % sizeof(float) ||
        (p->codec != WF_CODEC_BYTES && p->bytes % sizeof(float)))
        return wf_fail(err, WF_PROTO, NULL, "a part of slice %u lies outside its frame", p->slice);
    return p->codec == WF_CODEC_ROWS ? check_rows(m, p, err) : WF_OK;
}

static wf_part read_part(const uint8_t *from)
{
    return (wf_part){
        .slice = wf_get_u32(from),
        .codec = from[4],
        .frame = from[5],
        .offset = wf_get_u32(from + 8),
        .bytes = wf_get_u32(from + 12),
        .version = wf_get_u64(from + 16),
        .checksum = wf_get_u64(from + 24),
    };
}

/* The number of parts, if the table has the size for it. */
static wf_status count_parts(const wf_msg *m, uint32_t *n, wf_err *err)
{
    size_t bytes = m->head.control_bytes;

    *n = bytes >= WF_PART_TABLE_BYTES ? wf_get_u32(m->control) : 0;
    if (bytes < WF_PART_TABLE_BYTES || *n > WF_MAX_PARTS ||
        bytes != WF_PART_TABLE_BYTES + (size_t)*n * WF_PART_BYTES)
        return wf_fail(err, WF_PROTO, NULL, "a part table of %zu bytes cannot be", bytes);
    return WF_OK;
}

bool wf_parts_at(const wf_msg *m, uint32_t i, wf_part *p)
{
    uint32_t n;

    if (count_parts(m, &n, NULL) != WF_OK || i >= n)
        return false;
    *p = read_part(m->control + WF_PART_TABLE_BYTES + (size_t)i * WF_PART_BYTES);
    return true;
}

wf_status wf_parts_get(const wf_msg *m, wf_part parts[], uint32_t *n, wf_err *err)
{
    WF_TRY(count_parts(m, n, err));
    for (uint32_t i = 0; i < *n; i++) {
        parts[i] = read_part(m->control + WF_PART_TABLE_BYTES + (size_t)i * WF_PART_BYTES);
        WF_TRY(check_part(m, &parts[i], err));
    }
    return WF_OK;
}

wf_status wf_parts_verify(const wf_msg *m, wf_err *err)
{
    uint32_t n;

    WF_TRY(count_parts(m, &n, err));
    for (uint32_t i = 0; i < n; i++) {
        wf_part p = read_part(m->control + WF_PART_TABLE_BYTES + (size_t)i * WF_PART_BYTES);

        WF_TRY(check_part(m, &p, err));
        if (p.checksum && p.bytes && p.checksum != wf_part_checksum(wf_part_data(m, &p), p.bytes))
            return wf_fail(err, WF_CORRUPT, NULL, "the checksum of a part of slice %u differs",
                           p.slice);
    }
    return WF_OK;
}

wf_status wf_slices_put(wf_msg *m, const uint32_t slices[], uint32_t n, wf_err *err)
{
    uint8_t *to = wf_msg_control(m, n * sizeof(uint32_t));

    if (!to && n)
        return wf_fail_nomem(err, n * sizeof(uint32_t));
    for (uint32_t i = 0; i < n; i++)
        wf_put_u32(to + i * sizeof(uint32_t), slices[i]);
    return WF_OK;
}

wf_status wf_slices_get(const wf_msg *m, uint32_t slices[], uint32_t *n, wf_err *err)
{
    size_t bytes = m->head.control_bytes;

    if (bytes % sizeof(uint32_t) || bytes > WF_MAX_PARTS * sizeof(uint32_t))
        return wf_fail(err, WF_PROTO, NULL, "a list of slices of %zu bytes", bytes);
    *n = (uint32_t)(bytes / sizeof(uint32_t));
    for (uint32_t i = 0; i < *n; i++)
        slices[i] = wf_get_u32(m->control + i * sizeof(uint32_t));
    return WF_OK;
}
