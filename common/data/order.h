/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/order.h - the order of an epoch's records: which record stands at a position, a pure
 * function of (seed, epoch, position).
 *
 * Where any record is as near as any other, all records are permuted (shuffle.h). Where they are
 * read from a file block by block, the full blocks are permuted, and so are the records of each
 * window of some blocks that follow each other in that order: a reader needs one window in memory.
 * The short block at the end belongs to the last window, as do the full blocks that make no window
 * of their own.
 */
#ifndef WF_DATA_ORDER_H
#define WF_DATA_ORDER_H

#include "common/data/shuffle.h"

/* Plain and copyable. */
typedef struct wf_order {
    uint64_t seed, epoch, n;
    uint64_t block;  /* records of a full one; 0: there are none, and all records are permuted */
    uint64_t window; /* blocks */
    uint64_t windows;
    wf_shuffle whole; /* of the records, or of the full blocks */
    bool on;
} wf_order;

/* The order of an epoch over n records; the identity when `on` is false. */
wf_order wf_order_of(uint64_t seed, uint64_t epoch, uint64_t n, uint64_t block, uint64_t window,
                     bool on);
/* The record at position `at` < n. */
uint64_t wf_order_record(const wf_order *o, uint64_t at);

#endif
