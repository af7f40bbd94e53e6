/* SPDX-License-Identifier: Apache-2.0 */
/* ps/key_index.c */
#include "ps/key_index.h"
#include "common/base/cc.h"
#include "common/base/row_key.h"
#include "common/base/size.h"

#include <stdlib.h>

enum {
    TAG_BITS = 7,
    TAG = (1 << TAG_BITS) - 1,
    LEAST_ROOM = 64,
    STEP = 8,  /* entries that a change moves: all have moved before the new array is full */
    AHEAD = 16 /* records whose keys are fetched before they are moved */
};

static uint32_t entry_of(uint64_t key, uint32_t record)
{
    return (record + 1) << TAG_BITS | ((uint32_t)key & TAG);
}

static uint32_t record_of(uint32_t entry)
{
    return (entry >> TAG_BITS) - 1;
}

static uint64_t home(const struct wf_key_array *a, uint64_t key)
{
    return (uint64_t)((unsigned __int128)(key << WF_ROW_BUCKET_BITS) * a->room >> 64);
}

static uint64_t after(const struct wf_key_array *a, uint64_t at)
{
    return at + 1 == a->room ? 0 : at + 1;
}

/* From one place on to another, around the end. */
static uint64_t distance(const struct wf_key_array *a, uint64_t from, uint64_t to)
{
    return to >= from ? to - from : to + a->room - from;
}

/* Whether the old array may have a key (I2). */
static bool may_be_old(const wf_key_index *x, uint64_t key)
{
    return x->old.entries && distance(&x->old, x->start, home(&x->old, key)) >= x->moved;
}

void wf_key_index_close(wf_key_index *x)
{
    free(x->now.entries);
    free(x->old.entries);
    *x = (wf_key_index){0};
}

/* ---- one array ---- */

static uint64_t most_of(uint64_t room)
{
    return room / 5 * 4;
}

/* The place of a key; false, and the free place where it would go, when it is not here. */
static bool find_place(const struct wf_key_array *a, const wf_records *r, uint64_t key,
                       uint64_t *at)
{
    uint32_t entry;

    for (*at = home(a, key); (entry = a->entries[*at]); *at = after(a, *at))
        if ((entry & TAG) == ((uint32_t)key & TAG) && wf_records_key(r, record_of(entry)) == key)
            return true;
    return false;
}

/* The array that has a key, and its place there; NULL: none has. */
static const struct wf_key_array *find_array(const wf_key_index *x, const wf_records *r,
                                             uint64_t key, uint64_t *at)
{
    if (may_be_old(x, key) && find_place(&x->old, r, key, at))
        return &x->old;
    return x->now.room && find_place(&x->now, r, key, at) ? &x->now : NULL;
}

/* The same of a key that is here. */
static struct wf_key_array *array_with(wf_key_index *x, const wf_records *r, uint64_t key,
                                       uint64_t *at)
{
    const struct wf_key_array *a = find_array(x, r, key, at);

    wf_assert(a);
    return a == &x->old ? &x->old : &x->now;
}

static void insert(struct wf_key_array *a, uint64_t key, uint32_t record)
{
    uint64_t at = home(a, key);

    while (a->entries[at])
        at = after(a, at);
    a->entries[at] = entry_of(key, record);
    a->n++;
}

/* Frees a place. An entry behind it in the run takes the place unless it would then lie before its
 * home; so does one behind that. */
static void free_place(struct wf_key_array *a, const wf_records *r, uint64_t hole)
{
    for (uint64_t at = after(a, hole); a->entries[at]; at = after(a, at)) {
        uint64_t from = home(a, wf_records_key(r, record_of(a->entries[at])));

        if (distance(a, from, at) < distance(a, hole, at))
            continue;
        a->entries[hole] = a->entries[at];
        hole = at;
    }
    a->entries[hole] = 0;
    a->n--;
}

/* ---- from the old array to the new ---- */

static void fetch_ahead(const wf_key_index *x, const wf_records *r, uint64_t at)
{
    uint64_t ahead = at + AHEAD < x->old.room ? at + AHEAD : at + AHEAD - x->old.room;
    uint32_t entry = x->old.entries[ahead];

    if (entry)
        WF_PREFETCH(wf_records_at(r, record_of(entry)));
}

/* Moves at least `most` places on, and on to the end of a run: a key lies at its home or behind it
 * in the same run. No run goes over the place that it began with, which is free and stays so. */
