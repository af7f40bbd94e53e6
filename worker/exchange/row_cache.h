/* SPDX-License-Identifier: Apache-2.0 */
/* worker/exchange/row_cache.h - rows of a table that were pulled lately. A row that is not older
 * than the bound is used again, and its parameter server is not asked for it: frequent rows then
 * travel once in some steps (Miao et al. 2022, "HET: Scaling out Huge Embedding Model Training via
 * Cache-enabled Distributed Framework", VLDB 15(2), section 3, where clocks of rows bound it too).
 *
 * Set-associative: the hash of a row's id chooses WF_ROW_WAYS places, of which the row has one. So
 * memory is fixed, and a look-up reads one cache line of ids. A full set gives up what is too old
 * to be used, else the row that was used least since the others of the set came.
 *
 * Belongs to one thread. What is kept is a function of the calls alone.
 *
 * Invariants
 *   C1  a row that is found at a step was put at that step less `staleness`, or later
 */
#ifndef WF_WORKER_EXCHANGE_ROW_CACHE_H
#define WF_WORKER_EXCHANGE_ROW_CACHE_H

#include "common/base/status.h"
#include <stdint.h>

enum { WF_ROW_WAYS = 8 };

typedef struct wf_row_cache wf_row_cache;

/* An empty cache of so many rows of `row` float32 each, rounded up to a power of two of
 * WF_ROW_WAYS; the caller owns *out. Errors: WF_NOMEM; WF_INVALID if that is more than memory can
 * be. */
WF_MUST_USE wf_status wf_row_cache_new(uint64_t rows, uint64_t row, uint32_t staleness,
                                       wf_row_cache **out, wf_err *err);
/* Frees *c and sets it to NULL; NULL is fine. */
void wf_row_cache_free(wf_row_cache **c);
/* The values [row] of a row that may be used at `step` (C1), until the next put; NULL if there are
 * none. Changes nothing. */
const float *wf_row_cache_find(const wf_row_cache *c, uint64_t id, uint32_t step);
/* A row was used; nothing if it is not there any more. */
void wf_row_cache_use(wf_row_cache *c, uint64_t id);
/* Keeps the values [row] that a row had when it was pulled for `step`, from 1 on. */
void wf_row_cache_put(wf_row_cache *c, uint64_t id, uint32_t step, const float values[]);
/* Forgets all rows. */
void wf_row_cache_clear(wf_row_cache *c);

#endif
