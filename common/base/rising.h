/* SPDX-License-Identifier: Apache-2.0 */
/* common/base/rising.h - search among numbers that rise. */
#ifndef WF_BASE_RISING_H
#define WF_BASE_RISING_H

#include "common/base/cc.h"
#include <stdint.h>

/* The index of x in list [n], whose numbers rise; -1 where it is none of them. */
WF_ALSO_GPU static inline int64_t wf_find_rising(const int64_t list[], int64_t n, int64_t x)
{
    int64_t from = 0;

    /* A step halves what is left and is no branch: which way it goes cannot be foretold. */
    for (int64_t left = n; left > 1; left -= left / 2)
        from = list[from + left / 2] <= x ? from + left / 2 : from;
    return n > 0 && list[from] == x ? from : -1;
}

#endif
