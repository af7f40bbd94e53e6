/* SPDX-License-Identifier: Apache-2.0 */
/* common/tensor/first_row.h - the first values of a row of an unbounded table. They follow from the
 * job's seed, the variable and the row's id alone, so whoever needs them computes them: a ps for a
 * row that it makes or does not have, and a program that evaluates a checkpoint.
 */
#ifndef WF_TENSOR_FIRST_ROW_H
#define WF_TENSOR_FIRST_ROW_H

#include "common/base/distribution.h"
#include "common/tensor/dtype.h"
#include <stdint.h>

/* What the first values of all rows of a table are computed from. */
typedef struct wf_first_rows {
    wf_distribution numbers;
    uint64_t seed, stream; /* the job's; the variable's */
    wf_dtype dtype;        /* that rows are held in (row_values.h) */
} wf_first_rows;

/* The key of the random numbers of one row. */
wf_rng_key wf_first_row_key(const wf_first_rows *f, int64_t id);
/* The first values [n] of the row of an id, as they read when a row holds them: n is at most
 * WF_INT8_ROW_MOST for int8. */
void wf_first_row(const wf_first_rows *f, int64_t id, uint64_t n, float out[]);
/* The mean that their distribution has, as a row holds it: for whoever has one row for all ids. */
void wf_mean_row(const wf_first_rows *f, uint64_t n, float out[]);

#endif
