/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/product/tile_vectors.h - tiles in vectors, for what packs them: 16 vectors of
 * 32 values of bfloat16, or of 16 pairs. For x86-64 alone. */
#ifndef WF_KERNELS_CPU_TILE_VECTORS_H
#define WF_KERNELS_CPU_TILE_VECTORS_H

#if defined(__x86_64__)

#include "common/base/cc.h"
#include "common/kernels/cpu/product/tiles.h"

#include <immintrin.h>

#define VECTORS __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,bmi2")))

#define MATRICES                                                                                   \
    __attribute__((target("amx-tile,amx-bf16,avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")))

/* The intrinsics of tiles do not tell the compiler what memory they read and write. */
#define SEEN(p) __asm__ volatile("" ::"r"(p) : "memory")

/* Turns 16 x 16 pairs: of 2, 4, 8 and 16 columns. */
VECTORS static WF_INLINE void turn(__m512i r[WF_TILE])
{
    __m512i s[WF_TILE];

    for (int i = 0; i < WF_TILE; i += 2) {
        s[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
        s[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
    }
    for (int i = 0; i < WF_TILE; i += 4) {
        r[i] = _mm512_unpacklo_epi64(s[i], s[i + 2]);
        r[i + 1] = _mm512_unpackhi_epi64(s[i], s[i + 2]);
        r[i + 2] = _mm512_unpacklo_epi64(s[i + 1], s[i + 3]);
        r[i + 3] = _mm512_unpackhi_epi64(s[i + 1], s[i + 3]);
    }
    for (int i = 0; i < WF_TILE; i += 8)
        for (int k = 0; k < 4; k++) {
            s[i + k] = _mm512_shuffle_i32x4(r[i + k], r[i + k + 4], 0x88);
            s[i + k + 4] = _mm512_shuffle_i32x4(r[i + k], r[i + k + 4], 0xdd);
        }
    for (int k = 0; k < 8; k++) {
        r[k] = _mm512_shuffle_i32x4(s[k], s[k + 8], 0x88);
        r[k + 8] = _mm512_shuffle_i32x4(s[k], s[k + 8], 0xdd);
    }
}

static WF_INLINE __mmask16 first(int64_t n)
{
    return (__mmask16)(n >= WF_TILE ? 0xffff : n <= 0 ? 0 : (1u << n) - 1);
}

/* Of two vectors that lie behind each other, values 0, 16, 1, 17 and so on. */
VECTORS static WF_INLINE __m512i in_turn(__m512i both)
{
    static const uint16_t order[32] WF_ALIGNED(64) = {0,  16, 1,  17, 2,  18, 3,  19, 4,  20, 5,
                                                      21, 6,  22, 7,  23, 8,  24, 9,  25, 10, 26,
                                                      11, 27, 12, 28, 13, 29, 14, 30, 15, 31};

    return _mm512_permutexvar_epi16(_mm512_load_si512(order), both);
}

/* 16 values as they are, of which those are read whose bits are set. */
VECTORS static WF_INLINE __m512 load_wide(wf_factors x, __mmask16 there)
{
    if (x.is_bf16)
        return (__m512)_mm512_slli_epi32(
            _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(there, x.x)), 16);
    return _mm512_maskz_loadu_ps(there, x.x);
}

VECTORS static WF_INLINE void store_tile(const __m512i r[WF_TILE], char *to)
{
    for (int i = 0; i < WF_TILE; i++)
        _mm512_storeu_si512(to + i * 64, r[i]);
}

#endif

#endif
