/* SPDX-License-Identifier: Apache-2.0 */
/* ps/hashed.h - a bucket of an unbounded table: rows of any ids, by their keys
 * (common/base/row_key.h). What its files share; nobody else but their tests includes it.
 *
 * A row is stored from the push on that is the admit_after'th to name its id. Before that, and
 * after it was evicted, a pull answers the first values of the id, which follow from the seed, the
 * variable and the id alone: so neither the order of pushes nor the number of ps changes them. A
 * pull stores nothing.
 *
 * Rows are evicted at the end of a push: those that none of the last evict_after updates named, and
 * beyond max_rows the least recently or the least frequently used (hashed_limits.c). With a disk
 * the latter, the least recently used, go to files instead (cold_rows.h) and lose nothing: a push
 * that names one brings it back, a pull reads it where it lies. What an id
 * that waits for its admission has counted goes by the same limits. A limit that refuses pushes is
 * checked for each push: a step that workers make together may pass it by what its pushes name. All
 * of it follows from the keys and their last updates, so a copy that was saved and loaded goes on
 * as the original does.
 *
 * Invariants
 *   H1  outside of an update no row is older than evict_after, nor are there more than max_rows in
 *       `rows`
 *   H2  a key is in one of `rows`, `cold` and `waiting`
 *   H3  no row of `cold` was used after one of `rows`: the order of use is that of `cold`, then
 * that of `rows`
 */
#ifndef WF_PS_HASHED_H
#define WF_PS_HASHED_H

#include "common/ckpt/ckpt.h"
#include "ps/cold_rows.h"
#include "ps/id_filter.h"
#include "ps/row_set.h"
#include "ps/slice.h"

typedef struct wf_hashed {
    wf_slice base;         /* first */
    wf_row_set rows;       /* a body: values, scale (row_values.h), each slot, [row] float32; a note
                              with policy.by_frequency: uses and an era (hashed_limits.c) */
    wf_cold_rows cold;     /* with policy.disk: rows beyond the limit, of the same body */
    uint64_t records_most; /* bytes of `rows` and of what memory has of `cold`; 0: no limit */
    uint64_t rows_most;    /* with policy.disk: of both together */
    wf_row_set waiting;  /* ids that are not admitted yet; a body: how often each was named, u32 */
    wf_id_filter filter; /* in place of `waiting`, with policy.filter_bytes */
    uint32_t n_slots;
    const char *slot_names[WF_MAX_SLOTS];
    float slot_first[WF_MAX_SLOTS];
    int32_t *found; /* of the push in hand: its rows; WF_NO_RECORD: not admitted. At first a row of
                       `cold` is in it as such */
    uint64_t found_room;
    int32_t first_new;           /* rows from this number on are made by the push in hand */
    struct wf_hashed_copy *copy; /* of a fork: its state, and nothing is in the sets */
} wf_hashed;

static inline float *wf_hashed_scale(const wf_hashed *h, void *body)
{
    uint64_t room = wf_row_values_room(wf_slice_dtype(&h->base), h->base.row);

    return (float *)(void *)((uint8_t *)body + room) - 1;
}

static inline float *wf_hashed_slot(const wf_hashed *h, void *body, uint32_t k)
{
    uint64_t room = wf_row_values_room(wf_slice_dtype(&h->base), h->base.row);

    return (float *)(void *)((uint8_t *)body + room) + k * h->base.row;
}

/* Bytes of a row's body. */
static inline uint64_t wf_hashed_body(const wf_hashed *h)
{
    return wf_row_values_room(wf_slice_dtype(&h->base), h->base.row) +
           h->n_slots * h->base.row * sizeof(float);
}

/* hashed_limits.c: sets the limits by max_bytes; the sets have their sizes. Errors: WF_INVALID when
 * these hold no row. */
WF_MUST_USE wf_status wf_hashed_limit(wf_hashed *h, wf_err *err);
/* With policy.disk: how many of n rows lie in memory; never more of more rows. */
uint64_t wf_hashed_in_memory(const wf_hashed *h, uint64_t n);
/* With policy.by_frequency: a row has been named so often, last by the update `now`; and how often
 * it was, as it was then. */
void wf_hashed_set_uses(const wf_hashed *h, int32_t row, uint64_t uses, uint32_t now);
uint32_t wf_hashed_uses(const wf_hashed *h, int32_t row);
/* A row is named by the update `now`; a key gets a row, for which there is room: its number. */
void wf_hashed_use(wf_hashed *h, int32_t row, uint32_t now);
int32_t wf_hashed_add(wf_hashed *h, uint64_t key, uint32_t now);
/* Drops the rows that H1 lets go, or puts them into files: there is room for them. */
void wf_hashed_evict(wf_hashed *h);

/* hashed_rows.c: a new row of that key gets its first values; row `row` is updated by row i of a
 * part; the values of a body as float32, [row]. answer_first: what a row of that key would answer
 * that had just begun.
 */
void wf_hashed_begin_row(const wf_hashed *h, int32_t row, uint64_t key);
void wf_hashed_update_row(const wf_hashed *h, const wf_opt *opt, int32_t row,
                          const wf_slice_part *p, uint64_t i);
void wf_hashed_read_body(const wf_hashed *h, void *body, float out[]);
void wf_hashed_answer_first(const wf_slice *s, uint64_t key, float out[]);

/* Arrays of a fork; NULL: it has no such. They lie in one block, of memory or, as its rows do, of a
 * file; those that were loaded are each its own. */
struct wf_hashed_copy {
    void *block;
    size_t block_bytes;
    bool in_file;
    uint64_t n, n_waiting;
    wf_dtype dtype;
    void *values;
    float *scales, *slots[WF_MAX_SLOTS];
    uint8_t *filter; /* [filter_size] */
    uint64_t filter_size;
    int64_t filter_named;
    int64_t *ids, *updated, *uses, *waiting_ids, *waiting_pushes, *waiting_updated;
};

/* Names of these arrays, as they are saved. */
#define WF_HASHED_IDS WF_CKPT_IDS
#define WF_HASHED_UPDATED "updated"
#define WF_HASHED_USES "uses"
#define WF_HASHED_WAITING_IDS "waiting/ids"
#define WF_HASHED_WAITING_PUSHES "waiting/pushes"
#define WF_HASHED_WAITING_UPDATED "waiting/updated"
#define WF_HASHED_FILTER "waiting/filter"
#define WF_HASHED_FILTER_NAMED "waiting/named"

/* hashed_state.c, hashed_load.c: functions of wf_slice_hashed. */
WF_MUST_USE wf_status wf_hashed_fork(const wf_slice *s, wf_slice *to, wf_err *err);
uint32_t wf_hashed_save(const wf_slice *s, wf_slice_array out[WF_SLICE_ARRAYS]);
WF_MUST_USE wf_status wf_hashed_load(wf_slice *s, const wf_slice_source *from, bool values_only,
                                     wf_err *err);
uint64_t wf_hashed_digest(const wf_slice *s);
void wf_hashed_free_copy(struct wf_hashed_copy **c);

/* Whether ids that have no row yet are counted each. */
static inline bool wf_row_policy_waits(const wf_row_policy *p)
{
    return p->admit_after > 1 && p->filter_bytes == 0;
}

/* Whether rows leave, or leave memory: their last updates are kept then. */
static inline bool wf_row_policy_evicts(const wf_row_policy *p)
{
    return p->evict_after > 0 || ((p->max_rows > 0 || p->max_bytes > 0) && !p->fails_full);
}

#endif
