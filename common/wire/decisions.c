/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire/decisions.c */
#include "common/wire/decisions.h"

#include <stdlib.h>
#include <string.h>

void wf_decisions_close(wf_decisions *d)
{
    for (uint32_t i = 0; i < d->n; i++)
        free(d->rows[i].workers);
    *d = (wf_decisions){0};
}

uint32_t wf_decisions_last(const wf_decisions *d)
{
    return d->n ? d->rows[d->n - 1].clock : 0;
}

static void drop_first(wf_decisions *d)
{
    free(d->rows[0].workers);
    d->n--;
    memmove(d->rows, d->rows + 1, d->n * sizeof *d->rows);
}

/* How many are earlier. */
static uint32_t place_of(const wf_decisions *d, uint32_t clock)
{
    uint32_t at = 0;

    while (at < d->n && d->rows[at].clock < clock)
        at++;
    return at;
}

wf_status wf_decisions_add(wf_decisions *d, const wf_decision *row, bool *added, wf_err *err)
{
    uint32_t at = place_of(d, row->clock);
    uint64_t *copy;

    *added =
        (at > 0 || d->n < WF_DECISIONS) && (at == d->n || d->rows[at].clock != row->clock); /* D1 */
    if (!*added)
        return WF_OK;
    copy = malloc((row->n + 1) * sizeof *copy);
    if (!copy)
        return wf_fail_nomem(err, row->n * sizeof *copy);
    if (row->n)
        memcpy(copy, row->workers, row->n * sizeof *copy);
    if (d->n == WF_DECISIONS) {
        drop_first(d);
        at--;
    }
    memmove(d->rows + at + 1, d->rows + at, (d->n - at) * sizeof *d->rows);
    d->rows[at] = (wf_decision){row->clock, row->before, row->n, copy};
    d->n++;
    return WF_OK;
}

const wf_decision *wf_decisions_after(const wf_decisions *d, uint32_t clock)
{
    for (uint32_t i = 0; i < d->n; i++)
        if (d->rows[i].clock > clock)
            return &d->rows[i];
    return NULL;
}

const wf_decision *wf_decisions_next(const wf_decisions *d, uint32_t clock)
{
    const wf_decision *first = wf_decisions_after(d, clock);

    return first && first->before <= clock ? first : NULL;
}
