/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/bag.h - fields whose records have any number of values, filled up to one length. For
 * this room only.
 *
 * Fixed shapes let a plan of a batch be made once; the price is memory where few bags are long
 * (docs/decisions.md has the figures). */
#ifndef WF_DATA_BAG_H
#define WF_DATA_BAG_H

#include "common/data/data.h"
#include <stdatomic.h>

/* What stands for no id in front of a hash, whose words may be any other int64; elsewhere -1. */
#define WF_BAG_NO_WORD INT64_MIN

typedef struct wf_bag {
    uint64_t most; /* values; 0: the field is no bag */
    wf_dtype dtype;
    bool cuts;                 /* more of them are left out, and counted; else they are an error */
    int64_t filler;            /* of whole numbers; others are filled up with 0 */
    bool marks_gaps;           /* float64 is filled up with NaN */
    atomic_uint_fast64_t *cut; /* bags that were cut; borrowed */
} wf_bag;

/* How the bags of a field are held, of this dtype. */
wf_bag wf_bag_of(const wf_field_spec *field, const wf_dataset_spec *set, wf_dtype dtype,
                 atomic_uint_fast64_t *cut);
/* A bag has one value more than it may have: sets *ends where it is cut, and counts it. Errors:
 * WF_INVALID. */
WF_MUST_USE wf_status wf_bag_is_full(const wf_bag *b, bool *ends, wf_err *err);
/* Fills out [most] from element n on. */
void wf_bag_fill(const wf_bag *b, void *out, uint64_t n);
/* An id of a bag. Errors: WF_INVALID below 0. */
WF_MUST_USE wf_status wf_bag_check_id(int64_t id, wf_err *err);

#endif
