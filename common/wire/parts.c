/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/parts.c */
#include "common/wire/parts.h"
#include "common/base/cc.h"
#include "common/base/size.h"
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

enum { DECISION_BYTES = 2 * sizeof(uint32_t) };

wf_status wf_decided_put(wf_msg *m, const wf_decision *d, wf_err *err)
{
    size_t size = DECISION_BYTES + d->n * sizeof *d->workers;
    uint8_t *to = wf_msg_control(m, size);

    if (!to)
        return wf_fail_nomem(err, size);
    wf_put_u32(to, d->clock);
    wf_put_u32(to + sizeof d->clock, d->before);
    to += DECISION_BYTES;
    for (uint32_t i = 0; i < d->n; i++)
        wf_put_u64(to + i * sizeof *d->workers, d->workers[i]);
    return WF_OK;
}

wf_status wf_decided_get(const wf_msg *m, wf_decision *d, wf_err *err)
{
    size_t size = m->head.control_bytes, rows = size - DECISION_BYTES;

    if (size < DECISION_BYTES || rows % sizeof *d->workers ||
        rows / sizeof *d->workers > WF_MAX_CONTRIBUTORS)
        return wf_fail(err, WF_PROTO, NULL, "a decision of %zu control bytes", size);
    d->clock = wf_get_u32(m->control);
    d->before = wf_get_u32(m->control + sizeof d->clock);
    if (d->before >= d->clock)
        return wf_fail(err, WF_PROTO, NULL, "a decision on clock %u that follows %u", d->clock,
                       d->before);
    d->n = (uint32_t)(rows / sizeof *d->workers);
    for (uint32_t i = 0; i < d->n; i++)
        d->workers[i] = wf_get_u64(m->control + DECISION_BYTES + i * sizeof *d->workers);
    return WF_OK;
}

const void *wf_part_data(const wf_msg *m, const wf_part *p)
{
    return m->frames[p->frame].data + p->offset;
}

wf_rows wf_part_rows(const wf_msg *m, const wf_part *p)
{
    const wf_part_range *at = &p->ids;

    if (p->codec != WF_CODEC_ROWS && p->codec != WF_CODEC_IDS)
        return (wf_rows){0};
    return (wf_rows){.n = at->bytes / sizeof(uint64_t),
                     .ids = m->frames[at->frame].data + at->offset};
}

WF_MULTIVERSION
bool wf_rows_rise(const wf_rows *r)
{
    uint64_t falls = 0;

    for (uint64_t i = 1; i < r->n; i++)
        falls |= wf_row_id(r, i) <= wf_row_id(r, i - 1);
    return !falls;
}

wf_coded wf_part_coded(const wf_msg *m, const wf_part *p)
{
    wf_coded c = {.coding = (wf_coding)p->coding, .data = wf_part_data(m, p), .bytes = p->bytes};

    wf_assert(wf_coded_count(&c));
    return c;
}

/* ---- writing a table ---- */

static uint32_t entries_of(const wf_part *p)
{
    return p->codec == WF_CODEC_ROWS ? 2 : 1;
}

static void put_entry(uint8_t *to, uint32_t slice, uint8_t codec, uint8_t coding,
                      const wf_part_range *at, uint64_t version)
{
    wf_assert(at->offset <= UINT32_MAX && at->bytes <= UINT32_MAX);
    wf_put_u32(to, slice);
    to[4] = codec;
    to[5] = at->frame;
    to[6] = coding;
    to[7] = 0;
    wf_put_u32(to + 8, (uint32_t)at->offset);
    wf_put_u32(to + 12, (uint32_t)at->bytes);
    wf_put_u64(to + 16, version);
    wf_put_u64(to + 24, at->checksum);
}

/* Bytes of words that precede the table of a message. */
static size_t before_table(const wf_msg *m)
{
    if (m->head.kind == WF_PULL)
        return WF_PULL_BYTES;
    return m->head.kind == WF_PUSH ? WF_PUSH_BYTES : 0;
}

/* The words that may precede it are zeros, for the caller to fill. */
wf_status wf_parts_put(wf_msg *m, const wf_part parts[], uint32_t n, wf_err *err)
{
    size_t before = before_table(m);
    uint32_t entries = 0;
    uint8_t *to;

    for (uint32_t i = 0; n <= WF_MAX_PARTS && i < n; i++)
        entries += entries_of(&parts[i]);
    if (WF_MAX(n, entries) > WF_MAX_PARTS)
        return wf_fail(err, WF_FULL, NULL, "%u parts in one message, %d are allowed",
                       WF_MAX(n, entries), WF_MAX_PARTS);
    to = wf_msg_control(m, before + WF_PART_TABLE_BYTES + (size_t)entries * WF_PART_BYTES);
    if (!to)
        return wf_fail_nomem(err, (size_t)entries * WF_PART_BYTES);
    memset(to, 0, before);
    to += before;
    wf_put_u32(to, entries);
    wf_put_u32(to + 4, 0);
    to += WF_PART_TABLE_BYTES;
    for (uint32_t i = 0; i < n; i++) {
        const wf_part *p = &parts[i];

        if (p->codec != WF_CODEC_IDS) {
            wf_part_range values = {p->frame, p->offset, p->bytes, p->checksum};

            put_entry(to, p->slice, p->codec, p->coding, &values, p->version);
            to += WF_PART_BYTES;
        }
        if (p->codec == WF_CODEC_IDS || p->codec == WF_CODEC_ROWS) {
            put_entry(to, p->slice, WF_CODEC_IDS, 0, &p->ids, 0);
            to += WF_PART_BYTES;
        }
    }
    return WF_OK;
}

