/* SPDX-License-Identifier: Apache-2.0 */
/* ps/key_index.h - the number of a record by its key: open addressing with linear probing, 4 bytes
 * an entry.
 *
 * An entry is a record's number and the tag of its key, the seven lowest bits, which the record
 * does not have. So a search reads few records but the one that it is for; and a record's key is
 * known in full where its entry is found. A key that is removed leaves no mark: later entries of
 * its run move back (Knuth, "The Art of Computer Programming", volume 3, section 6.4, algorithm R).
 *
 * Keys are those of rows of one bucket (common/base/row_key.h): their bits are mixed already, and
 * the stem says the place: a key's home is that fraction of the array, so that homes rise with
 * keys whatever the array's size.
 *
 * The array grows by a fifth and not by doubling, so that little of it is empty at any time, and
 * where it lies: there is no second array at any time. Each change settles a few homes of the old
 * size anew, from the last to the first, into places that the growth has made free. An array that
 * shrinks does the same from the first to the last, and gives its end back then. No change moves
 * many entries.
 *
 * Invariants
 *   I1  at most 4/5 of the places are in use, and 7/8 of those whose homes are not settled yet
 *   I2  no place from a key's home to its entry is free
 */
#ifndef WF_PS_KEY_INDEX_H
#define WF_PS_KEY_INDEX_H

#include "ps/records.h"

/* {0} is empty. */
typedef struct wf_key_index {
    uint32_t *entries; /* [room], 0: free; of memory for `held` */
    uint64_t room, held, n;
    uint64_t homes;     /* how many places are homes; fewer than room while the array shrinks */
    uint64_t old_homes; /* while homes are settled anew: how many there were; 0 at other times */
    uint64_t border; /* the next old home to be settled is before it, or at it in a shrinking one */
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
/* The key of record i, which is here, but for its bucket's bits, which are 0. */
uint64_t wf_key_index_key(const wf_key_index *x, const wf_records *r, uint32_t i);
/* Asks for the memory that this begins with. */
void wf_key_index_prefetch_key(const wf_key_index *x, const wf_records *r, uint32_t i);
/* Adds record i of that key, which is not here, and for which there is room. */
void wf_key_index_add(wf_key_index *x, const wf_records *r, uint32_t i, uint64_t key);
/* Removes record i, which is here. All records are still where they were. */
void wf_key_index_remove(wf_key_index *x, const wf_records *r, uint32_t i);
/* Record `from`, which is here, is to be found as `to`: a copy of it. */
void wf_key_index_renumber(wf_key_index *x, const wf_records *r, uint32_t from, uint32_t to);
/* Begins to give back memory when little of it is in use; not between a reservation and its end. */
void wf_key_index_trim(wf_key_index *x);
/* Bytes of memory held. */
size_t wf_key_index_bytes(const wf_key_index *x);

#endif
