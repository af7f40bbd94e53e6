/* SPDX-License-Identifier: Apache-2.0 */
/* ps/key_index.c */
#include "ps/key_index.h"
#include "common/base/cc.h"
#include "common/base/pages.h"
#include "common/base/size.h"

#include <stdbool.h>

enum {
    TAG = (1 << WF_TAG_BITS) - 1,
    LEAST_ROOM = 64,
    STEP = 16, /* homes that a change settles: all are settled before the array is full again */
    AHEAD = 16 /* places whose records are fetched before their homes are settled */
};

static uint32_t entry_of(uint32_t tag, uint32_t record)
{
    return (record + 1) << WF_TAG_BITS | (tag & TAG);
}

static uint32_t record_of(uint32_t entry)
{
    return (entry >> WF_TAG_BITS) - 1;
}

static uint64_t home_among(uint64_t homes, uint64_t stem)
{
    return (uint64_t)((unsigned __int128)(stem << (64 - WF_STEM_BITS)) * homes >> 64);
}

static bool grows(const wf_key_index *x)
{
    return x->homes > x->old_homes;
}

static uint64_t home(const wf_key_index *x, uint64_t stem)
{
    if (x->old_homes) {
        uint64_t old = home_among(x->old_homes, stem);

        if ((old < x->border) == grows(x))
            return old;
    }
    return home_among(x->homes, stem);
}

static uint64_t home_of(const wf_key_index *x, const wf_records *r, uint64_t at)
{
    return home(x, wf_records_stem(r, record_of(x->entries[at])));
}

static uint64_t after(const wf_key_index *x, uint64_t at)
{
    return at + 1 == x->room ? 0 : at + 1;
}

/* From one place on to another, around the end. */
static uint64_t distance(const wf_key_index *x, uint64_t from, uint64_t to)
{
    return to >= from ? to - from : to + x->room - from;
}

/* Memory for so many entries, the new ones free; false: there is none, and all is as it was. */
static bool resize(wf_key_index *x, uint64_t room)
{
    size_t each = sizeof *x->entries;
    uint32_t *entries = wf_pages_resize(x->entries, x->held * each, room * each);

    if (!entries && room)
        return false;
    x->entries = entries;
    x->held = room;
    return true;
}

void wf_key_index_close(wf_key_index *x)
{
    (void)resize(x, 0);
    *x = (wf_key_index){0};
}

/* ---- places ---- */

/* Of a key with the record's tag. */
static bool has_key(const wf_records *r, uint32_t i, uint64_t key)
{
    return wf_records_stem(r, i) == wf_stem_of(key) && wf_records_twig(r, i) == wf_twig_of(key);
}

/* The place of a key; false, and the free place where it would go, when it is not here. */
static bool find_place(const wf_key_index *x, const wf_records *r, uint64_t key, uint64_t *at)
{
    uint32_t entry;

    for (*at = home(x, wf_stem_of(key)); (entry = x->entries[*at]); *at = after(x, *at))
        if ((entry & TAG) == ((uint32_t)key & TAG) && has_key(r, record_of(entry), key))
            return true;
    return false;
}

/* The place of a record that is here. */
static uint64_t place_of(const wf_key_index *x, const wf_records *r, uint32_t i)
{
    uint64_t at = home(x, wf_records_stem(r, i));

    while (record_of(x->entries[at]) != i) {
        wf_assert(x->entries[at]);
        at = after(x, at);
    }
    return at;
}

static void insert(wf_key_index *x, uint64_t stem, uint32_t entry)
{
    uint64_t at = home(x, stem);

    while (x->entries[at])
        at = after(x, at);
    x->entries[at] = entry;
}

/* Frees a place. An entry behind it in the run takes the place unless it would then lie before its
 * home; so does one behind that. */
static void free_place(wf_key_index *x, const wf_records *r, uint64_t hole)
{
    for (uint64_t at = after(x, hole); x->entries[at]; at = after(x, at)) {
        if (distance(x, home_of(x, r, at), at) < distance(x, hole, at))
            continue;
        x->entries[hole] = x->entries[at];
        hole = at;
    }
    x->entries[hole] = 0;
}

/* ---- homes are settled anew ---- */

/* The first free place from a home on, or `at` if none before it is free. */
static uint64_t free_before(const wf_key_index *x, uint64_t from, uint64_t at)
{
    while (from != at && x->entries[from])
        from = after(x, from);
    return from;
}

/* I2 for the entries from a place on to the end of their run: their homes may have changed. */
static void settle_run(wf_key_index *x, const wf_records *r, uint64_t at)
{
    while (x->entries[at]) {
        uint64_t to = free_before(x, home_of(x, r, at), at);

        if (to == at) {
            at = after(x, at);
        } else {
            x->entries[to] = x->entries[at];
            free_place(x, r, at);
        }
    }
}

static void fetch_record(const wf_key_index *x, const wf_records *r, uint64_t at)
{
    if (at < x->old_homes && x->entries[at])
        WF_PREFETCH(wf_records_head(r, record_of(x->entries[at])));
}

/* Settles the homes of [begin, end), which has a whole run in an array that grows, and whose
 * entries find their new places behind it. */
static void settle_homes_of_run(wf_key_index *x, const wf_records *r, uint64_t begin, uint64_t end)
{
    x->border = begin;
    for (uint64_t at = begin; at < end; at++) {
        uint32_t entry = x->entries[at];

        fetch_record(x, r, at - AHEAD);
        x->entries[at] = 0;
        insert(x, wf_records_stem(r, record_of(entry)), entry);
    }
}

