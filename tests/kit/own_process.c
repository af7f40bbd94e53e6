/* SPDX-License-Identifier: Apache-2.0 */
/* tests/kit/own_process.c - a program that this is linked into computes as weft's own programs do:
 * OpenBLAS starts no threads in it. */
#include "common/kernels/kernel.h"

static void begin(void) __attribute__((constructor));
static void begin(void)
{
    wf_kernels_own_process();
}
