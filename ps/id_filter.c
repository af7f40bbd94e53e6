/* SPDX-License-Identifier: Apache-2.0 */
/* ps/id_filter.c */
#include "ps/id_filter.h"
#include "common/base/rng.h"

#include <stdlib.h>

enum { HASHES = 4, BYTES_OF_A_KEY = 8 };

wf_status wf_id_filter_init(wf_id_filter *f, uint64_t bytes, wf_err *err)
{
    uint64_t size = 1;

    *f = (wf_id_filter){0};
    if (bytes < WF_ID_FILTER_LEAST_BYTES)
        return wf_fail(err, WF_INVALID, "raise admit_bytes of the table",
                       "a filter of ids would have %llu bytes, and has %d at least",
                       (unsigned long long)bytes, WF_ID_FILTER_LEAST_BYTES);
    while (size <= bytes / 2)
        size *= 2;
    f->counts = calloc(size, 1);
    if (!f->counts)
        return wf_fail_nomem(err, size);
    f->size = size;
    return WF_OK;
}

void wf_id_filter_close(wf_id_filter *f)
{
    free(f->counts);
    *f = (wf_id_filter){0};
}

static void halve(wf_id_filter *f)
{
    for (uint64_t i = 0; i < f->size; i++)
        f->counts[i] /= 2;
    f->named = 0;
}

/* Places by two hashes, the second odd (Kirsch and Mitzenmacher 2006, "Less Hashing, Same
 * Performance"). */
uint32_t wf_id_filter_add(wf_id_filter *f, uint64_t key)
{
    uint64_t at = wf_rng_fold(1, key), step = wf_rng_fold(2, key) | 1, mask = f->size - 1;
    uint32_t lowest = WF_ID_FILTER_MOST;

    if (f->named++ >= f->size / BYTES_OF_A_KEY)
        halve(f);
    for (uint64_t i = 0; i < HASHES; i++) {
        uint32_t count = f->counts[(at + i * step) & mask];

        lowest = count < lowest ? count : lowest;
    }
    if (lowest == WF_ID_FILTER_MOST)
        return lowest;
    for (uint64_t i = 0; i < HASHES; i++) {
        uint8_t *count = &f->counts[(at + i * step) & mask];

        *count = (uint8_t)(*count + (*count == lowest));
    }
    return lowest + 1;
}
