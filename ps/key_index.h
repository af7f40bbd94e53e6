/* SPDX-License-Identifier: Apache-2.0 */
/* ps/key_index.h - the number of a record by its key: open addressing with linear probing, 4 bytes
 * an entry.
 *
 * An entry is a record's number and seven bits of its key, so that a search reads few records but
 * the one that it is for. A key that is removed leaves no mark: later entries of its run move back
 * (Knuth, "The Art of Computer Programming", volume 3, section 6.4, algorithm R).
 *
 * The array grows by a fifth and not by doubling, so that little of it is empty at any time. It
 * is filled little by little: each change moves a few runs of the old array to the new one, in the
 * order of their places, and a key is in the array that its old place says. No change moves many.
 *
 * Keys are those of rows (common/base/row_key.h): their bits are mixed already, and those above
 * the bucket's say the place.
 *
 * Invariants
 *   I1  at most 4/5 of the entries of either array are in use
 *   I2  while there is an old array: a key that it has does not have its home there among the
 *       `moved` places from `start` on. Keys are added to the new array alone
 */
#ifndef WF_PS_KEY_INDEX_H
#define WF_PS_KEY_INDEX_H

#include "ps/records.h"
#include <stdbool.h>

/* {0} is empty. */
typedef struct wf_key_index {
    struct wf_key_array {
        uint32_t *entries; /* [room]; 0: free */
        uint64_t room, n;
    } now, old;            /* old: without entries when there is none */
    uint64_t start, moved; /* I2 */
} wf_key_index;

void wf_key_index_close(wf_key_index *x);
/* Room for so many more, so that adding them cannot fail. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_key_index_reserve(wf_key_index *x, const wf_records *r, uint64_t more,
                                           wf_err *err);
/* The number of the record of that key, or WF_NO_RECORD. */
int32_t wf_key_index_find(const wf_key_index *x, const wf_records *r, uint64_t key);
/* Asks for the memory that a search for the key begins with, and then for that of the record that
 * it finds in all likelihood. */
void wf_key_index_prefetch(const wf_key_index *x, uint64_t key);
void wf_key_index_prefetch_record(const wf_key_index *x, const wf_records *r, uint64_t key);
/* Adds record i, whose key is not here, and for which there is room. */
void wf_key_index_add(wf_key_index *x, const wf_records *r, uint32_t i);
/* Removes record i, which is here. All records are still where they were. */
void wf_key_index_remove(wf_key_index *x, const wf_records *r, uint32_t i);
/* Record `from`, which is here, is to be found as `to`: a copy of it. */
void wf_key_index_renumber(wf_key_index *x, const wf_records *r, uint32_t from, uint32_t to);
/* Begins to give back memory when little of it is in use; not between a reservation and its end. */
void wf_key_index_trim(wf_key_index *x);
/* Bytes of memory held. */
size_t wf_key_index_bytes(const wf_key_index *x);

#endif