/* The homes before the border up to the begin of a run, or one. */
static void settle_down(wf_key_index *x, const wf_records *r)
{
    uint64_t begin = x->border, end = x->border;

    while (begin > 0 && x->entries[begin - 1])
        begin--;
    while (end < x->room && x->entries[end])
        end++;
    if (begin < x->border && end <= (unsigned __int128)begin * x->homes / x->old_homes) {
        settle_homes_of_run(x, r, begin, end);
    } else {
        fetch_record(x, r, x->border - AHEAD);
        settle_run(x, r, --x->border);
    }
}

/* The home at the border. */
static void settle_up(wf_key_index *x, const wf_records *r)
{
    fetch_record(x, r, x->border + AHEAD);
    x->border++;
    settle_run(x, r, x->border - 1);
}

/* All homes are settled; what lies beyond the end of an array that shrank goes around it. */
static void end_settling(wf_key_index *x, const wf_records *r)
{
    uint64_t room = x->room;

    x->old_homes = 0;
    x->room = x->homes;
    for (uint64_t at = x->room; at < room && x->entries[at]; at++) {
        insert(x, wf_records_stem(r, record_of(x->entries[at])), x->entries[at]);
        x->entries[at] = 0;
    }
    if (x->room < room)
        (void)resize(x, x->room);
}

/* Settles that many homes, or some more. */
static void settle_some(wf_key_index *x, const wf_records *r, uint64_t most)
{
    uint64_t from = x->border;

    while (x->old_homes && (grows(x) ? from - x->border : x->border - from) < most) {
        if (grows(x))
            settle_down(x, r);
        else
            settle_up(x, r);
        if (x->border == (grows(x) ? 0 : x->old_homes))
            end_settling(x, r);
    }
}

/* What had gone around the end of the smaller array comes back to it. */
static wf_status begin_growing(wf_key_index *x, const wf_records *r, uint64_t room, wf_err *err)
{
    if (room > x->held && !resize(x, room))
        return wf_fail_nomem(err, room * sizeof *x->entries);
    x->old_homes = x->border = x->homes;
    x->homes = x->room = room;
    settle_run(x, r, 0);
    return WF_OK;
}

/* Room for n, of which then 2/3 are in use: a fifth more than when 4/5 were. */
static uint64_t room_for(uint64_t n)
{
    return WF_MAX(n / 2 * 3 + 25, (uint64_t)LEAST_ROOM);
}

wf_status wf_key_index_reserve(wf_key_index *x, const wf_records *r, uint64_t more, wf_err *err)
{
    if (x->n + more <= x->homes / 5 * 4)
        return WF_OK;
    settle_some(x, r, UINT64_MAX);
    return begin_growing(x, r, room_for(x->n + more), err);
}

void wf_key_index_trim(wf_key_index *x)
{
    if (x->old_homes || x->room <= LEAST_ROOM || x->n >= x->room / 3)
        return;
    x->old_homes = x->homes;
    x->border = 0;
    x->homes = room_for(x->n);
}

/* ---- */

int32_t wf_key_index_find(const wf_key_index *x, const wf_records *r, uint64_t key)
{
    uint64_t at;

    return x->room && find_place(x, r, key, &at) ? (int32_t)record_of(x->entries[at])
                                                 : WF_NO_RECORD;
}

void wf_key_index_prefetch(const wf_key_index *x, uint64_t key)
{
    if (x->room)
        WF_PREFETCH(&x->entries[home(x, wf_stem_of(key))]);
}

void wf_key_index_prefetch_record(const wf_key_index *x, const wf_records *r, uint64_t key)
{
    if (!x->room)
        return;
    for (uint64_t at = home(x, wf_stem_of(key)); x->entries[at]; at = after(x, at))
        if ((x->entries[at] & TAG) == ((uint32_t)key & TAG)) {
            WF_PREFETCH(wf_records_head(r, record_of(x->entries[at])));
            if (wf_records_noted(r))
                WF_PREFETCH(wf_records_note(r, record_of(x->entries[at])));
            return;
        }
}

uint64_t wf_key_index_key(const wf_key_index *x, const wf_records *r, uint32_t i)
{
    uint64_t above = wf_records_stem(r, i) << WF_TWIG_BITS | wf_records_twig(r, i);

    return above << WF_TAG_BITS | (x->entries[place_of(x, r, i)] & TAG);
}

void wf_key_index_prefetch_key(const wf_key_index *x, const wf_records *r, uint32_t i)
{
    WF_PREFETCH(&x->entries[home(x, wf_records_stem(r, i))]);
}

void wf_key_index_add(wf_key_index *x, const wf_records *r, uint32_t i, uint64_t key)
{
    insert(x, wf_stem_of(key), entry_of((uint32_t)key, i));
    x->n++;
    settle_some(x, r, STEP);
}

void wf_key_index_remove(wf_key_index *x, const wf_records *r, uint32_t i)
{
    free_place(x, r, place_of(x, r, i));
    x->n--;
    settle_some(x, r, STEP);
}

void wf_key_index_renumber(wf_key_index *x, const wf_records *r, uint32_t from, uint32_t to)
{
    uint64_t at = place_of(x, r, from);

    x->entries[at] = entry_of(x->entries[at], to);
}

size_t wf_key_index_bytes(const wf_key_index *x)
{
    return x->held * sizeof *x->entries;
}
