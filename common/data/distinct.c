/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/distinct.c */
#include "common/data/distinct.h"
#include "common/base/size.h"

#include <math.h>
#include <stdlib.h>

enum { FIRST_ROOM = 16, BITS = 12 /* of a hash that choose its register */ };

/* Where a hash is, or would be. */
static uint64_t *slot_of(uint64_t *seen, size_t room, uint64_t hash)
{
    size_t at = (size_t)hash & (room - 1);

    while (seen[at] && seen[at] != hash)
        at = (at + 1) & (room - 1);
    return &seen[at];
}

static wf_status grow(wf_distinct *d, wf_err *err)
{
    size_t room = d->room ? 2 * d->room : FIRST_ROOM;
    uint64_t *more = calloc(room, sizeof *more);

    if (!more)
        return wf_fail_nomem(err, room * sizeof *more);
    for (size_t i = 0; i < d->room; i++)
        if (d->seen[i])
            *slot_of(more, room, d->seen[i]) = d->seen[i];
    free(d->seen);
    d->seen = more;
    d->room = room;
    return WF_OK;
}

/* A register keeps the longest run of zeros, and one, of the hashes that chose it. */
static void note(uint8_t registers[], uint64_t hash)
{
    uint8_t *r = &registers[hash >> (64 - BITS)];
    uint8_t run = (uint8_t)(__builtin_clzll(hash << BITS | 1) + 1);

    *r = WF_MAX(*r, run);
}

static wf_status estimate_from_here(wf_distinct *d, wf_err *err)
{
    d->registers = calloc(WF_DISTINCT_REGISTERS, 1);
    if (!d->registers)
        return wf_fail_nomem(err, WF_DISTINCT_REGISTERS);
    for (size_t i = 0; i < d->room; i++)
        if (d->seen[i])
            note(d->registers, d->seen[i]);
    free(d->seen);
    d->seen = NULL;
    d->room = 0;
    return WF_OK;
}

wf_status wf_distinct_add(wf_distinct *d, uint64_t hash, size_t exact, wf_err *err)
{
    uint64_t *slot;

    hash += hash == 0;
    if (!d->registers) {
        if (2 * d->n >= d->room)
            WF_TRY(grow(d, err));
        slot = slot_of(d->seen, d->room, hash);
        if (*slot)
            return WF_OK;
        if (d->n < exact) {
            *slot = hash;
            d->n++;
            return WF_OK;
        }
        WF_TRY(estimate_from_here(d, err));
    }
    note(d->registers, hash);
    return WF_OK;
}

uint64_t wf_distinct_count(const wf_distinct *d, bool *exact)
{
    const double m = WF_DISTINCT_REGISTERS, alpha = 0.7213 / (1 + 1.079 / m);
    double sum = 0, estimate;
    uint32_t empty = 0;

    *exact = !d->registers;
    if (*exact)
        return d->n;
    for (size_t i = 0; i < WF_DISTINCT_REGISTERS; i++) {
        sum += ldexp(1, -d->registers[i]);
        empty += d->registers[i] == 0;
    }
    estimate = alpha * m * m / sum;
    if (estimate <= 2.5 * m && empty) /* few of them: by the registers that none has chosen */
        estimate = m * log(m / empty);
    return (uint64_t)(estimate + 0.5);
}

void wf_distinct_close(wf_distinct *d)
{
    free(d->seen);
    free(d->registers);
    *d = (wf_distinct){0};
}
