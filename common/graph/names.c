/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/names.c */
#include "common/graph/names.h"
#include "common/base/size.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_ROOM = 64 };

/* FNV-1a; the tables are no target: a bad file can make lookups slow, bounded by its field count.
 */
static size_t hash(const char *name)
{
    uint64_t h = UINT64_C(14695981039346656037);

    for (; *name; name++)
        h = (h ^ (uint8_t)*name) * UINT64_C(1099511628211);
    return (size_t)(h ^ h >> 32);
}

void wf_names_close(wf_name_table *t)
{
    free(t->slots);
    *t = (wf_name_table){0};
}

/* The slot of a name, or the free one where it would go. The table has a free slot. */
static size_t seek(const wf_name_table *t, const char *name)
{
    size_t at = hash(name) & (t->room - 1);

    while (t->slots[at].name && strcmp(t->slots[at].name, name) != 0)
        at = (at + 1) & (t->room - 1);
    return at;
}

void *wf_names_find(const wf_name_table *t, const char *name)
{
    return t->room ? t->slots[seek(t, name)].thing : NULL;
}

static wf_status grow(wf_name_table *t, wf_err *err)
{
    wf_name_table bigger = {.room = t->room ? t->room * 2 : FIRST_ROOM, .used = t->used};

    bigger.slots = calloc(bigger.room, sizeof bigger.slots[0]);
    if (!bigger.slots)
        return wf_fail_nomem(err, bigger.room * sizeof bigger.slots[0]);
    for (size_t i = 0; i < t->room; i++)
        if (t->slots[i].name)
            bigger.slots[seek(&bigger, t->slots[i].name)] = t->slots[i];
    free(t->slots);
    *t = bigger;
    return WF_OK;
}

wf_status wf_names_add(wf_name_table *t, const char *name, void *thing, wf_err *err)
{
    size_t at;

    if (t->used * 2 >= t->room)
        WF_TRY(grow(t, err));
    at = seek(t, name);
    wf_assert(!t->slots[at].name);
    t->slots[at] = (struct wf_name_slot){name, thing};
    t->used++;
    return WF_OK;
}

void wf_names_remove(wf_name_table *t, const char *name)
{
    size_t hole, at;

    if (!t->room)
        return;
    hole = seek(t, name);
    if (!t->slots[hole].name)
        return;
    t->used--;
    /* Close the gap: what probed past the hole moves into it (Knuth, TAOCP 6.4, algorithm R). */
    for (at = hole;;) {
        size_t home;

        at = (at + 1) & (t->room - 1);
        if (!t->slots[at].name)
            break;
        home = hash(t->slots[at].name) & (t->room - 1);
        if (((at - home) & (t->room - 1)) >= ((at - hole) & (t->room - 1))) {
            t->slots[hole] = t->slots[at];
            hole = at;
        }
    }
    t->slots[hole] = (struct wf_name_slot){0};
}
