/* SPDX-License-Identifier: Apache-2.0 */
/* ps/mean.h - the mean of the gradients of a step that several workers have made together, each
 * weighted by the records that it is a mean over: what one worker would have computed from all
 * these records. Sums are made in the order of the workers, so that their bits do not depend on who
 * was first. */
#ifndef WF_PS_MEAN_H
#define WF_PS_MEAN_H

#include "ps/held.h"

/* The mean of dense parts [n], elements [begin, end) of each, into out[begin .. end). `total` is
 * the sum of the records; parts without values count as zeros. With a total of 0 it is the sum. */
void wf_mean_range(const wf_held_part parts[], uint32_t n, uint64_t total, uint64_t begin,
                   uint64_t end, float out[]);
/* The mean of parts of a table, whose rows have `row` elements: over all rows that any names, in
 * rising order. *out owns its ids and values, which wf_mean_rows_free gives back; *out is empty if
 * no part names a row. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_mean_rows(const wf_held_part parts[], uint32_t n, uint64_t total,
                                   uint64_t row, wf_slice_part *out, wf_err *err);
void wf_mean_rows_free(wf_slice_part *out);

#endif
