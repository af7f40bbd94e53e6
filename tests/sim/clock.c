/* SPDX-License-Identifier: Apache-2.0 */
/* tests/sim/clock.c */
#include "tests/sim/clock.h"
#include "common/base/status.h"

#include <stdlib.h>

static bool before(const wf_happening *a, const wf_happening *b)
{
    return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

void wf_agenda_add(wf_agenda *a, wf_happening h)
{
    size_t i;

    if (a->n == a->room) {
        a->room = a->room ? 2 * a->room : 256;
        a->heap = realloc(a->heap, a->room * sizeof *a->heap);
        wf_assert(a->heap);
    }
    h.order = a->next_order++;
    for (i = a->n++; i > 0 && before(&h, &a->heap[(i - 1) / 2]); i = (i - 1) / 2)
        a->heap[i] = a->heap[(i - 1) / 2];
    a->heap[i] = h;
}

bool wf_agenda_pop(wf_agenda *a, wf_happening *out)
{
    wf_happening last;
    size_t i = 0;

    if (a->n == 0)
        return false;
    *out = a->heap[0];
    last = a->heap[--a->n];
    for (;;) {
        size_t least = 2 * i + 1;

        if (least + 1 < a->n && before(&a->heap[least + 1], &a->heap[least]))
            least++;
        if (least >= a->n || !before(&a->heap[least], &last))
            break;
        a->heap[i] = a->heap[least];
        i = least;
    }
    a->heap[i] = last;
    return true;
}

void wf_agenda_close(wf_agenda *a)
{
    free(a->heap);
    *a = (wf_agenda){0};
}
