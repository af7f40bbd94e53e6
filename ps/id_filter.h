/* SPDX-License-Identifier: Apache-2.0 */
/* ps/id_filter.h - how often keys were named, in a fixed number of bytes: a counting Bloom filter
 * (Fan et al. 2000, "Summary Cache", section V-C) of bytes, whose lowest counts alone are raised
 * (Estan and Varghese 2002, "New Directions in Traffic Measurement", section 3.3.2). A key's count
 * is never too low; it is too high where others share all of its HASHES bytes.
 *
 * For each 8 bytes that it has, one key may be named before all counts are halved (Einziger et al.
 * 2017, "TinyLFU", section 3.3). So it is never full: with keys that all differ an eighth as many
 * as bytes were counted at most, and of a new key (1 - e^(-4/8))^4 = 2.4 % find another's count.
 */
#ifndef WF_PS_ID_FILTER_H
#define WF_PS_ID_FILTER_H

#include "common/base/status.h"
#include <stddef.h>
#include <stdint.h>

enum { WF_ID_FILTER_MOST = 255, WF_ID_FILTER_LEAST_BYTES = 1024 };

/* {0} is closed. */
typedef struct wf_id_filter {
    uint8_t *counts; /* [size], a power of two */
    uint64_t size;
    uint64_t named; /* keys since all counts were halved */
} wf_id_filter;

/* With the largest power of two of counts that fits into so many bytes, all 0. Errors: WF_NOMEM;
 * WF_INVALID below WF_ID_FILTER_LEAST_BYTES. */
WF_MUST_USE wf_status wf_id_filter_init(wf_id_filter *f, uint64_t bytes, wf_err *err);
void wf_id_filter_close(wf_id_filter *f);
/* Names a key once more; how often it was named, this time counted, at most WF_ID_FILTER_MOST. */
uint32_t wf_id_filter_add(wf_id_filter *f, uint64_t key);

#endif
