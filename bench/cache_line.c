/* SPDX-License-Identifier: Apache-2.0 */
/* bench/cache_line.c - prints the nanoseconds in which a cache line goes to another processor and
 * comes back, for the scripts beside this file. */
#include "common/base/cache_line.h"

#include <stdio.h>

int main(void)
{
    printf("%ld\n", (long)wf_cache_line_ns());
    return 0;
}
