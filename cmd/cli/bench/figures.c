/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/bench/figures.c */
#include "cmd/cli/bench/figures.h"

#include <math.h>
#include <stdlib.h>

const wf_bench_work wf_bench_works[WF_BENCH_WORKS] = {
    {"push", true, false}, {"pull", false, true}, {"push+pull", true, true}};

static bool make_room(wf_samples *s, size_t more)
{
    size_t room = 2 * s->room + more;
    int64_t *ns;

    if (s->n + more <= s->room)
        return true;
    ns = realloc(s->ns, room * sizeof *ns);
    s->failed |= !ns;
    if (!ns)
        return false;
    s->ns = ns;
    s->room = room;
    return true;
}

void wf_samples_add(wf_samples *s, int64_t ns)
{
    if (make_room(s, 1))
        s->ns[s->n++] = ns;
}

void wf_samples_merge(wf_samples *s, const wf_samples *from)
{
    s->failed |= from->failed;
    for (size_t i = 0; i < from->n; i++)
        wf_samples_add(s, from->ns[i]);
}

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

int64_t wf_samples_at(wf_samples *s, double part)
{
    size_t rank = (size_t)ceil(part * (double)s->n);

    if (s->n == 0)
        return 0;
    qsort(s->ns, s->n, sizeof *s->ns, by_size);
    return s->ns[rank > s->n ? s->n - 1 : rank > 0 ? rank - 1 : 0];
}

void wf_samples_close(wf_samples *s)
{
    free(s->ns);
    *s = (wf_samples){0};
}

uint64_t wf_bench_sent(const wf_bench_work *work, uint64_t bytes)
{
    return bytes * ((uint64_t)work->pushes + (uint64_t)work->pulls);
}

uint64_t wf_bench_moved(const wf_bench_work *work, uint64_t bytes, uint32_t slots)
{
    return bytes * ((work->pushes ? 3 + 2 * (uint64_t)slots : 0) + (work->pulls ? 1 : 0));
}

double wf_bench_rate(uint64_t bytes, int64_t ns)
{
    return ns > 0 ? (double)bytes * 1e9 / (double)ns : 0;
}
