/* SPDX-License-Identifier: Apache-2.0 */
/* common/base/index.c - linear probing; a removal moves later rows of its run back, so that no
 * tombstones gather. */
#include "common/base/index.h"

#include <stdlib.h>

/* The finaliser of SplitMix64 (Steele, Lea & Flood 2014). */
static size_t home(const wf_index *x, uint64_t key)
{
    uint64_t h = key ^ (uint64_t)(uintptr_t)x->rows;

    h = (h ^ h >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    h = (h ^ h >> 27) * UINT64_C(0x94d049bb133111eb);
    return (size_t)(h ^ h >> 31) & (x->room - 1);
}

void wf_index_close(wf_index *x)
{
    free(x->rows);
    *x = (wf_index){0};
}

/* The row of key, or the free one where it would go. */
static struct wf_index_row *find(const wf_index *x, uint64_t key)
{
    size_t i = home(x, key);

    while (x->rows[i].value && x->rows[i].key != key)
        i = (i + 1) & (x->room - 1);
    return &x->rows[i];
}

static wf_status grow(wf_index *x, wf_err *err)
{
    wf_index larger = {.room = x->room ? 2 * x->room : 16};

    larger.rows = calloc(larger.room, sizeof *larger.rows);
    if (!larger.rows)
        return wf_fail_nomem(err, larger.room * sizeof *larger.rows);
    for (size_t i = 0; i < x->room; i++)
        if (x->rows[i].value)
            *find(&larger, x->rows[i].key) = x->rows[i];
    larger.n = x->n;
    free(x->rows);
    *x = larger;
    return WF_OK;
}

wf_status wf_index_put(wf_index *x, uint64_t key, void *value, wf_err *err)
{
    struct wf_index_row *row;

    wf_assert(value);
    row = x->room ? find(x, key) : NULL;
    if (row && row->value) { /* needs no room, and so cannot fail */
        row->value = value;
        return WF_OK;
    }
    if (2 * (x->n + 1) > x->room)
        WF_TRY(grow(x, err));
    *find(x, key) = (struct wf_index_row){key, value};
    x->n++;
    return WF_OK;
}

void *wf_index_get(const wf_index *x, uint64_t key)
{
    return x->n ? find(x, key)->value : NULL;
}

void wf_index_remove(wf_index *x, uint64_t key)
{
    struct wf_index_row *row = x->n ? find(x, key) : NULL;
    size_t hole, i;

    if (!row || !row->value)
        return;
    hole = i = (size_t)(row - x->rows);
    for (;;) {
        i = (i + 1) & (x->room - 1);
        if (!x->rows[i].value)
            break;
        /* A row may fill the hole if its home does not lie behind it. */
        if (((i - home(x, x->rows[i].key)) & (x->room - 1)) >= ((i - hole) & (x->room - 1))) {
            x->rows[hole] = x->rows[i];
            hole = i;
        }
    }
    x->rows[hole].value = NULL;
    x->n--;
}
