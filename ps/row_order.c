/* SPDX-License-Identifier: Apache-2.0 */
/* ps/row_order.c */
#include "ps/row_order.h"
#include "common/base/cc.h"
#include "common/base/size.h"

#include <stdbool.h>
#include <stdlib.h>

enum {
    NUMBER_BITS = 25,
    NONE = (1 << NUMBER_BITS) - 1, /* for WF_NO_RECORD */
    LOW_BITS = 10,
    LOW = (1 << LOW_BITS) - 1,
    LEAST_ROOM = 4
};

_Static_assert((int)WF_RECORDS_MOST <= (int)NONE, "a record's number takes NUMBER_BITS");

enum {
    WORD = WF_ROW_ORDER_HEAD - (int)sizeof(uint64_t), /* where the last word of a head begins */
    OLDER = WF_STEM_BITS - 8 * WORD,                  /* and its bits */
    NEWER = OLDER + NUMBER_BITS,
    USED = WF_TWIG_BITS, /* bits of a note */
    MARK = USED + LOW_BITS
};

_Static_assert(NEWER + NUMBER_BITS == 64 && MARK == 15, "a head is full, and a note is");

typedef struct links {
    int32_t older, newer;
} links;

static uint8_t *word_of(const wf_records *r, int32_t row)
{
    return wf_records_head(r, (uint32_t)row) + WORD;
}

static uint16_t *note_of(const wf_records *r, int32_t row)
{
    return wf_records_note(r, (uint32_t)row);
}

static int32_t number_of(uint64_t bits)
{
    return (bits & NONE) == NONE ? WF_NO_RECORD : (int32_t)(bits & NONE);
}

static links get(const wf_records *r, int32_t row)
{
    uint64_t word;

    memcpy(&word, word_of(r, row), sizeof word);
    return (links){.older = number_of(word >> OLDER), .newer = number_of(word >> NEWER)};
}

static void set_number(const wf_records *r, int32_t row, int where, int32_t number)
{
    uint8_t *at = word_of(r, row);
    uint64_t word;

    memcpy(&word, at, sizeof word);
    word = (word & ~((uint64_t)NONE << where)) | ((uint64_t)number & NONE) << where;
    memcpy(at, &word, sizeof word);
}

static void set_newer(const wf_records *r, int32_t row, int32_t newer)
{
    set_number(r, row, NEWER, newer);
}

/* The link to a record from the one behind it. */
static void set_older(wf_row_order *o, const wf_records *r, int32_t row, int32_t older)
{
    if (row == WF_NO_RECORD)
        o->newest = older;
    else
        set_number(r, row, OLDER, older);
}

static uint32_t low_of(const wf_records *r, int32_t row)
{
    return *note_of(r, row) >> USED & LOW;
}

static bool marked(const wf_records *r, int32_t row)
{
    return *note_of(r, row) >> MARK;
}

static void mark(const wf_records *r, int32_t row)
{
    *note_of(r, row) |= 1 << MARK;
}

static void set_use(const wf_records *r, int32_t row, uint32_t now, bool begins_era)
{
    uint32_t twig = *note_of(r, row) & WF_TWIG;

    *note_of(r, row) = (uint16_t)(twig | (now & LOW) << USED | (uint32_t)begins_era << MARK);
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
    set_use(r, row, now, begins);
    set_number(r, row, OLDER, o->newest);
    set_newer(r, row, WF_NO_RECORD);
    if (o->newest != WF_NO_RECORD)
        set_newer(r, o->newest, row);
    o->newest = row;
}

/* The next newer record is then the oldest of the era, unless it is of another. */
static void end_era(wf_row_order *o, const wf_records *r, int32_t row, int32_t newer)
{
    uint32_t k = era_of(o, row);

    if (newer != WF_NO_RECORD && !marked(r, newer)) {
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
        WF_PREFETCH(word_of(r, l.older));
    if (l.newer != WF_NO_RECORD)
        WF_PREFETCH(word_of(r, l.newer));
}

void wf_row_order_remove(wf_row_order *o, const wf_records *r, int32_t row)
{
    links l = get(r, row);

    if (marked(r, row))
        end_era(o, r, row, l.newer);
    if (l.older != WF_NO_RECORD)
        set_newer(r, l.older, l.newer);
    set_older(o, r, l.newer, l.older);
}

void wf_row_order_renumber(wf_row_order *o, const wf_records *r, int32_t from, int32_t to)
{
    links l = get(r, to);

    if (marked(r, to))
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
    return use_of(o, o->eras[0].oldest, low_of(r, o->eras[0].oldest), 0);
}

wf_row_use wf_row_order_newer(const wf_row_order *o, const wf_records *r, wf_row_use than)
{
    int32_t row = get(r, than.row).newer;

    if (row == WF_NO_RECORD)
        return (wf_row_use){.row = WF_NO_RECORD};
    return use_of(o, row, low_of(r, row), than.era + marked(r, row));
}

size_t wf_row_order_bytes(const wf_row_order *o)
{
    return o->eras_room * sizeof *o->eras;
}
