/* SPDX-License-Identifier: Apache-2.0 */
/* common/base/unique.h - the distinct numbers of a list, and where each of the list is among them.
 */
#ifndef WF_BASE_UNIQUE_H
#define WF_BASE_UNIQUE_H

#include "common/base/status.h"
#include <stddef.h>
#include <stdint.h>

/* Memory that is kept from call to call. {0} is empty. */
typedef struct wf_unique {
    struct wf_unique_row {
        uint64_t number, at;
    } * rows, *spare; /* [room] */
    size_t room;
    uint64_t *bits;   /* [bits_room]: which numbers occur */
    uint64_t *before; /* [bits_room]: how many do, below those of a word of bits */
    size_t bits_room;
} wf_unique;

void wf_unique_close(wf_unique *d);
/* Sets distinct [n], of which *n_distinct are in use, to the numbers of the list in rising order
 * (it may be the list itself), and places [n] to where each of the list is among them. Time: n, and
 * a 64th of the largest number where that is below 64 n; else n for each 11 bits of it. Errors:
 * WF_NOMEM. */
WF_MUST_USE wf_status wf_unique_find(wf_unique *d, const uint64_t numbers[], size_t n,
                                     uint64_t distinct[], size_t *n_distinct, int64_t places[],
                                     wf_err *err);

#endif
