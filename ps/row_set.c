/* SPDX-License-Identifier: Apache-2.0 */
/* ps/row_set.c */
#include "ps/row_set.h"
#include "common/base/cc.h"
#include "common/base/size.h"

enum { FAR = 24, NEAR = 12 /* rows ahead of a search: entries are fetched, then records */ };

static void init(wf_row_set *s, uint32_t bucket, uint32_t body, bool ordered, wf_record_notes notes)
{
    *s = (wf_row_set){.ordered = ordered, .bucket = (uint64_t)bucket << (64 - WF_ROW_BUCKET_BITS)};
    wf_row_order_init(&s->order);
    wf_records_init(&s->records, body, ordered ? WF_ROW_ORDER_HEAD : WF_STEM_HEAD, notes);
}

void wf_row_set_init(wf_row_set *s, uint32_t bucket, uint32_t body, bool ordered)
{
    init(s, bucket, body, ordered, ordered ? WF_ORDER_NOTE : WF_NO_NOTES);
}

void wf_row_set_init_noted(wf_row_set *s, uint32_t bucket, uint32_t body)
{
    init(s, bucket, body, true, WF_ORDER_AND_OWNERS_NOTE);
}

void wf_row_set_close(wf_row_set *s)
{
    wf_key_index_close(&s->index);
    wf_row_order_close(&s->order);
    wf_records_close(&s->records);
}

wf_status wf_row_set_reserve(wf_row_set *s, uint64_t more, uint64_t eras, wf_err *err)
{
    if (s->ordered)
        WF_TRY(wf_row_order_reserve(&s->order, eras, err));
    WF_TRY(wf_records_reserve(&s->records, more, err));
    return wf_key_index_reserve(&s->index, &s->records, more, err);
}

size_t wf_row_set_bytes(const wf_row_set *s)
{
    return wf_records_bytes(&s->records) + wf_key_index_bytes(&s->index) +
           wf_row_order_bytes(&s->order);
}

/* ---- search ---- */

uint64_t wf_row_set_key(const wf_row_set *s, int32_t row)
{
    return s->bucket | wf_key_index_key(&s->index, &s->records, (uint32_t)row);
}

void wf_row_set_prefetch_key(const wf_row_set *s, int32_t row)
{
    wf_key_index_prefetch_key(&s->index, &s->records, (uint32_t)row);
}

int32_t wf_row_set_find(const wf_row_set *s, uint64_t key)
{
    return wf_key_index_find(&s->index, &s->records, key);
}

void wf_row_set_find_all(const wf_row_set *s, const wf_rows *rows, uint64_t first, uint64_t n,
                         int32_t out[])
{
    uint64_t end = first + n;

    for (uint64_t i = first; i < WF_MIN(first + FAR, end); i++)
        wf_key_index_prefetch(&s->index, wf_row_id(rows, i));
    for (uint64_t i = first; i < end; i++) {
        if (i + FAR < end)
            wf_key_index_prefetch(&s->index, wf_row_id(rows, i + FAR));
        if (i + NEAR < end)
            wf_key_index_prefetch_record(&s->index, &s->records, wf_row_id(rows, i + NEAR));
        out[i - first] = wf_row_set_find(s, wf_row_id(rows, i));
    }
}

/* ---- the order ---- */

void wf_row_set_use(wf_row_set *s, int32_t row, uint32_t now)
{
    if (!s->ordered)
        return;
    wf_row_order_remove(&s->order, &s->records, row);
    wf_row_order_append(&s->order, &s->records, row, now);
}

void wf_row_set_prefetch_use(const wf_row_set *s, int32_t row)
{
    if (s->ordered)
        wf_row_order_prefetch(&s->records, row);
}

static wf_row_use by_number(const wf_row_set *s, int32_t row)
{
    return (wf_row_use){.row = (uint32_t)row < s->records.n ? row : WF_NO_RECORD};
}

wf_row_use wf_row_set_first(const wf_row_set *s)
{
    return s->ordered ? wf_row_order_oldest(&s->order, &s->records) : by_number(s, 0);
}

wf_row_use wf_row_set_next(const wf_row_set *s, wf_row_use at)
{
    return s->ordered ? wf_row_order_newer(&s->order, &s->records, at) : by_number(s, at.row + 1);
}

/* ---- rows come and go ---- */

int32_t wf_row_set_add(wf_row_set *s, uint64_t key, uint32_t now)
{
    uint32_t row = wf_records_add(&s->records, key);

    wf_key_index_add(&s->index, &s->records, row, key);
    if (s->ordered)
        wf_row_order_append(&s->order, &s->records, (int32_t)row, now);
    return (int32_t)row;
}

/* The last record takes the place of the one that goes. */
static void move_last(wf_row_set *s, int32_t to)
{
    int32_t last = (int32_t)s->records.n - 1;

    wf_key_index_renumber(&s->index, &s->records, (uint32_t)last, (uint32_t)to);
    wf_records_copy(&s->records, (uint32_t)last, (uint32_t)to);
    if (s->ordered)
        wf_row_order_renumber(&s->order, &s->records, last, to);
}

void wf_row_set_remove(wf_row_set *s, int32_t row)
{
    wf_key_index_remove(&s->index, &s->records, (uint32_t)row);
    if (s->ordered)
        wf_row_order_remove(&s->order, &s->records, row);
    if ((uint32_t)row + 1 != s->records.n)
        move_last(s, row);
    wf_records_drop_last(&s->records);
}

void wf_row_set_trim(wf_row_set *s)
{
    wf_records_trim(&s->records);
    wf_key_index_trim(&s->index);
}
