/* SPDX-License-Identifier: Apache-2.0 */
/* ps/row_set.h - rows of one size by their keys, and in the order of their last use if that is
 * asked for. What a row holds is its owner's.
 *
 * Records have no gaps: the last one takes the place of one that is removed.
 *
 * Invariants
 *   R1  the numbers of rows are 0 to n - 1; only a removal changes one
 */
#ifndef WF_PS_ROW_SET_H
#define WF_PS_ROW_SET_H

#include "common/wire/parts.h"
#include "ps/key_index.h"
#include "ps/records.h"
#include "ps/row_order.h"
#include <stdbool.h>

/* {0} is closed. */
typedef struct wf_row_set {
    wf_records records;
    wf_key_index index;
    wf_row_order order; /* empty unless `ordered` */
    bool ordered;
    uint64_t bucket; /* a key with the highest bits of all keys, the others 0 */
} wf_row_set;

/* An empty set of rows of that bucket with `body` bytes each, a multiple of 4. All keys below are
 * of the bucket. */
void wf_row_set_init(wf_row_set *s, uint32_t bucket, uint32_t body, bool ordered);
/* The same with an order, and with 8 bits of the owner's for each row (wf_row_set_note). */
void wf_row_set_init_noted(wf_row_set *s, uint32_t bucket, uint32_t body);
void wf_row_set_close(wf_row_set *s);
/* Room for so many more, and in a set with an order for uses in so many more eras. Errors:
 * WF_NOMEM, WF_FULL. */
WF_MUST_USE wf_status wf_row_set_reserve(wf_row_set *s, uint64_t more, uint64_t eras, wf_err *err);
/* The key of a row: a search of the index. */
uint64_t wf_row_set_key(const wf_row_set *s, int32_t row);
/* Asks for the memory that this begins with. */
void wf_row_set_prefetch_key(const wf_row_set *s, int32_t row);
/* The number of the row of a key, or WF_NO_RECORD; and those of rows [n] from number `first` of
 * what a message names, into out. */
int32_t wf_row_set_find(const wf_row_set *s, uint64_t key);
void wf_row_set_find_all(const wf_row_set *s, const wf_rows *rows, uint64_t first, uint64_t n,
                         int32_t out[]);
/* Adds a row, for which there is room, as the newest; its number. The body is undefined. Here and
 * below, `now` is not before the last use of another row. */
int32_t wf_row_set_add(wf_row_set *s, uint64_t key, uint32_t now);
/* The row is used now, and the newest. */
void wf_row_set_use(wf_row_set *s, int32_t row, uint32_t now);
/* Asks for the memory that wf_row_set_use of that row touches beside the row. */
void wf_row_set_prefetch_use(const wf_row_set *s, int32_t row);
/* Removes a row; the one of the highest number gets its number. Memory is given back by
 * wf_row_set_trim, which ends all reservations. */
void wf_row_set_remove(wf_row_set *s, int32_t row);
void wf_row_set_trim(wf_row_set *s);
/* Bytes of memory held. */
size_t wf_row_set_bytes(const wf_row_set *s);

/* All rows, from the oldest to the newest, or by their numbers in a set without an order: the
 * first, and the next one. `used` is 0 without an order. */
wf_row_use wf_row_set_first(const wf_row_set *s);
wf_row_use wf_row_set_next(const wf_row_set *s, wf_row_use at);

/* What is the owner's; undefined in a new row. */
static inline uint8_t *wf_row_set_note(const wf_row_set *s, int32_t row)
{
    return wf_records_owners_note(&s->records, (uint32_t)row);
}

static inline void *wf_row_set_body(const wf_row_set *s, int32_t row)
{
    return wf_records_body(&s->records, (uint32_t)row);
}

#endif
