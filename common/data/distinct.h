/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/distinct.h - how many different values there are: exact up to a bound, then by
 * HyperLogLog (Flajolet et al. 2007) with 4096 registers, of a standard error of 1.6 %. For this
 * room only. */
#ifndef WF_DATA_DISTINCT_H
#define WF_DATA_DISTINCT_H

#include "common/base/status.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WF_DISTINCT_REGISTERS = 4096 };

/* {0} has seen nothing. */
typedef struct wf_distinct {
    uint64_t *seen;     /* [room] hashes; 0: free */
    size_t n, room;     /* in use; a power of 2 */
    uint8_t *registers; /* [WF_DISTINCT_REGISTERS], in place of `seen` beyond the bound */
} wf_distinct;

/* Adds a value by a hash of 64 bits that are as good as random (XXH3). Beyond `exact` different
 * ones counting is approximate. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_distinct_add(wf_distinct *d, uint64_t hash, size_t exact, wf_err *err);
/* How many there were, and whether that is exact. */
uint64_t wf_distinct_count(const wf_distinct *d, bool *exact);
void wf_distinct_close(wf_distinct *d);

#endif
