/* SPDX-License-Identifier: Apache-2.0 */
/* ps/hashed_limits.c - which rows of a bucket leave.
 *
 * In memory a row that lies in a file takes its head and a place in the index, which max_bytes
 * counts too: so the more rows there are, the fewer of them lie in memory, and in the end a push
 * that brings another is refused. Which rows lie where changes no value.
 *
 * Least frequently used: a row counts the updates that name it, up to MOST_USES, and its count is
 * halved for each era of 1 << ERA_BITS updates of the slice that ends before it is named again, so
 * that what was named often long ago leaves in the end. Its note has the count and the low bits of
 * the era in which it was named last: a row that is named again is halved by the eras between,
 * modulo ERAS. Beyond max_rows the one of the lowest count leaves among SAMPLE rows: the least
 * recently used, and of equal ones the least recently used first; their eras are known in full.
 * Redis samples so ("Using Redis as an LRU cache", 2016: the LFU mode, with decay), but by chance;
 * here all follows from the keys and their updates.
 */
#include "common/base/size.h"
#include "ps/hashed.h"

#include <inttypes.h>

enum {
    ERA_BITS = 10,
    USES_BITS = 5,
    MOST_USES = (1 << USES_BITS) - 1,
    ERAS = 1 << (8 - USES_BITS), /* that a note tells apart */
    SAMPLE = 16,                 /* rows */
    OF_INDEX = 7,                /* bytes that the index has for a row, at most */
    OF_INDEX_THAT_SHRINKS = 13,  /* the same where it shrinks: it does when a third is in use */
    OF_CHUNK_LIST = 16,          /* bytes that a chunk's place in the list may take */
    OF_ERAS = 64 << 10,          /* bytes that the order of use may take beside the rows */
    OF_EXTENTS = 8 << 10,        /* bytes that the list of a slice's files may take */
    PARTLY_USED = 2              /* chunks: the last one, and one that is kept for the next rows */
};

/* ---- a limit in bytes ---- */

static uint64_t bytes_of_chunks(const wf_records *r)
{
    return PARTLY_USED * wf_records_chunk_bytes(r);
}

static uint64_t bytes_of_row(const wf_records *r)
{
    return r->each + OF_INDEX + (OF_CHUNK_LIST >> r->chunk_bits);
}

/* Of memory, of a row that lies in a file. Its keys leave the index for good if rows are evicted.
 */
static uint64_t bytes_of_cold_row(const wf_hashed *h)
{
    const wf_records *heads = &h->cold.heads.records;

    return heads->each + (h->base.policy.evict_after ? OF_INDEX_THAT_SHRINKS : OF_INDEX) +
           (OF_CHUNK_LIST >> heads->chunk_bits) + (OF_CHUNK_LIST >> h->cold.bodies.chunk_bits) + 1;
}

/* `most` rows fit into memory when none lies in a file. What lists and index take for so many they
 * may keep when fewer are left. */
static wf_status limit_cold(wf_hashed *h, uint64_t most, wf_err *err)
{
    uint64_t each = h->rows.records.each, of_cold = bytes_of_cold_row(h);

    if (each <= of_cold)
        return wf_fail(err, WF_INVALID, "leave when_full: disk out, or max_bytes",
                       "a row of slice %u takes %" PRIu64 " bytes of memory, and %" PRIu64
                       " when it lies in a file",
                       h->base.id, each, of_cold);
    h->records_most = most * each;
    h->rows_most = (h->records_most - (each - of_cold)) / of_cold;
    return WF_OK;
}

uint64_t wf_hashed_in_memory(const wf_hashed *h, uint64_t n)
{
    uint64_t each = h->rows.records.each, most = h->base.policy.max_rows;

    if (h->records_most && n * each > h->records_most) {
        uint64_t of_cold = bytes_of_cold_row(h), of_all = n * of_cold;
        uint64_t left = h->records_most - WF_MIN(of_all, h->records_most);

        most = WF_MIN(most, left / (each - of_cold));
    }
    return WF_MIN(n, most);
}

wf_status wf_hashed_limit(wf_hashed *h, wf_err *err)
{
    wf_row_policy *p = &h->base.policy;
    bool waits = wf_row_policy_waits(p);
    uint64_t fixed = bytes_of_chunks(&h->rows.records) + h->filter.size +
                     (h->rows.ordered ? (uint64_t)OF_ERAS : 0);
    uint64_t each = bytes_of_row(&h->rows.records), most;

    h->rows_most = WF_RECORDS_MOST;
    if (p->max_bytes == 0)
        return WF_OK;
    if (p->disk)
        fixed += bytes_of_chunks(&h->cold.heads.records) + OF_EXTENTS;
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
    return p->disk ? limit_cold(h, most, err) : WF_OK;
}

/* ---- uses ---- */

static uint32_t halve(uint32_t uses, uint32_t eras)
{
    return eras < 32 ? uses >> eras : 0;
}

