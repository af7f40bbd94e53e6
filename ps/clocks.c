/* SPDX-License-Identifier: Apache-2.0 */
/* ps/clocks.c */
#include "ps/clocks.h"
#include "common/base/size.h"

#include <stdlib.h>

void wf_clocks_close(wf_clocks *c)
{
    free(c->rows);
    *c = (wf_clocks){0};
}

static wf_clock *find(const wf_clocks *c, uint64_t incarnation)
{
    for (uint32_t i = 0; i < c->n; i++)
        if (c->rows[i].incarnation == incarnation)
            return &c->rows[i];
    return NULL;
}

const wf_clock *wf_clocks_find(const wf_clocks *c, uint64_t incarnation)
{
    return find(c, incarnation);
}

static wf_status add(wf_clocks *c, wf_clock row, wf_err *err)
{
    if (c->n == c->room) {
        uint32_t room = WF_MAX(2 * c->room, 8u);
        wf_clock *rows = realloc(c->rows, room * sizeof *rows);

        if (!rows)
            return wf_fail_nomem(err, room * sizeof *rows);
        c->rows = rows;
        c->room = room;
    }
    c->rows[c->n++] = row;
    return WF_OK;
}

wf_status wf_clocks_join(wf_clocks *c, uint64_t incarnation, uint32_t number, uint32_t step,
                         uint32_t *clock, wf_err *err)
{
    const wf_clock *row = find(c, incarnation);
    uint32_t least = UINT32_MAX;

    if (row && row->here && number && row->number == number) { /* C3 */
        *clock = (uint32_t)(step + row->shift);
        return WF_OK;
    }
    wf_clocks_leave(c, incarnation, 0);
    for (uint32_t i = 0; i < c->n; i++)
        if (c->rows[i].last == UINT32_MAX)
            least = WF_MIN(least, c->rows[i].at);
    *clock = WF_MAX(least == UINT32_MAX ? 1 : least, c->done + 1);
    return add(c, (wf_clock){incarnation, (int64_t)*clock - step, *clock, UINT32_MAX, number, true},
               err);
}

wf_status wf_clocks_note(wf_clocks *c, uint64_t incarnation, uint32_t step, uint32_t clock,
                         bool *moved, wf_err *err)
{
    wf_clock *row = find(c, incarnation);
    int64_t shift = (int64_t)clock - step;

    *moved = false;
    if (!row)
        return add(c, (wf_clock){incarnation, shift, clock, UINT32_MAX, 0, false}, err);
    *moved = shift > row->shift;
    row->shift = WF_MAX(row->shift, shift); /* C2 */
    row->at = WF_MAX(row->at, clock);
    if (clock > row->last) /* it has come in again, and its word of that was lost */
        row->last = UINT32_MAX;
    return WF_OK;
}

wf_status wf_clocks_learn(wf_clocks *c, const wf_clock *row, wf_err *err)
{
    wf_clock *mine = find(c, row->incarnation);

    if (!mine)
        return add(c, *row, err);
    if (row->number && mine->number && row->number != mine->number) { /* C4 */
        if (row->number > mine->number)
            *mine = *row;
        return WF_OK;
    }
    if (row->at > mine->last) /* it has come in since it left here; joins go beyond what was */
        mine->last = row->last;
    mine->shift = WF_MAX(mine->shift, row->shift);
    mine->at = WF_MAX(mine->at, row->at);
    return WF_OK;
}

bool wf_clocks_leave(wf_clocks *c, uint64_t incarnation, uint32_t last)
{
    wf_clock *row = find(c, incarnation);

    if (!row || row->last != UINT32_MAX) {
        if (row && last == 0)
            *row = c->rows[--c->n];
        return false;
    }
    if (last > 0)
        row->last = last;
    else
        *row = c->rows[--c->n];
    return true;
}

const wf_clock *wf_clocks_late(const wf_clocks *c, uint64_t incarnation, uint32_t clock,
                               const wf_seen *seen)
{
    for (uint32_t i = 0; i < c->n; i++) {
        const wf_clock *row = &c->rows[i];
        int64_t step = (int64_t)clock - 1 - c->staleness - row->shift;

        if (row->incarnation != incarnation && step > 0 &&
            !wf_seen_all(seen, row->incarnation, (uint32_t)WF_MIN(step, (int64_t)UINT32_MAX)))
            return row;
    }
    return NULL;
}
