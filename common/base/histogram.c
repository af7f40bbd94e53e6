/* SPDX-License-Identifier: Apache-2.0 */
/* common/base/histogram.c */
#include "common/base/histogram.h"

#include <math.h>

enum { EXACT_BITS = 5 /* of WF_HISTOGRAM_EXACT */ };

size_t wf_histogram_at(uint64_t value)
{
    int power;

    if (value < WF_HISTOGRAM_EXACT)
        return (size_t)value;
    power = 63 - __builtin_clzll(value);
    if (power >= 20)
        return WF_HISTOGRAM - 1;
    return WF_HISTOGRAM_EXACT + 4 * (size_t)(power - EXACT_BITS) +
           (size_t)(value >> (power - 2) & 3);
}

/* The largest number of a range. */
static uint64_t top_of(size_t at)
{
    size_t power, quarter;

    if (at < WF_HISTOGRAM_EXACT)
        return at;
    power = EXACT_BITS + (at - WF_HISTOGRAM_EXACT) / 4;
    quarter = (at - WF_HISTOGRAM_EXACT) % 4;
    return (UINT64_C(1) << power) + ((quarter + 1) << (power - 2)) - 1;
}

void wf_histogram_merge(wf_histogram *to, const wf_histogram *from)
{
    for (size_t i = 0; i < WF_HISTOGRAM; i++)
        to->n[i] += from->n[i];
}

uint64_t wf_histogram_count(const wf_histogram *h)
{
    uint64_t n = 0;

    for (size_t i = 0; i < WF_HISTOGRAM; i++)
        n += h->n[i];
    return n;
}

uint64_t wf_histogram_quantile(const wf_histogram *h, double share)
{
    uint64_t wanted = (uint64_t)ceil(share * (double)wf_histogram_count(h)), below = 0;

    for (size_t i = 0; i < WF_HISTOGRAM; i++) {
        below += h->n[i];
        if (below > 0 && below >= wanted)
            return top_of(i);
    }
    return 0;
}
