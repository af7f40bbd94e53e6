/* SPDX-License-Identifier: Apache-2.0 */
/* master/placement/balance.c */
#include "master/placement/balance.h"
#include "common/base/size.h"

static const double WORTH = 0.02;     /* of the mean load: a move that gains less is not made */
static const double MOST_BYTES = 1.5; /* of the mean of bytes, that a taker may come to hold */

static double mean_load(const wf_balance_ps ps[], uint32_t n)
{
    double sum = 0;

    for (uint32_t i = 0; i < n; i++) {
        if (!ps[i].known)
            return 0;
        sum += ps[i].load;
    }
    return n ? sum / n : 0;
}

static uint64_t most_bytes(const wf_balance_ps ps[], uint32_t n, uint32_t from)
{
    double sum = 0;

    for (uint32_t i = 0; i < n; i++)
        sum += (double)ps[i].held_bytes;
    return WF_MAX(ps[from].held_bytes, (uint64_t)(MOST_BYTES * sum / n));
}

double wf_balance_tilt(const wf_balance_ps ps[], uint32_t n, uint32_t *hottest)
{
    double mean = mean_load(ps, n);

    *hottest = 0;
    for (uint32_t i = 1; i < n; i++)
        if (ps[i].load > ps[*hottest].load)
            *hottest = i;
    return mean > 0 ? ps[*hottest].load / mean : 0;
}

static uint32_t find_coolest(const wf_balance_ps ps[], uint32_t n)
{
    uint32_t least = 0;

    for (uint32_t i = 1; i < n; i++)
        if (ps[i].load < ps[least].load)
            least = i;
    return least;
}

/* Of two slices that leave `left` and `best` on the fuller ps. */
static bool is_better(const wf_balance_slice *s, double left, const wf_balance_slice *than,
                      double best)
{
    if (left != best)
        return left < best;
    if (s->held_bytes != than->held_bytes)
        return s->held_bytes < than->held_bytes;
    return s->slice < than->slice;
}

bool wf_balance_choose(const wf_balance_ps ps[], uint32_t n, wf_balance_move *out)
{
    double mean = mean_load(ps, n), best = 0;
    uint32_t from, to = find_coolest(ps, n);
    uint64_t room;
    bool found = false;

    if (wf_balance_tilt(ps, n, &from) == 0 || from == to)
        return false;
    room = most_bytes(ps, n, from);
    for (uint32_t i = 0; i < ps[from].n; i++) {
        const wf_balance_slice *s = &ps[from].slices[i];
        double left = WF_MAX(ps[from].load - s->load, ps[to].load + s->load);

        if (s->stays || ps[from].load - left < WORTH * mean ||
            ps[to].held_bytes + s->held_bytes > room)
            continue;
        if (found && !is_better(s, left, &out->slice, best))
            continue;
        *out = (wf_balance_move){.from = from, .to = to, .slice = *s};
        best = left;
        found = true;
    }
    return found;
}
