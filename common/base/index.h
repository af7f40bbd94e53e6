/* SPDX-License-Identifier: Apache-2.0 */
/* common/base/index.h - finds a pointer by a 64-bit number: a hash table with open addressing.
 *
 * Numbers may be chosen by strangers, so the hash is salted by the table's own address.
 */
#ifndef WF_BASE_INDEX_H
#define WF_BASE_INDEX_H

#include "common/base/status.h"
#include <stddef.h>
#include <stdint.h>

typedef struct wf_index {
    struct wf_index_row {
        uint64_t key;
        void *value; /* NULL: free */
    } * rows;
    size_t n, room; /* room is 0 or a power of two, at least twice n */
} wf_index;

void wf_index_close(wf_index *x);
/* Puts value, which is not NULL, under key, in place of what was there. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_index_put(wf_index *x, uint64_t key, void *value, wf_err *err);
/* NULL when there is none. */
void *wf_index_get(const wf_index *x, uint64_t key);
/* Nothing happens when there is none. */
void wf_index_remove(wf_index *x, uint64_t key);

#endif
