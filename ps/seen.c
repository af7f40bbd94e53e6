/* SPDX-License-Identifier: Apache-2.0 */
/* ps/seen.c - rows are few (one for each live worker), so they are searched in order. */
#include "ps/seen.h"

#include <stdlib.h>

enum { WINDOW = 64 };

void wf_seen_close(wf_seen *s)
{
    free(s->rows);
    *s = (wf_seen){0};
}

static wf_seen_row *find(const wf_seen *s, uint64_t incarnation)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (s->rows[i].incarnation == incarnation)
            return &s->rows[i];
    return NULL;
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

wf_status wf_seen_mark(wf_seen *s, uint64_t incarnation, uint32_t step, wf_err *err)
{
    wf_seen_row *row = find(s, incarnation);

    if (applied(row, step))
        return wf_fail(err, WF_EXISTS, NULL, "step %u is applied", step);
    if (step - (row ? row->low : 0) > WINDOW)
        return wf_fail(err, WF_FULL, NULL, "step %u is more than %d steps ahead", step, WINDOW);
    if (!row) {
        if (s->n == s->room) {
            uint32_t room = s->room ? 2 * s->room : 4;
            wf_seen_row *rows = realloc(s->rows, room * sizeof *rows);

            if (!rows)
                return wf_fail_nomem(err, room * sizeof *rows);
            s->rows = rows;
            s->room = room;
        }
        row = &s->rows[s->n++];
        *row = (wf_seen_row){.incarnation = incarnation};
    }
    row->window |= UINT64_C(1) << (step - row->low - 1);
    for (; row->window & 1; row->window >>= 1)
        row->low++;
    return WF_OK;
}

void wf_seen_forget(wf_seen *s, uint64_t incarnation)
{
    wf_seen_row *row = find(s, incarnation);

    if (row)
        *row = s->rows[--s->n];
}
