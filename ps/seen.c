/* SPDX-License-Identifier: Apache-2.0 */
/* ps/seen.c - rows for few workers are searched in order, for many by a hash table with open
 * addressing: a push costs the same however many workers there are. */
#include "ps/seen.h"
#include "common/wire/header.h"

#include <stdlib.h>

enum { WINDOW = 64, FEW = 8, ROW_BYTES = 20 };

void wf_seen_close(wf_seen *s)
{
    free(s->rows);
    free(s->table);
    *s = (wf_seen){0};
}

/* Incarnations are random numbers: their low bits do. `room` is a power of two. */
static uint32_t home(const wf_seen *s, uint64_t incarnation)
{
    return (uint32_t)(incarnation ^ incarnation >> 32) & (2 * s->room - 1);
}

static void enter(wf_seen *s, uint32_t row)
{
    uint32_t i = home(s, s->rows[row].incarnation);

    while (s->table[i])
        i = (i + 1) & (2 * s->room - 1);
    s->table[i] = 1 + row;
}

static wf_seen_row *find(const wf_seen *s, uint64_t incarnation)
{
    if (!s->table) {
        for (uint32_t i = 0; i < s->n; i++)
            if (s->rows[i].incarnation == incarnation)
                return &s->rows[i];
        return NULL;
    }
    for (uint32_t i = home(s, incarnation); s->table[i]; i = (i + 1) & (2 * s->room - 1))
        if (s->rows[s->table[i] - 1].incarnation == incarnation)
            return &s->rows[s->table[i] - 1];
    return NULL;
}

static wf_status grow(wf_seen *s, wf_err *err)
{
    uint32_t room = s->room ? 2 * s->room : 4, *table = NULL;
    wf_seen_row *rows = realloc(s->rows, room * sizeof *rows);

    if (!rows)
        return wf_fail_nomem(err, room * sizeof *rows);
    s->rows = rows;
    if (room > FEW) {
        table = calloc(2 * (size_t)room, sizeof *table);
        if (!table)
            return wf_fail_nomem(err, 2 * room * sizeof *table);
    }
    free(s->table);
    s->table = table;
    s->room = room;
    for (uint32_t i = 0; table && i < s->n; i++)
        enter(s, i);
    return WF_OK;
}

static bool applied(const wf_seen_row *row, uint32_t step)
{
    if (!row)
        return step == 0;
    if (step <= row->low)
        return true;
    return step - row->low <= WINDOW && (row->window >> (step - row->low - 1) & 1);
}

bool wf_seen_before(const wf_seen *s, uint64_t incarnation, uint32_t step)
{
    return applied(find(s, incarnation), step);
}

bool wf_seen_all(const wf_seen *s, uint64_t incarnation, uint32_t step)
{
    const wf_seen_row *row = find(s, incarnation);

    return step <= (row ? row->low : 0);
}

/* A new row, with nothing applied. */
static wf_status add_row(wf_seen *s, uint64_t incarnation, wf_seen_row **out, wf_err *err)
{
    if (s->n == s->room)
        WF_TRY(grow(s, err));
    *out = &s->rows[s->n++];
    **out = (wf_seen_row){.incarnation = incarnation};
    if (s->table)
        enter(s, s->n - 1);
    return WF_OK;
}

wf_status wf_seen_mark(wf_seen *s, uint64_t incarnation, uint32_t step, wf_err *err)
{
    wf_seen_row *row = find(s, incarnation);

    if (applied(row, step))
        return wf_fail(err, WF_EXISTS, NULL, "step %u is applied", step);
    if (step - (row ? row->low : 0) > WINDOW)
        return wf_fail(err, WF_FULL, NULL, "step %u is more than %d steps ahead", step, WINDOW);
    if (!row)
        WF_TRY(add_row(s, incarnation, &row, err));
    row->window |= UINT64_C(1) << (step - row->low - 1);
    for (; row->window & 1; row->window >>= 1)
        row->low++;
    wf_assert(applied(row, step));
    return WF_OK;
}

/* The place in the table of a row that is there. */
static uint32_t table_place(const wf_seen *s, uint32_t row)
{
    uint32_t i = home(s, s->rows[row].incarnation);

    while (s->table[i] != 1 + row)
        i = (i + 1) & (2 * s->room - 1);
    return i;
}

/* Rows behind the hole move into it, unless their home lies behind it: a search ends at a hole. */
static void clear_place(wf_seen *s, uint32_t hole)
{
    uint32_t mask = 2 * s->room - 1;

    for (uint32_t i = (hole + 1) & mask; s->table[i]; i = (i + 1) & mask) {
        uint32_t from = home(s, s->rows[s->table[i] - 1].incarnation);

        if (((i - from) & mask) < ((i - hole) & mask))
            continue;
        s->table[hole] = s->table[i];
        hole = i;
    }
    s->table[hole] = 0;
}

void wf_seen_forget(wf_seen *s, uint64_t incarnation)
{
    wf_seen_row *row = find(s, incarnation);
    uint32_t at, last = s->n - 1;

    if (!row)
        return;
    at = (uint32_t)(row - s->rows);
    if (s->table)
        clear_place(s, table_place(s, at));
    if (s->table && at != last)
        s->table[table_place(s, last)] = 1 + at;
    *row = s->rows[last];
    s->n--;
}

void wf_seen_encode(const wf_seen *s, wf_bytes *out)
{
    for (uint32_t i = 0; i < s->n; i++) {
        uint8_t *to = wf_bytes_extend(out, ROW_BYTES);

        if (!to)
            return;
        wf_put_u64(to, s->rows[i].incarnation);
        wf_put_u32(to + 8, s->rows[i].low);
        wf_put_u64(to + 12, s->rows[i].window);
    }
}

wf_status wf_seen_decode(wf_seen *s, const uint8_t *bytes, size_t n, wf_err *err)
{
    wf_assert(s->n == 0);
    if (n % ROW_BYTES)
        return wf_fail(err, WF_PROTO, NULL, "%zu bytes of steps that a slice has applied", n);
    for (; n > 0; n -= ROW_BYTES, bytes += ROW_BYTES) {
        uint64_t incarnation = wf_get_u64(bytes), window = wf_get_u64(bytes + 12);
        wf_seen_row *row;

        /* The step behind the low-water one is not applied, or that one would be higher. */
        if (find(s, incarnation) || (window & 1))
            return wf_fail(err, WF_PROTO, NULL, "steps of worker incarnation %llx that cannot be",
                           (unsigned long long)incarnation);
        WF_TRY(add_row(s, incarnation, &row, err));
        row->low = wf_get_u32(bytes + 8);
        row->window = window;
    }
    return WF_OK;
}
