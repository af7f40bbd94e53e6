/* SPDX-License-Identifier: Apache-2.0 */
/* ps/hashed_limits.c - which rows of a bucket leave.
 *
 * Least frequently used: a row counts the updates that name it, and its count is halved for each
 * HALF_LIFE updates that do not, so that what was named often long ago leaves in the end. Beyond
 * max_rows the one of the lowest count leaves among SAMPLE rows: the least recently used, and of
 * equal ones the least recently used first. Redis samples so ("Using Redis as an LRU cache", 2016:
 * the LFU mode, with decay), but by chance; here all follows from the keys and their updates.
 */
#include "common/base/size.h"
#include "ps/hashed.h"

#include <inttypes.h>

enum {
    HALF_LIFE = 1000,   /* updates of the slice */
    SAMPLE = 16,        /* rows */
    OF_INDEX = 12,      /* bytes that the index has for a row, at most: two arrays while it grows */
    OF_CHUNK_LIST = 16, /* bytes that a chunk's place in the list may take */
    PARTLY_USED = 2     /* chunks: the last one, and one that is kept for the next rows */
};

/* ---- a limit in bytes ---- */

static uint64_t bytes_of_chunks(const wf_records *r)
{
    return PARTLY_USED * ((uint64_t)r->each << r->chunk_bits);
}

static uint64_t bytes_of_row(const wf_records *r)
{
    return r->each + OF_INDEX + (OF_CHUNK_LIST >> r->chunk_bits);
}

wf_status wf_hashed_limit(wf_hashed *h, wf_err *err)
{
    wf_row_policy *p = &h->base.policy;
    bool waits = wf_row_policy_waits(p);
    uint64_t fixed = bytes_of_chunks(&h->rows.records) + h->filter.size;
    uint64_t each = bytes_of_row(&h->rows.records), most;

    if (p->max_bytes == 0)
        return WF_OK;
    if (waits) { /* as many ids may wait as have rows */
        fixed += bytes_of_chunks(&h->waiting.records);
        each += bytes_of_row(&h->waiting.records);
    }
    most = p->max_bytes > fixed ? (p->max_bytes - fixed) / each : 0;
    if (most == 0)
        return wf_fail(err, WF_INVALID, "raise max_bytes of the table",
                       "slice %u of an unbounded table may take %" PRIu64
                       " bytes, and takes %" PRIu64 " for its first row",
                       h->base.id, p->max_bytes, fixed + each);
    p->max_rows = p->max_rows ? WF_MIN(p->max_rows, most) : most;
    return WF_OK;
}

/* ---- uses ---- */

/* The count of a row as it is at an update that does not name it. */
static uint32_t uses_at(const wf_hashed *h, int32_t row, uint32_t now)
{
    uint32_t halved = (now - wf_row_set_used(&h->rows, row)) / HALF_LIFE;

    return halved < 32 ? *wf_hashed_uses(h, wf_row_set_body(&h->rows, row)) >> halved : 0;
}

void wf_hashed_use(wf_hashed *h, int32_t row, uint32_t now)
{
    if (h->base.policy.by_frequency) {
        uint32_t uses = uses_at(h, row, now);

        *wf_hashed_uses(h, wf_row_set_body(&h->rows, row)) = uses + (uses < UINT32_MAX);
    }
    wf_row_set_use(&h->rows, row, now);
}

int32_t wf_hashed_add(wf_hashed *h, uint64_t key, uint32_t now)
{
    int32_t row = wf_row_set_add(&h->rows, key, now);

    if (h->base.policy.by_frequency)
        *wf_hashed_uses(h, wf_row_set_body(&h->rows, row)) = 1;
    return row;
}

/* ---- who leaves ---- */

/* Of a set that is not empty. Rows of the update in hand are spared while there are others: new
 * ones have been named once. */
static int32_t least_used(const wf_hashed *h, uint32_t now)
{
    int32_t least = h->rows.oldest;
    uint32_t fewest = uses_at(h, least, now);

    for (int32_t row = least, i = 1; i < SAMPLE; i++) {
        uint32_t uses;

        row = wf_row_set_newer(&h->rows, row);
        if (row == WF_NO_RECORD || wf_row_set_used(&h->rows, row) == now)
            break;
        uses = uses_at(h, row, now);
        if (uses < fewest) {
            fewest = uses;
            least = row;
        }
    }
    return least;
}

/* H1 */
static void evict(const wf_hashed *h, wf_row_set *set)
{
    const wf_row_policy *p = &h->base.policy;
    bool by_frequency = p->by_frequency && set == &h->rows;
    uint32_t now = (uint32_t)h->base.updates;

    while (set->ordered && set->oldest != WF_NO_RECORD) {
        bool is_old = p->evict_after && now - wf_row_set_used(set, set->oldest) >= p->evict_after;
        bool is_over = p->max_rows && !p->fails_full && set->records.n > p->max_rows;

        if (!is_old && !is_over)
            return;
        wf_row_set_remove(set, is_old || !by_frequency ? set->oldest : least_used(h, now));
    }
}

void wf_hashed_evict(wf_hashed *h)
{
    evict(h, &h->rows);
    evict(h, &h->waiting);
    wf_row_set_trim(&h->rows);
    wf_row_set_trim(&h->waiting);
    h->base.bytes = h->rows.records.n * wf_row_values_room(wf_slice_dtype(&h->base), h->base.row);
}
