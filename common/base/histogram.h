/* SPDX-License-Identifier: Apache-2.0 */
/* common/base/histogram.h - how often each whole number occurred: exact below 32, and beyond that
 * in four ranges for each power of two, up to 2^20. Histograms of several processes add up, which
 * their percentiles do not.
 */
#ifndef WF_BASE_HISTOGRAM_H
#define WF_BASE_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

enum { WF_HISTOGRAM_EXACT = 32, WF_HISTOGRAM = WF_HISTOGRAM_EXACT + 4 * 15 + 1 };

typedef struct wf_histogram {
    uint64_t n[WF_HISTOGRAM]; /* how often a number of the range; the last: 2^20 and more */
} wf_histogram;

/* The range that a number is in. */
size_t wf_histogram_at(uint64_t value);
static inline void wf_histogram_add(wf_histogram *h, uint64_t value)
{
    h->n[wf_histogram_at(value)]++;
}
/* Adds the counts of one to another. */
void wf_histogram_merge(wf_histogram *to, const wf_histogram *from);
uint64_t wf_histogram_count(const wf_histogram *h);
/* The number that at least `share` (0 to 1) of all are not above; beyond the exact ones the largest
 * of its range. 0 for an empty histogram. */
uint64_t wf_histogram_quantile(const wf_histogram *h, double share);

#endif
