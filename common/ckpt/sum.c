/* SPDX-License-Identifier: Apache-2.0 */
/* common/ckpt/sum.c */
#include "common/ckpt/sum.h"

#include <inttypes.h>
#include <stdio.h>
#include <xxhash.h>

static void print(XXH128_hash_t h, char text[WF_SUM_TEXT])
{
    snprintf(text, WF_SUM_TEXT, "%016" PRIx64 "%016" PRIx64, (uint64_t)h.high64, (uint64_t)h.low64);
}

wf_sum *wf_sum_begin(void)
{
    XXH3_state_t *s = XXH3_createState();

    if (s && XXH3_128bits_reset(s) == XXH_ERROR) {
        XXH3_freeState(s);
        s = NULL;
    }
    return (wf_sum *)s;
}

void wf_sum_add(wf_sum *s, const void *data, size_t n)
{
    if (n)
        XXH3_128bits_update((XXH3_state_t *)s, data, n);
}

void wf_sum_end(wf_sum **s, char text[WF_SUM_TEXT])
{
    if (*s && text)
        print(XXH3_128bits_digest((XXH3_state_t *)*s), text);
    XXH3_freeState((XXH3_state_t *)*s);
    *s = NULL;
}

void wf_sum_of(const void *data, size_t n, char text[WF_SUM_TEXT])
{
    print(XXH3_128bits(data, n), text);
}
