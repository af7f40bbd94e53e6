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

wf_status wf_decisions_add(wf_decisions *d, uint32_t clock, const uint64_t workers[], uint32_t n,
                           bool *added, wf_err *err)
{
    uint64_t *copy;

    *added = clock > wf_decisions_last(d); /* D1 */
    if (!*added)
        return WF_OK;
    copy = malloc((n + 1) * sizeof *copy);
    if (!copy)
        return wf_fail_nomem(err, n * sizeof *copy);
    if (n)
        memcpy(copy, workers, n * sizeof *copy);
    if (d->n == WF_DECISIONS)
        drop_first(d);
    d->rows[d->n++] = (wf_decision){clock, n, copy};
    return WF_OK;
}

const wf_decision *wf_decisions_after(const wf_decisions *d, uint32_t clock)
{
    for (uint32_t i = 0; i < d->n; i++)
        if (d->rows[i].clock > clock)
            return &d->rows[i];
    return NULL;
}
