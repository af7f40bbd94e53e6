/* SPDX-License-Identifier: Apache-2.0 */
/* common/metrics/measure.c - sums are appended as they come and brought into order when the room is
 * used up: adding costs no search, and memory grows with the keys, not with the examples. */
#include "common/metrics/measure.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_ROOM = 64 };

static int by_key(const void *a, const void *b)
{
    uint64_t x = ((const wf_keyed_sum *)a)->key, y = ((const wf_keyed_sum *)b)->key;

    return (x > y) - (x < y);
}

void wf_sums_settle(wf_sums *s)
{
    size_t kept = 0;

    if (s->settled == s->n)
        return;
    qsort(s->at, s->n, sizeof *s->at, by_key);
    for (size_t i = 0; i < s->n; i++) {
        if (kept && s->at[kept - 1].key == s->at[i].key)
            s->at[kept - 1].value += s->at[i].value;
        else
            s->at[kept++] = s->at[i];
    }
    s->n = s->settled = kept;
}

/* Room for one more, at least half of it free after a settling. */
static wf_status make_room(wf_sums *s, wf_err *err)
{
    size_t room = s->room ? s->room * 2 : FIRST_ROOM;
    wf_keyed_sum *more;

    wf_sums_settle(s);
    if (s->room && s->n <= s->room / 2)
        return WF_OK;
    if (room > 2 * (size_t)WF_MEASURE_MOST)
        return wf_fail(err, WF_FULL, "evaluate on fewer records",
                       "a metric has more than %d different sums", (int)WF_MEASURE_MOST);
    more = realloc(s->at, room * sizeof *more);
    if (!more)
        return wf_fail_nomem(err, room * sizeof *more);
    s->at = more;
    s->room = room;
    return WF_OK;
}

wf_status wf_sums_add(wf_sums *s, uint64_t key, double value, wf_err *err)
{
    /* Few sums with keys from 0 on, added in one order: in place, so that rounding repeats. */
    if (key < s->settled && s->at[key].key == key) {
        s->at[key].value += value;
        return WF_OK;
    }
    if (s->n == s->room)
        WF_TRY(make_room(s, err));
    s->at[s->n] = (wf_keyed_sum){key, value};
    if (s->settled == s->n && (s->n == 0 || s->at[s->n - 1].key < key))
        s->settled++;
    s->n++;
    return WF_OK;
}

double wf_sums_get(const wf_sums *s, uint64_t key)
{
    const wf_keyed_sum want = {key, 0}, *found;

    found = s->n ? bsearch(&want, s->at, s->n, sizeof *s->at, by_key) : NULL;
    return found ? found->value : 0;
}

void wf_sums_clear(wf_sums *s)
{
    s->n = s->settled = 0;
}

void wf_sums_close(wf_sums *s)
{
    free(s->at);
    *s = (wf_sums){0};
}

wf_status wf_measure_merge(wf_measure *to, const wf_measure *from, wf_err *err)
{
    to->sum += from->sum;
    to->count += from->count;
    for (size_t i = 0; i < from->sums.n; i++)
        WF_TRY(wf_sums_add(&to->sums, from->sums.at[i].key, from->sums.at[i].value, err));
    return WF_OK;
}

void wf_measures_close(wf_measure m[], size_t n)
{
    for (size_t i = 0; i < n; i++)
        wf_sums_close(&m[i].sums);
}
