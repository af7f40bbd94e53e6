/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/product/tiles_pack.c - factors as tiles. */
#include "common/base/cc.h"
#include "common/base/status.h"
#include "common/kernels/cpu/product/tile_vectors.h"
#include "common/kernels/cpu/product/tiles.h"

#if defined(__x86_64__)

/* The values of x whose bits are set, `step` floats apart; 0 for the others. */
VECTORS static WF_INLINE __m512 load(__mmask16 there, const float *x, int64_t step)
{
    __m512i lanes = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);

    if (step == 1)
        return _mm512_maskz_loadu_ps(there, x);
    return _mm512_mask_i32gather_ps(_mm512_setzero_ps(), there,
                                    _mm512_mullo_epi32(lanes, _mm512_set1_epi32((int)step)), x, 4);
}

/* The same of bfloat16. */
VECTORS static WF_INLINE __m256i load_bf16(__mmask16 there, const uint16_t *x, int64_t step)
{
    uint16_t some[WF_TILE] = {0};

    if (step == 1)
        return _mm256_maskz_loadu_epi16(there, x);
    if (step == 2) /* the lower halves of pairs */
        return _mm512_cvtepi32_epi16(_mm512_maskz_loadu_epi16(_pdep_u32(there, 0x55555555), x));
    for (int i = 0; i < WF_TILE; i++)
        if (there >> i & 1)
            some[i] = x[i * step];
    return _mm256_loadu_si256((const void *)some);
}

/* Rounded values of two rows behind each other: at x, and `far` values from there. */
VECTORS static WF_INLINE __m512i load_two(wf_factors x, int64_t far, int64_t step, __mmask16 low,
                                          __mmask16 high)
{
    if (x.is_bf16) {
        const uint16_t *from = x.x;

        return _mm512_inserti64x4(_mm512_castsi256_si512(load_bf16(low, from, step)),
                                  load_bf16(high, from + far, step), 1);
    }
    return (__m512i)_mm512_cvtne2ps_pbh(load(high, (const float *)x.x + far, step),
                                        load(low, x.x, step));
}

/* Row i holds 32 values along k of outer i. */
VECTORS static WF_INLINE void load_along(wf_strided s, int64_t step, int64_t outer, int64_t k,
                                         __m512i r[WF_TILE])
{
    __mmask16 low = first(k), high = first(k - WF_TILE);

    for (int i = 0; i < WF_TILE; i++)
        r[i] = i < outer ? load_two(wf_factors_at(s.x, i * s.row), WF_TILE * step, step, low, high)
                         : _mm512_setzero_si512();
}

/* Row i holds values 2 i and 2 i + 1 along k of 16 outer ones. */
VECTORS static WF_INLINE void load_across(wf_strided s, int64_t step, int64_t outer, int64_t k,
                                          __m512i r[WF_TILE])
{
    __mmask16 all = first(outer);

    for (int i = 0; i < WF_TILE; i++)
        r[i] = in_turn(load_two(wf_factors_at(s.x, 2 * i * s.row), s.row, step, 2 * i < k ? all : 0,
                                2 * i + 1 < k ? all : 0));
}

/* step: of s, known to the compiler where it is 1. */
VECTORS static WF_INLINE void pack_along(wf_strided s, int64_t step, bool turns, int64_t outer,
                                         int64_t k, char *to, int64_t panel)
{
    __m512i r[WF_TILE];

    for (int64_t o = 0; o < outer; o += WF_TILE, to += panel)
        for (int64_t i = 0; i < k; i += WF_TILE_K) {
            load_along((wf_strided){wf_factors_at(s.x, o * s.row + i * step), s.row, step}, step,
                       outer - o, k - i, r);
            if (turns)
                turn(r);
            store_tile(r, to + i / WF_TILE_K * WF_TILE_BYTES);
        }
}

VECTORS static WF_INLINE void pack_across(wf_strided s, int64_t step, bool turns, int64_t outer,
                                          int64_t k, char *to, int64_t panel)
{
    __m512i r[WF_TILE];

    for (int64_t i = 0; i < k; i += WF_TILE_K, to += WF_TILE_BYTES)
        for (int64_t o = 0; o < outer; o += WF_TILE) {
            load_across((wf_strided){wf_factors_at(s.x, i * s.row + o * step), s.row, step}, step,
                        outer - o, k - i, r);
            if (turns)
                turn(r);
            store_tile(r, to + o / WF_TILE * panel);
        }
}