uint32_t wf_hashed_uses(const wf_hashed *h, int32_t row)
{
    return *wf_row_set_note(&h->rows, row) & MOST_USES;
}

/* The count of a row, last named by the update `used`, as it is at an update that does not name it.
 */
static uint32_t uses_at(const wf_hashed *h, wf_row_use row, uint32_t now)
{
    uint32_t eras = ((now >> ERA_BITS) - (row.used >> ERA_BITS)) & UINT32_MAX >> ERA_BITS;

    return halve(wf_hashed_uses(h, row.row), eras);
}

void wf_hashed_set_uses(const wf_hashed *h, int32_t row, uint64_t uses, uint32_t now)
{
    uint32_t era = (now >> ERA_BITS) % ERAS;

    if (h->base.policy.by_frequency)
        *wf_row_set_note(&h->rows, row) =
            (uint8_t)(era << USES_BITS | (uint32_t)WF_MIN(uses, (uint64_t)MOST_USES));
}

void wf_hashed_use(wf_hashed *h, int32_t row, uint32_t now)
{
    if (h->base.policy.by_frequency) {
        uint32_t was = *wf_row_set_note(&h->rows, row) >> USES_BITS;
        uint32_t eras = ((now >> ERA_BITS) - was) % ERAS;

        wf_hashed_set_uses(h, row, halve(wf_hashed_uses(h, row), eras) + 1, now);
    }
    wf_row_set_use(&h->rows, row, now);
}

int32_t wf_hashed_add(wf_hashed *h, uint64_t key, uint32_t now)
{
    int32_t row = wf_row_set_add(&h->rows, key, now);

    wf_hashed_set_uses(h, row, 1, now);
    return row;
}

/* ---- who leaves ---- */

/* Of a set that is not empty. Rows of the update in hand are spared while there are others: new
 * ones have been named once. */
static int32_t least_used(const wf_hashed *h, uint32_t now)
{
    wf_row_use at = wf_row_set_first(&h->rows);
    int32_t least = at.row;
    uint32_t fewest = uses_at(h, at, now);

    for (int i = 1; i < SAMPLE; i++) {
        uint32_t uses;

        at = wf_row_set_next(&h->rows, at);
        if (at.row == WF_NO_RECORD || at.used == now)
            break;
        uses = uses_at(h, at, now);
        if (uses < fewest) {
            fewest = uses;
            least = at.row;
        }
    }
    return least;
}

static bool is_old(const wf_hashed *h, wf_row_use row)
{
    uint32_t now = (uint32_t)h->base.updates, after = h->base.policy.evict_after;

    return after && now - row.used >= after;
}

/* Rows beyond a limit that have a place in files stay; so do counts, which max_rows does not limit
 * then. */
static uint64_t most_of(const wf_hashed *h, const wf_row_set *set)
{
    const wf_row_policy *p = &h->base.policy;
    bool stays = p->fails_full || (p->disk && (set == &h->rows || !p->max_bytes));

    return p->max_rows && !stays ? p->max_rows : UINT64_MAX;
}

/* H1 */
static void evict(const wf_hashed *h, wf_row_set *set)
{
    bool by_frequency = h->base.policy.by_frequency && set == &h->rows;
    uint32_t now = (uint32_t)h->base.updates;
    uint64_t most = most_of(h, set);

    while (set->ordered && set->records.n > 0) {
        wf_row_use oldest = wf_row_set_first(set);
        bool old = is_old(h, oldest);

        if (!old && set->records.n <= most)
            return;
        wf_row_set_remove(set, old || !by_frequency ? oldest.row : least_used(h, now));
    }
}

/* H3: all of `cold` are older than those of `rows`, so they leave first, and come last. */
static void put_into_files(wf_hashed *h)
{
    uint64_t most = wf_hashed_in_memory(h, h->rows.records.n + wf_cold_rows_n(&h->cold));

    while (h->rows.records.n > most) {
        wf_row_use oldest = wf_row_set_first(&h->rows);

        memcpy(wf_cold_rows_add(&h->cold, wf_row_set_key(&h->rows, oldest.row), oldest.used),
               wf_row_set_body(&h->rows, oldest.row), wf_hashed_body(h));
        wf_row_set_remove(&h->rows, oldest.row);
    }
}

void wf_hashed_evict(wf_hashed *h)
{
    while (wf_cold_rows_n(&h->cold) > 0 && is_old(h, wf_row_set_first(&h->cold.heads)))
        wf_cold_rows_remove(&h->cold, wf_row_set_first(&h->cold.heads).row);
    evict(h, &h->rows);
    evict(h, &h->waiting);
    if (h->base.policy.disk) {
        put_into_files(h);
        wf_cold_rows_trim(&h->cold);
    }
    wf_row_set_trim(&h->rows);
    wf_row_set_trim(&h->waiting);
    h->base.bytes = (h->rows.records.n + wf_cold_rows_n(&h->cold)) *
                    wf_row_values_room(wf_slice_dtype(&h->base), h->base.row);
}
