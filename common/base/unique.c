/* SPDX-License-Identifier: Apache-2.0 */
/* common/base/unique.c - a radix sort from the low digit on, which keeps the order of equal
 * numbers (Knuth, "The Art of Computer Programming", volume 3, section 5.2.5). */
#include "common/base/unique.h"
#include "common/base/size.h"

#include <stdlib.h>

enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS };

void wf_unique_close(wf_unique *d)
{
    free(d->rows);
    free(d->spare);
    *d = (wf_unique){0};
}

static wf_status make_room(wf_unique *d, size_t n, wf_err *err)
{
    if (n <= d->room)
        return WF_OK;
    wf_unique_close(d);
    d->rows = calloc(n, sizeof *d->rows);
    d->spare = calloc(n, sizeof *d->spare);
    if (!d->rows || !d->spare) {
        wf_unique_close(d);
        return wf_fail_nomem(err, n * sizeof *d->rows);
    }
    d->room = n;
    return WF_OK;
}

/* From `rows` to `spare`, in the order of one digit; they change places. */
static void sort_digit(wf_unique *d, size_t n, unsigned shift)
{
    size_t begin[DIGITS] = {0}, sum = 0;
    struct wf_unique_row *from = d->rows;

    for (size_t i = 0; i < n; i++)
        begin[from[i].number >> shift & (DIGITS - 1)]++;
    for (size_t k = 0; k < DIGITS; k++) {
        size_t count = begin[k];

        begin[k] = sum;
        sum += count;
    }
    for (size_t i = 0; i < n; i++)
        d->spare[begin[from[i].number >> shift & (DIGITS - 1)]++] = from[i];
    d->rows = d->spare;
    d->spare = from;
}

wf_status wf_unique_find(wf_unique *d, const uint64_t numbers[], size_t n, uint64_t distinct[],
                         size_t *n_distinct, int64_t places[], wf_err *err)
{
    uint64_t largest = 0;
    size_t found = 0;

    WF_TRY(make_room(d, n, err));
    for (size_t i = 0; i < n; i++) {
        d->rows[i] = (struct wf_unique_row){numbers[i], i};
        largest = WF_MAX(largest, numbers[i]);
    }
    for (unsigned shift = 0; shift < 64 && largest >> shift > 0; shift += DIGIT_BITS)
        sort_digit(d, n, shift);
    for (size_t i = 0; i < n; i++) {
        if (found == 0 || distinct[found - 1] != d->rows[i].number)
            distinct[found++] = d->rows[i].number;
        places[d->rows[i].at] = (int64_t)found - 1;
    }
    *n_distinct = found;
    return WF_OK;
}