VECTORS void wf_tiles_pack(wf_strided from, wf_along along, bool for_b, int64_t outer, int64_t k,
                           void *to, int64_t panel)
{
    wf_strided narrow = {{from.x.x, true}, from.row, 1}, wide = {{from.x.x, false}, from.row, 1};

    if (from.x.is_bf16 && along == WF_ALONG_K)
        pack_along(narrow, 1, for_b, outer, k, to, panel);
    else if (from.x.is_bf16)
        pack_across(narrow, 1, !for_b, outer, k, to, panel);
    else if (along == WF_ALONG_K && from.step == 1)
        pack_along(wide, 1, for_b, outer, k, to, panel);
    else if (along == WF_ALONG_K)
        pack_along(wide, from.step, for_b, outer, k, to, panel);
    else if (from.step == 1)
        pack_across(wide, 1, !for_b, outer, k, to, panel);
    else
        pack_across(wide, from.step, !for_b, outer, k, to, panel);
}

/* The sums of a tile's rows: of those that are even, of the others, and of both. So it is for each
 * type of x, and what is bfloat16 has the sums of the same numbers in float32. */
VECTORS static WF_INLINE void sum_tile(wf_factors x, int64_t row, int64_t outer, int64_t k,
                                       float *sums)
{
    __m512 even = _mm512_setzero_ps(), odd = _mm512_setzero_ps();
    __mmask16 all = first(outer);

    for (int64_t i = 0; i < WF_TILE_K; i += 2) {
        even = _mm512_add_ps(even, load_wide(wf_factors_at(x, i * row), i < k ? all : 0));
        odd = _mm512_add_ps(odd, load_wide(wf_factors_at(x, (i + 1) * row), i + 1 < k ? all : 0));
    }
    even = _mm512_add_ps(even, odd);
    _mm512_mask_storeu_ps(sums, all, _mm512_add_ps(_mm512_maskz_loadu_ps(all, sums), even));
}

VECTORS static WF_INLINE void pack_and_sum(wf_factors x, int64_t row, int64_t outer, int64_t k,
                                           char *to, int64_t panel, float *sums)
{
    __m512i r[WF_TILE];

    for (int64_t i = 0; i < k; i += WF_TILE_K, to += WF_TILE_BYTES)
        for (int64_t o = 0; o < outer; o += WF_TILE) {
            wf_factors at = wf_factors_at(x, i * row + o);

            load_across((wf_strided){at, row, 1}, 1, outer - o, k - i, r);
            sum_tile(at, row, outer - o, k - i, sums + o);
            store_tile(r, to + o / WF_TILE * panel);
        }
}

VECTORS void wf_tiles_pack_and_sum(wf_factors x, int64_t row, int64_t outer, int64_t k, void *to,
                                   int64_t panel, float sums[])
{
    if (x.is_bf16)
        pack_and_sum((wf_factors){x.x, true}, row, outer, k, to, panel, sums);
    else
        pack_and_sum((wf_factors){x.x, false}, row, outer, k, to, panel, sums);
}

/* Where the vector of value i of n begins, so that the last one is whole too, if there are as many
 * values: a store of a part takes several times as long. Some are then written twice. */
static WF_INLINE int64_t begin_of(int64_t i, int64_t n, int64_t width)
{
    return n - i >= width || n < width ? i : n - width;
}

/* A row that is rounded already. */
VECTORS static void copy_row(const uint16_t *x, int64_t n, uint16_t *to)
{
    for (int64_t i = 0; i < n; i += WF_TILE) {
        int64_t at = begin_of(i, n, WF_TILE);
        __m256i some = _mm256_maskz_loadu_epi16(first(n - at), x + at);

        if (n >= WF_TILE)
            _mm256_storeu_si256((void *)(to + at), some);
        else
            _mm256_mask_storeu_epi16(to + at, first(n), some);
    }
}

VECTORS void wf_tiles_round(wf_factors x, int64_t step, int64_t n, uint16_t *to)
{
    if (x.is_bf16 && step == 1) {
        copy_row(x.x, n, to);
        return;
    }
    for (int64_t i = 0; i < n; i += WF_TILE) {
        int64_t begin = begin_of(i, n, WF_TILE);
        __mmask16 there = first(n - begin);
        const void *at = wf_factors_at(x, begin * step).x;
        __m256i some = x.is_bf16 ? load_bf16(there, at, step)
                                 : (__m256i)_mm512_cvtneps_pbh(load(there, at, step));

        if (n >= WF_TILE)
            _mm256_storeu_si256((void *)(to + begin), some);
        else
            _mm256_mask_storeu_epi16(to + begin, there, some);
    }
}

