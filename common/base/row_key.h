/* SPDX-License-Identifier: Apache-2.0 */
/* common/base/row_key.h - keys of the rows of an unbounded table. A row's id is any int64; its key
 * is the id with its bits mixed, one to one, so that keys are spread evenly whatever ids are. Keys
 * travel and are hashed in the place of ids; their highest bits say which bucket of the table a row
 * is in, so that the keys of a bucket lie side by side in rising order.
 */
#ifndef WF_BASE_ROW_KEY_H
#define WF_BASE_ROW_KEY_H

#include <stdint.h>

/* Buckets of a table, each a slice. Checkpoints have them: the number never changes. */
enum { WF_ROW_BUCKET_BITS = 6, WF_ROW_BUCKETS = 1 << WF_ROW_BUCKET_BITS };

/* The finaliser of SplitMix64 (Steele, Lea and Flood 2014, section 5). */
static inline uint64_t wf_row_key(int64_t id)
{
    uint64_t z = (uint64_t)id;

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* The id of a key. The factors are the inverses of those above, modulo 2^64. */
static inline int64_t wf_row_id_of_key(uint64_t z)
{
    z = (z ^ z >> 31 ^ z >> 62) * UINT64_C(0x319642b2d24d8ec3);
    z = (z ^ z >> 27 ^ z >> 54) * UINT64_C(0x96de1b173f119089);
    return (int64_t)(z ^ z >> 30 ^ z >> 60);
}

static inline uint32_t wf_row_bucket(uint64_t key)
{
    return (uint32_t)(key >> (64 - WF_ROW_BUCKET_BITS));
}

#endif
