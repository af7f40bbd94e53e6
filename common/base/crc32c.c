/* SPDX-License-Identifier: Apache-2.0 */
/* common/base/crc32c.c - the processor's instruction where it has one, else a nibble table: headers
 * are 64 bytes, so a larger table would cost more in cache than it saves. */
#include "common/base/crc32c.h"

#include <string.h>
#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

uint32_t wf_crc32c_portable(uint32_t crc, const void *data, size_t n)
{
    static const uint32_t table[16] = {0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1,
                                       0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d,
                                       0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
                                       0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75};
    const uint8_t *p = data;

    crc = ~crc;
    for (; n > 0; n--, p++) {
        crc ^= *p;
        crc = crc >> 4 ^ table[crc & 15];
        crc = crc >> 4 ^ table[crc & 15];
    }
    return ~crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t crc_sse42(uint32_t crc, const uint8_t *p,
                                                            size_t n)
{
    uint64_t c = ~crc;

    for (; n >= 8; n -= 8, p += 8) {
        uint64_t word;

        memcpy(&word, p, sizeof word);
        c = _mm_crc32_u64(c, word);
    }
    for (; n > 0; n--, p++)
        c = _mm_crc32_u8((uint32_t)c, *p);
    return ~(uint32_t)c;
}
#endif

uint32_t wf_crc32c(uint32_t crc, const void *data, size_t n)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("sse4.2"))
        return crc_sse42(crc, data, n);
#endif
    return wf_crc32c_portable(crc, data, n);
}