VECTORS static WF_INLINE void pair(wf_factors x, int64_t second, bool has_second, int64_t step,
                                   int64_t n, uint16_t *to)
{
    for (int64_t i = 0; i < n; i += WF_TILE) {
        int64_t at = begin_of(i, n, WF_TILE);
        __mmask16 there = first(n - at);
        __m512i both = in_turn(
            load_two(wf_factors_at(x, at * step), second, step, there, has_second ? there : 0));

        if (n >= WF_TILE)
            _mm512_storeu_si512(to + 2 * at, both);
        else
            _mm512_mask_storeu_epi32(to + 2 * at, there, both);
    }
}

VECTORS void wf_tiles_pair(wf_factors x, int64_t second, bool has_second, int64_t step, int64_t n,
                           uint16_t *to)
{
    if (x.is_bf16 && step == 1)
        pair((wf_factors){x.x, true}, second, has_second, 1, n, to);
    else if (x.is_bf16)
        pair((wf_factors){x.x, true}, second, has_second, step, n, to);
    else
        pair((wf_factors){x.x, false}, second, has_second, step, n, to);
}

VECTORS void wf_tiles_turn(const void *rows, int64_t row, int64_t tiles, void *to)
{
    __m512i r[WF_TILE];

    for (int64_t t = 0; t < tiles; t++) {
        for (int i = 0; i < WF_TILE; i++)
            r[i] = _mm512_loadu_si512((const char *)rows + i * row + t * 64);
        turn(r);
        store_tile(r, (char *)to + t * WF_TILE_BYTES);
    }
}

VECTORS static WF_INLINE void stack(wf_factors x, int64_t second, int64_t step, int64_t n_first,
                                    int64_t n_second, int64_t pixels, void *to, int64_t slot)
{
    __m512i r[WF_TILE];

    for (int64_t p = 0; p < pixels; p += WF_TILE) {
        __mmask16 there = first(pixels - p);

        for (int i = 0; i < WF_TILE; i++)
            r[i] = in_turn(load_two(wf_factors_at(x, p + i * step), second, 1,
                                    i < n_first ? there : 0, i < n_second ? there : 0));
        turn(r);
        for (int i = 0; i < WF_TILE && p + i < pixels; i++)
            _mm512_storeu_si512((char *)to + (p + i) * slot, r[i]);
    }
}

VECTORS void wf_tiles_stack(wf_factors x, int64_t second, int64_t step, int64_t n_first,
                            int64_t n_second, int64_t pixels, void *to, int64_t slot)
{
    if (x.is_bf16)
        stack((wf_factors){x.x, true}, second, step, n_first, n_second, pixels, to, slot);
    else
        stack((wf_factors){x.x, false}, second, step, n_first, n_second, pixels, to, slot);
}

#else

void wf_tiles_pack(wf_strided from, wf_along along, bool for_b, int64_t outer, int64_t k, void *to,
                   int64_t panel)
{
    (void)from, (void)along, (void)for_b, (void)outer, (void)k, (void)to, (void)panel;
    wf_assert(wf_tiles_there());
}

void wf_tiles_pack_and_sum(wf_factors x, int64_t row, int64_t outer, int64_t k, void *to,
                           int64_t panel, float sums[])
{
    (void)x, (void)row, (void)outer, (void)k, (void)to, (void)panel, (void)sums;
    wf_assert(wf_tiles_there());
}

void wf_tiles_round(wf_factors x, int64_t step, int64_t n, uint16_t *to)
{
    (void)x, (void)step, (void)n, (void)to;
    wf_assert(wf_tiles_there());
}

void wf_tiles_pair(wf_factors x, int64_t second, bool has_second, int64_t step, int64_t n,
                   uint16_t *to)
{
    (void)x, (void)second, (void)has_second, (void)step, (void)n, (void)to;
    wf_assert(wf_tiles_there());
}

void wf_tiles_turn(const void *rows, int64_t row, int64_t tiles, void *to)
{
    (void)rows, (void)row, (void)tiles, (void)to;
    wf_assert(wf_tiles_there());
}

void wf_tiles_stack(wf_factors x, int64_t second, int64_t step, int64_t n_first, int64_t n_second,
                    int64_t pixels, void *to, int64_t slot)
{
    (void)x, (void)second, (void)step, (void)n_first, (void)n_second, (void)pixels, (void)to;
    (void)slot;
    wf_assert(wf_tiles_there());
}

#endif
