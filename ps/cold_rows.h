/* SPDX-License-Identifier: Apache-2.0 */
/* ps/cold_rows.h - rows that memory has no room for: their keys and the order of their last use
 * stay in memory, their bodies lie in files.
 *
 * All that a search, a removal and a growing index read is in memory, so that the disk is read for
 * a row that is wanted and for no other, but for one case: a row that is taken out leaves its place
 * to the last one.
 *
 * Invariants
 *   C1  body i is that of row i of `heads`
 *   C2  rows come in the order of their last use: none that was used earlier than one that is here
 */
#ifndef WF_PS_COLD_ROWS_H
#define WF_PS_COLD_ROWS_H

#include "ps/file_array.h"
#include "ps/row_set.h"

/* {0} is closed, and has no rows. */
typedef struct wf_cold_rows {
    wf_row_set heads; /* without bodies */
    wf_file_array bodies;
} wf_cold_rows;

/* No rows of that bucket, with bodies of so many bytes in files of a folder, which is borrowed. */
void wf_cold_rows_init(wf_cold_rows *c, const char *folder, uint32_t bucket, uint32_t body);
void wf_cold_rows_close(wf_cold_rows *c);
/* Room for so many more, on disk as well, last used in so many eras. Errors: WF_NOMEM, WF_FULL,
 * WF_IO. */
WF_MUST_USE wf_status wf_cold_rows_reserve(wf_cold_rows *c, uint64_t more, uint64_t eras,
                                           wf_err *err);
/* Adds a row, for which there is room, as the newest; where its body goes. */
void *wf_cold_rows_add(wf_cold_rows *c, uint64_t key, uint32_t used);
/* Removes a row; the one of the highest number gets its number. Space and memory are given back by
 * wf_cold_rows_trim, which ends all reservations. */
void wf_cold_rows_remove(wf_cold_rows *c, int32_t row);
void wf_cold_rows_trim(wf_cold_rows *c);
/* Of the rows [n] from number `first` of what a message names: those whose out[] is WF_NO_RECORD
 * are looked for here, and out[] becomes wf_cold_row of the number. Their bodies begin to be read.
 */
void wf_cold_rows_find_all(const wf_cold_rows *c, const wf_rows *rows, uint64_t first, uint64_t n,
                           int32_t out[]);
/* Bytes of memory held; bytes reserved on disk. */
size_t wf_cold_rows_bytes(const wf_cold_rows *c);
uint64_t wf_cold_rows_on_disk(const wf_cold_rows *c);

/* A number of a row that says that the row is here; and back again. */
static inline int32_t wf_cold_row(int32_t row)
{
    return WF_NO_RECORD - 1 - row;
}

static inline bool wf_is_cold_row(int32_t found)
{
    return found < WF_NO_RECORD;
}

static inline uint32_t wf_cold_rows_n(const wf_cold_rows *c)
{
    return c->heads.records.n;
}

static inline void *wf_cold_rows_body(const wf_cold_rows *c, int32_t row)
{
    return wf_file_array_at(&c->bodies, (uint32_t)row);
}

#endif