static void move_some(wf_key_index *x, const wf_records *r, uint64_t most)
{
    struct wf_key_array *old = &x->old;
    uint64_t at = old->entries ? (x->start + x->moved) % old->room : 0;

    for (uint64_t i = 0; old->entries && (i < most || old->entries[at]); i++) {
        uint32_t entry = old->entries[at];

        if (entry) {
            insert(&x->now, wf_records_key(r, record_of(entry)), record_of(entry));
            old->entries[at] = 0;
            old->n--;
        }
        fetch_ahead(x, r, at);
        at = after(old, at);
        if (++x->moved == old->room) {
            wf_assert(old->n == 0);
            free(old->entries);
            *old = (struct wf_key_array){0};
        }
    }
}

/* A new array, to which the entries will move. */
static wf_status begin_move(wf_key_index *x, uint64_t room, wf_err *err)
{
    uint32_t *entries = calloc(room, sizeof *entries);

    wf_assert(!x->old.entries);
    if (!entries)
        return wf_fail_nomem(err, room * sizeof *entries);
    x->old = x->now;
    x->now = (struct wf_key_array){.entries = entries, .room = room};
    x->start = x->moved = 0;
    while (x->old.entries && x->old.entries[x->start]) /* I1: some place is free */
        x->start++;
    return WF_OK;
}

/* Room for n, of which then 2/3 are in use: a fifth more than when 4/5 were. */
static uint64_t room_for(uint64_t n)
{
    return WF_MAX(n / 2 * 3 + 25, (uint64_t)LEAST_ROOM);
}

wf_status wf_key_index_reserve(wf_key_index *x, const wf_records *r, uint64_t more, wf_err *err)
{
    uint64_t n = x->now.n + x->old.n + more;

    if (n <= most_of(x->now.room))
        return WF_OK;
    move_some(x, r, UINT64_MAX);
    return begin_move(x, room_for(n), err);
}

/* ---- */

int32_t wf_key_index_find(const wf_key_index *x, const wf_records *r, uint64_t key)
{
    uint64_t at;
    const struct wf_key_array *a = find_array(x, r, key, &at);

    return a ? (int32_t)record_of(a->entries[at]) : WF_NO_RECORD;
}

/* The array that a search for the key begins in; NULL: there is none. */
static const struct wf_key_array *first_array(const wf_key_index *x, uint64_t key)
{
    return may_be_old(x, key) ? &x->old : x->now.room ? &x->now : NULL;
}

void wf_key_index_prefetch(const wf_key_index *x, uint64_t key)
{
    const struct wf_key_array *a = first_array(x, key);

    if (a)
        WF_PREFETCH(&a->entries[home(a, key)]);
}

void wf_key_index_prefetch_record(const wf_key_index *x, const wf_records *r, uint64_t key)
{
    const struct wf_key_array *a = first_array(x, key);
    uint64_t at = a ? home(a, key) : 0;

    for (uint32_t entry; a && (entry = a->entries[at]); at = after(a, at))
        if ((entry & TAG) == ((uint32_t)key & TAG)) {
            WF_PREFETCH(wf_records_at(r, record_of(entry)));
            return;
        }
}

void wf_key_index_add(wf_key_index *x, const wf_records *r, uint32_t i)
{
    insert(&x->now, wf_records_key(r, i), i);
    move_some(x, r, STEP);
}

void wf_key_index_remove(wf_key_index *x, const wf_records *r, uint32_t i)
{
    uint64_t at;
    struct wf_key_array *a = array_with(x, r, wf_records_key(r, i), &at);

    free_place(a, r, at);
    move_some(x, r, STEP);
}

void wf_key_index_renumber(wf_key_index *x, const wf_records *r, uint32_t from, uint32_t to)
{
    uint64_t key = wf_records_key(r, from), at;
    struct wf_key_array *a = array_with(x, r, key, &at);

    a->entries[at] = entry_of(key, to);
}

void wf_key_index_trim(wf_key_index *x)
{
    if (!x->old.entries && x->now.room > LEAST_ROOM && x->now.n < x->now.room / 4)
        (void)!begin_move(x, room_for(x->now.n), NULL);
}

size_t wf_key_index_bytes(const wf_key_index *x)
{
    return (x->now.room + x->old.room) * sizeof(uint32_t);
}