wf_status wf_pull_put(wf_msg *m, wf_pull_body body, const wf_part rows[], uint32_t n, wf_err *err)
{
    WF_TRY(wf_parts_put(m, rows, n, err));
    wf_put_u32(m->control, body.list);
    wf_put_u32(m->control + 4, body.after);
    wf_put_u32(m->control + 8, body.clock);
    return WF_OK;
}

wf_status wf_push_put(wf_msg *m, wf_push_body body, const wf_part parts[], uint32_t n, wf_err *err)
{
    WF_TRY(wf_parts_put(m, parts, n, err));
    wf_put_u32(m->control, body.clock);
    wf_put_u32(m->control + 4, body.records);
    return WF_OK;
}

/* ---- reading one ---- */

static wf_status check_inside(const wf_msg *m, uint32_t slice, const wf_part_range *at, size_t unit,
                              wf_err *err)
{
    size_t room;

    if (at->frame >= m->n_frames)
        return wf_fail(err, WF_PROTO, NULL, "a part of slice %u lies in frame %u of %u", slice,
                       at->frame, m->n_frames);
    room = m->frames[at->frame].bytes;
    if (at->offset > room || at->bytes > room - at->offset || at->offset % sizeof(float) ||
        at->bytes % unit)
        return wf_fail(err, WF_PROTO, NULL, "a part of slice %u lies outside its frame", slice);
    return WF_OK;
}

/* Both ranges lie in their frames. */
static wf_status check_rows(const wf_msg *m, const wf_part *p, wf_err *err)
{
    uint64_t n = p->ids.bytes / sizeof(uint64_t);

    WF_TRY(check_inside(m, p->slice, &p->ids, sizeof(uint64_t), err));
    if (n == 0)
        return wf_fail(err, WF_PROTO, NULL, "a part of slice %u names no rows", p->slice);
    if (p->codec == WF_CODEC_ROWS &&
        (p->bytes == 0 || p->coding == WF_CODING_TOPK || wf_part_coded(m, p).n % n))
        return wf_fail(err, WF_PROTO, NULL,
                       "a part of slice %u has %llu bytes of values for %llu rows", p->slice,
                       (unsigned long long)p->bytes, (unsigned long long)n);
    return WF_OK;
}

/* The least bytes that a number of a part has; of top-k, whose head and pairs are of 4 bytes. */
static size_t unit_of(const wf_part *p)
{
    if (p->codec == WF_CODEC_BYTES || p->coding == WF_CODING_INT8)
        return 1;
    return p->coding == WF_CODING_BF16 || p->coding == WF_CODING_F16 ? 2 : sizeof(float);
}

/* The bytes, which lie in their frame, are whole numbers. */
static wf_status check_coding(const wf_msg *m, const wf_part *p, wf_err *err)
{
    wf_coded c = {.coding = (wf_coding)p->coding, .bytes = p->bytes};

    if (p->coding >= WF_N_CODINGS || (p->coding && p->codec > WF_CODEC_ROWS))
        return wf_fail(err, WF_PROTO, "upgrade this side", "a part of slice %u has coding %u",
                       p->slice, p->coding);
    if (p->codec == WF_CODEC_BYTES)
        return WF_OK;
    c.data = wf_part_data(m, p);
    if (!wf_coded_count(&c))
        return wf_fail(err, WF_PROTO, NULL, "a part of slice %u has %llu bytes of %s", p->slice,
                       (unsigned long long)p->bytes, wf_coding_name(p->coding));
    return WF_OK;
}

