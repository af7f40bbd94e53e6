/* SPDX-License-Identifier: Apache-2.0 */
/* ps/row_set.c */
#include "ps/row_set.h"
#include "common/base/cc.h"
#include "common/base/size.h"

enum { FAR = 24, NEAR = 12 /* rows ahead of a search: entries are fetched, then records */ };

void wf_row_set_init(wf_row_set *s, uint32_t body, bool ordered)
{
    uint32_t head = ordered ? WF_ROW_HEAD_ORDERED : WF_ROW_HEAD;

    *s = (wf_row_set){.ordered = ordered, .oldest = WF_NO_RECORD, .newest = WF_NO_RECORD};
    wf_records_init(&s->records, head * (uint32_t)sizeof(uint32_t) + body);
}

void wf_row_set_close(wf_row_set *s)
{
    wf_key_index_close(&s->index);
    wf_records_close(&s->records);
}

wf_status wf_row_set_reserve(wf_row_set *s, uint64_t more, wf_err *err)
{
    WF_TRY(wf_records_reserve(&s->records, more, err));
    return wf_key_index_reserve(&s->index, &s->records, more, err);
}

size_t wf_row_set_bytes(const wf_row_set *s)
{
    return wf_records_bytes(&s->records) + wf_key_index_bytes(&s->index);
}

/* ---- search ---- */

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

static uint32_t *words(const wf_row_set *s, int32_t row)
{
    return wf_records_at(&s->records, (uint32_t)row);
}

/* The link to a row from the one before it, and from the one behind it. */
static void link_up(wf_row_set *s, int32_t older, int32_t row)
{
    if (older == WF_NO_RECORD)
        s->oldest = row;
    else
        words(s, older)[WF_ROW_NEWER] = (uint32_t)row;
}

static void link_down(wf_row_set *s, int32_t newer, int32_t row)
{
    if (newer == WF_NO_RECORD)
        s->newest = row;
    else
        words(s, newer)[WF_ROW_OLDER] = (uint32_t)row;
}

static void unlink_row(wf_row_set *s, int32_t row)
{
    int32_t older = (int32_t)words(s, row)[WF_ROW_OLDER];
    int32_t newer = (int32_t)words(s, row)[WF_ROW_NEWER];

    link_up(s, older, newer);
    link_down(s, newer, older);
}

static void append(wf_row_set *s, int32_t row, uint32_t now)
{
    uint32_t *w = words(s, row);

    w[WF_ROW_USED] = now;
    w[WF_ROW_OLDER] = (uint32_t)s->newest;
    w[WF_ROW_NEWER] = (uint32_t)WF_NO_RECORD;
    link_up(s, s->newest, row);
    s->newest = row;
}

void wf_row_set_use(wf_row_set *s, int32_t row, uint32_t now)
{
    if (!s->ordered)
        return;
    unlink_row(s, row);
    append(s, row, now);
}

/* ---- rows come and go ---- */

int32_t wf_row_set_add(wf_row_set *s, uint64_t key, uint32_t now)
{
    uint32_t row = wf_records_add(&s->records, key);

    wf_key_index_add(&s->index, &s->records, row);
    if (s->ordered)
        append(s, (int32_t)row, now);
    return (int32_t)row;
}

/* The last record takes the place of the one that goes. */
static void move_last(wf_row_set *s, int32_t to)
{
    int32_t last = (int32_t)s->records.n - 1;

    wf_key_index_renumber(&s->index, &s->records, (uint32_t)last, (uint32_t)to);
    memcpy(words(s, to), words(s, last), s->records.each);
    if (!s->ordered)
        return;
    link_up(s, (int32_t)words(s, to)[WF_ROW_OLDER], to);
    link_down(s, (int32_t)words(s, to)[WF_ROW_NEWER], to);
}

void wf_row_set_remove(wf_row_set *s, int32_t row)
{
    wf_key_index_remove(&s->index, &s->records, (uint32_t)row);
    if (s->ordered)
        unlink_row(s, row);
    if ((uint32_t)row + 1 != s->records.n)
        move_last(s, row);
    wf_records_drop_last(&s->records);
}

void wf_row_set_trim(wf_row_set *s)
{
    wf_records_trim(&s->records);
    wf_key_index_trim(&s->index);
}
