/* SPDX-License-Identifier: Apache-2.0 */
/* ps/held.c */
#include "ps/held.h"
#include "common/base/size.h"

#include <stdlib.h>

static void give_back(wf_held_part *row)
{
    wf_buf_unref(&row->frames[0]);
    wf_buf_unref(&row->frames[1]);
}

void wf_held_clear(wf_held *h)
{
    for (uint32_t i = 0; i < h->n; i++)
        give_back(&h->rows[i]);
    h->n = 0;
}

void wf_held_close(wf_held *h)
{
    wf_held_clear(h);
    free(h->rows);
    *h = (wf_held){0};
}

static wf_status reserve(wf_held *h, uint32_t more, wf_err *err)
{
    uint32_t room = WF_MAX(h->n + more, 2 * h->room);
    wf_held_part *rows;

    if (more <= h->room - h->n)
        return WF_OK;
    rows = realloc(h->rows, room * sizeof *rows);
    if (!rows)
        return wf_fail_nomem(err, room * sizeof *rows);
    h->rows = rows;
    h->room = room;
    return WF_OK;
}

wf_status wf_held_add(wf_held *h, const wf_held_part *row, const wf_msg *m, const wf_part *p,
                      wf_err *err)
{
    wf_held_part *to;

    WF_TRY(reserve(h, 1, err));
    to = &h->rows[h->n++];
    *to = *row;
    to->frames[0] = p->codec == WF_CODEC_NONE ? NULL : wf_buf_ref(m->frames[p->frame].buf);
    to->frames[1] = p->codec == WF_CODEC_ROWS ? wf_buf_ref(m->frames[p->ids.frame].buf) : NULL;
    return WF_OK;
}

const wf_held_part *wf_held_find(const wf_held *h, uint64_t incarnation, uint32_t step)
{
    for (uint32_t i = 0; i < h->n; i++)
        if (h->rows[i].part.incarnation == incarnation && h->rows[i].part.step == step)
            return &h->rows[i];
    return NULL;
}

uint32_t wf_held_least(const wf_held *h)
{
    uint32_t least = 0;

    for (uint32_t i = 0; i < h->n; i++)
        if (least == 0 || h->rows[i].clock < least)
            least = h->rows[i].clock;
    return least;
}

void wf_held_forget(wf_held *h, uint64_t incarnation)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < h->n; i++)
        if (h->rows[i].part.incarnation == incarnation)
            give_back(&h->rows[i]);
        else
            h->rows[kept++] = h->rows[i];
    h->n = kept;
}

static int by_worker(const void *a, const void *b)
{
    const wf_held_part *x = a, *y = b;

    if (x->worker != y->worker)
        return x->worker < y->worker ? -1 : 1;
    return (x->part.step > y->part.step) - (x->part.step < y->part.step);
}

wf_status wf_held_take(wf_held *h, uint32_t clock, wf_held *to, wf_err *err)
{
    uint32_t kept = 0, first = to->n;

    WF_TRY(reserve(to, h->n, err));
    for (uint32_t i = 0; i < h->n; i++)
        if (h->rows[i].clock == clock)
            to->rows[to->n++] = h->rows[i];
        else
            h->rows[kept++] = h->rows[i];
    h->n = kept;
    qsort(to->rows + first, to->n - first, sizeof *to->rows, by_worker);
    return WF_OK;
}