static wf_status check_part(const wf_msg *m, const wf_part *p, wf_err *err)
{
    wf_part_range values = {p->frame, p->offset, p->bytes, 0};

    if (p->codec == WF_CODEC_NONE && p->bytes == 0)
        return WF_OK;
    if (p->codec > WF_CODEC_IDS)
        return wf_fail(err, WF_PROTO, "upgrade this side", "a part of slice %u has codec %u",
                       p->slice, p->codec);
    if ((p->codec == WF_CODEC_IDS) != (m->head.kind == WF_PULL))
        return wf_fail(err, WF_PROTO, NULL, "a %s with a part of codec %u",
                       wf_kind_name(m->head.kind), p->codec);
    if (p->codec != WF_CODEC_IDS) {
        WF_TRY(check_inside(m, p->slice, &values, unit_of(p), err));
        WF_TRY(check_coding(m, p, err));
    }
    return p->codec == WF_CODEC_ROWS || p->codec == WF_CODEC_IDS ? check_rows(m, p, err) : WF_OK;
}

static wf_part read_entry(const uint8_t *from)
{
    return (wf_part){
        .slice = wf_get_u32(from),
        .codec = from[4],
        .frame = from[5],
        .coding = from[6],
        .offset = wf_get_u32(from + 8),
        .bytes = wf_get_u32(from + 12),
        .version = wf_get_u64(from + 16),
        .checksum = wf_get_u64(from + 24),
    };
}

/* The number of entries, if the table has the size for it. */
static wf_status count_entries(const wf_msg *m, uint32_t *n, wf_err *err)
{
    size_t before = before_table(m), bytes = m->head.control_bytes;
    size_t least = before + WF_PART_TABLE_BYTES;

    *n = bytes >= least ? wf_get_u32(m->control + before) : 0;
    if (bytes < least || *n > WF_MAX_PARTS || bytes != least + (size_t)*n * WF_PART_BYTES)
        return wf_fail(err, WF_PROTO, NULL, "a part table of %zu bytes cannot be", bytes);
    return WF_OK;
}

bool wf_parts_at(const wf_msg *m, uint32_t i, wf_part *p)
{
    uint32_t n;

    if (count_entries(m, &n, NULL) != WF_OK || i >= n)
        return false;
    *p = read_entry(m->control + before_table(m) + WF_PART_TABLE_BYTES + (size_t)i * WF_PART_BYTES);
    return true;
}

/* The part that begins with entry *i of n, which moves on. */
static wf_status read_part(const wf_msg *m, uint32_t *i, wf_part *p, wf_err *err)
{
    wf_part ids;

    wf_assert(wf_parts_at(m, *i, p));
    ids = *p;
    ++*i;
    if (p->codec == WF_CODEC_ROWS &&
        (!wf_parts_at(m, (*i)++, &ids) || ids.codec != WF_CODEC_IDS || ids.slice != p->slice))
        return wf_fail(err, WF_PROTO, NULL, "a part of slice %u has rows, and no ids behind it",
                       p->slice);
    if (p->codec == WF_CODEC_ROWS || p->codec == WF_CODEC_IDS)
        p->ids = (wf_part_range){ids.frame, ids.offset, ids.bytes, ids.checksum};
    return check_part(m, p, err);
}

wf_status wf_parts_get(const wf_msg *m, wf_part parts[], uint32_t *n, wf_err *err)
{
    uint32_t entries;

    *n = 0;
    WF_TRY(count_entries(m, &entries, err));
    for (uint32_t i = 0; i < entries;)
        WF_TRY(read_part(m, &i, &parts[(*n)++], err));
    return WF_OK;
}

wf_status wf_pull_get(const wf_msg *m, wf_pull_body *body, wf_part rows[], uint32_t *n, wf_err *err)
{
    WF_TRY(wf_parts_get(m, rows, n, err));
    *body = (wf_pull_body){wf_get_u32(m->control), wf_get_u32(m->control + 4),
                           wf_get_u32(m->control + 8)};
    return WF_OK;
}

wf_status wf_push_get(const wf_msg *m, wf_push_body *body, wf_part parts[], uint32_t *n,
                      wf_err *err)
{
    WF_TRY(wf_parts_get(m, parts, n, err));
    *body = (wf_push_body){wf_get_u32(m->control), wf_get_u32(m->control + 4)};
    return WF_OK;
}

static wf_status verify(const wf_msg *m, uint32_t slice, const wf_part_range *at, wf_err *err)
{
    if (at->checksum && at->bytes &&
        at->checksum != wf_part_checksum(m->frames[at->frame].data + at->offset, at->bytes))
        return wf_fail(err, WF_CORRUPT, NULL, "the checksum of a part of slice %u differs", slice);
    return WF_OK;
}

wf_status wf_parts_verify(const wf_msg *m, wf_err *err)
{
    uint32_t entries;

    WF_TRY(count_entries(m, &entries, err));
    for (uint32_t i = 0; i < entries;) {
        wf_part_range values;
        wf_part p;

        WF_TRY(read_part(m, &i, &p, err));
        values = (wf_part_range){p.frame, p.offset, p.bytes, p.checksum};
        if (p.codec != WF_CODEC_IDS)
            WF_TRY(verify(m, p.slice, &values, err));
        WF_TRY(verify(m, p.slice, &p.ids, err));
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
