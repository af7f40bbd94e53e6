/* SPDX-License-Identifier: Apache-2.0 */
/* ps/row_order.c */
#include "ps/row_order.h"
#include "common/base/cc.h"
#include "common/base/size.h"

#include <stdbool.h>
#include <stdlib.h>

enum {
    KEY_WORDS = 2,
    NUMBER_BITS = 25,
    NONE = (1 << NUMBER_BITS) - 1, /* for WF_NO_RECORD */
    LOW_BITS = 13,                 /* and one for the mark: 64 in all */
    LOW = (1 << LOW_BITS) - 1,
    LEAST_ROOM = 4
};

_Static_assert((int)WF_RECORDS_MOST <= (int)NONE, "a record's number takes NUMBER_BITS");

typedef struct links {
    int32_t older, newer;
    uint32_t low; /* bits of the last use */
    bool marked;
} links;

static int32_t number_of(uint64_t bits)
{
    return (bits & NONE) == NONE ? WF_NO_RECORD : (int32_t)(bits & NONE);
}

static links get(const wf_records *r, int32_t row)
{
    uint64_t bits;

    memcpy(&bits, wf_records_at(r, (uint32_t)row) + KEY_WORDS, sizeof bits);
    return (links){.older = number_of(bits),
                   .newer = number_of(bits >> NUMBER_BITS),
                   .low = (uint32_t)(bits >> 2 * NUMBER_BITS) & LOW,
                   .marked = bits >> 63};
}

static void put(const wf_records *r, int32_t row, links l)
{
    uint64_t bits = ((uint64_t)l.older & NONE) | ((uint64_t)l.newer & NONE) << NUMBER_BITS |
                    (uint64_t)l.low << 2 * NUMBER_BITS | (uint64_t)l.marked << 63;

    memcpy(wf_records_at(r, (uint32_t)row) + KEY_WORDS, &bits, sizeof bits);
}

static void set_newer(const wf_records *r, int32_t row, int32_t newer)
{
    links l = get(r, row);

    l.newer = newer;
    put(r, row, l);
}

/* The link to a record from the one behind it. */
static void set_older(wf_row_order *o, const wf_records *r, int32_t row, int32_t older)
{
    links l;

    if (row == WF_NO_RECORD) {
        o->newest = older;
        return;
    }
    l = get(r, row);
    l.older = older;
    put(r, row, l);
}

static void mark(const wf_records *r, int32_t row)
{
    links l = get(r, row);

    l.marked = true;
    put(r, row, l);
}

void wf_row_order_init(wf_row_order *o)
{
    *o = (wf_row_order){.newest = WF_NO_RECORD};
}

void wf_row_order_close(wf_row_order *o)
{
    free(o->eras);
    wf_row_order_init(o);
}

wf_status wf_row_order_reserve(wf_row_order *o, uint64_t eras, wf_err *err)
{
    uint64_t n = o->n_eras + eras, room = WF_MAX(o->eras_room, (uint32_t)LEAST_ROOM);
    void *longer;

    if (n <= o->eras_room)
        return WF_OK;
    while (room < n)
        room *= 2;
    longer = realloc(o->eras, room * sizeof *o->eras);
    if (!longer)
        return wf_fail_nomem(err, room * sizeof *o->eras);
    o->eras = longer;
    o->eras_room = (uint32_t)room;
    return WF_OK;
}

uint32_t wf_row_order_era(uint32_t update)
{
    return update >> LOW_BITS;
}

/* The number of the era whose oldest record a marked one is. The oldest of all, which leaves
 * first, is found at once. */
static uint32_t era_of(const wf_row_order *o, int32_t row)
{
    uint32_t k = 0;

    while (k < o->n_eras && o->eras[k].oldest != row)
        k++;
    wf_assert(k < o->n_eras);
    return k;
}

void wf_row_order_append(wf_row_order *o, const wf_records *r, int32_t row, uint32_t now)
{
    uint32_t era = wf_row_order_era(now);
    bool begins = o->n_eras == 0 || o->eras[o->n_eras - 1].era != era;

    if (begins) {
        wf_assert(o->n_eras < o->eras_room);
        o->eras[o->n_eras++] = (struct wf_row_era){.era = era, .oldest = row};
    }
    put(r, row,
        (links){.older = o->newest, .newer = WF_NO_RECORD, .low = now & LOW, .marked = begins});
    if (o->newest != WF_NO_RECORD)
        set_newer(r, o->newest, row);
    o->newest = row;
}

/* The next newer record is then the oldest of the era, unless it is of another. */
static void end_era(wf_row_order *o, const wf_records *r, int32_t row, int32_t newer)
{
    uint32_t k = era_of(o, row);

    if (newer != WF_NO_RECORD && !get(r, newer).marked) {
        mark(r, newer);
        o->eras[k].oldest = newer;
        return;
    }
    o->n_eras--;
    memmove(o->eras + k, o->eras + k + 1, (o->n_eras - k) * sizeof *o->eras);
}

void wf_row_order_prefetch(const wf_records *r, int32_t row)
{
    links l = get(r, row);

    if (l.older != WF_NO_RECORD)
        WF_PREFETCH(wf_records_at(r, (uint32_t)l.older) + KEY_WORDS);
    if (l.newer != WF_NO_RECORD)
        WF_PREFETCH(wf_records_at(r, (uint32_t)l.newer) + KEY_WORDS);
}

void wf_row_order_remove(wf_row_order *o, const wf_records *r, int32_t row)
{
    links l = get(r, row);

    if (l.marked)
        end_era(o, r, row, l.newer);
    if (l.older != WF_NO_RECORD)
        set_newer(r, l.older, l.newer);
    set_older(o, r, l.newer, l.older);
}

void wf_row_order_renumber(wf_row_order *o, const wf_records *r, int32_t from, int32_t to)
{
    links l = get(r, to);

    if (l.marked)
        o->eras[era_of(o, from)].oldest = to;
    if (l.older != WF_NO_RECORD)
        set_newer(r, l.older, to);
    set_older(o, r, l.newer, to);
}

static wf_row_use use_of(const wf_row_order *o, int32_t row, uint32_t low, uint32_t era)
{
    return (wf_row_use){.row = row, .used = o->eras[era].era << LOW_BITS | low, .era = era};
}

wf_row_use wf_row_order_oldest(const wf_row_order *o, const wf_records *r)
{
    if (o->n_eras == 0)
        return (wf_row_use){.row = WF_NO_RECORD};
    return use_of(o, o->eras[0].oldest, get(r, o->eras[0].oldest).low, 0);
}

wf_row_use wf_row_order_newer(const wf_row_order *o, const wf_records *r, wf_row_use than)
{
    int32_t row = get(r, than.row).newer;
    links l;

    if (row == WF_NO_RECORD)
        return (wf_row_use){.row = WF_NO_RECORD};
    l = get(r, row);
    return use_of(o, row, l.low, than.era + l.marked);
}

size_t wf_row_order_bytes(const wf_row_order *o)
{
    return o->eras_room * sizeof *o->eras;
}
