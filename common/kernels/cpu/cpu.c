/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/cpu.c */
#include "common/kernels/cpu/cpu.h"

#include <string.h>

void wf_copy(void *to, const void *from, size_t bytes)
{
    if (bytes && to != from)
        memcpy(to, from, bytes);
}
