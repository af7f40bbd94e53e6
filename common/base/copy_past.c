/* SPDX-License-Identifier: Apache-2.0 */
/* common/base/copy_past.c */
#include "common/base/copy_past.h"
#include "common/base/size.h"

#include <stdint.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum { LINE = 64, FEW = 16 << 10 /* bytes that are soon taken back, and soon needed */ };

#ifdef __SSE2__
/* Whole lines, of memory that begins with one: each is written at once. */
static void copy_lines(uint8_t *restrict to, const uint8_t *restrict from, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += LINE)
        for (size_t k = i; k < i + LINE; k += sizeof(__m128i))
            _mm_stream_si128((__m128i *)(void *)(to + k),
                             _mm_loadu_si128((const __m128i *)(const void *)(from + k)));
    _mm_sfence();
}
#endif

void wf_copy_past_cache(void *restrict to, const void *restrict from, size_t bytes)
{
#ifdef __SSE2__
    if (bytes >= FEW) {
        size_t head = -(uintptr_t)to % LINE, lines = (bytes - head) / LINE * LINE;

        memcpy(to, from, head);
        copy_lines((uint8_t *)to + head, (const uint8_t *)from + head, lines);
        to = (uint8_t *)to + head + lines;
        from = (const uint8_t *)from + head + lines;
        bytes -= head + lines;
    }
#endif
    memcpy(to, from, bytes);
}
