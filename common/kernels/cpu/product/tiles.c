/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/product/tiles.c */
#include "common/kernels/cpu/product/tiles.h"
#include "common/base/cc.h"
#include "common/base/status.h"
#include "common/kernels/cpu/device.h"
#include "common/kernels/cpu/product/tile_vectors.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <pthread.h>
#include <string.h>

static bool uses_matrices; /* read for each block: no call */

static void look(void)
{
    uses_matrices = wf_cpu_has()->tiles;
}

bool wf_tiles_there(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, look);
    return wf_cpu_has()->bf16;
}

bool wf_tiles_by_amx(void)
{
    return wf_tiles_there() && uses_matrices;
}

void wf_tiles_without_amx(bool without)
{
    uses_matrices = wf_tiles_there() && wf_cpu_has()->tiles && !without;
}

/* All eight tiles are 16 rows of 64 bytes: edges are zeros in memory. */
MATRICES static void set_up(void)
{
    struct {
        uint8_t palette, start_row, reserved[14];
        uint16_t bytes[16];
        uint8_t rows[16];
    } config = {.palette = 1};

    for (int i = 0; i < 8; i++) {
        config.bytes[i] = 64;
        config.rows[i] = WF_TILE;
    }
    SEEN(&config);
    _tile_loadconfig(&config);
}

MATRICES static void give_back(void)
{
    _tile_release();
}

void wf_tiles_begin(void)
{
    if (uses_matrices)
        set_up();
}

void wf_tiles_end(void)
{
    _mm_sfence(); /* what went past the caches, before another thread is told that it is there */
    if (uses_matrices)
        give_back();
}

#define START(tile, i, k)                                                                          \
    do {                                                                                           \
        if (t->start)                                                                              \
            _tile_loadd(tile, t->start + (i)*WF_TILE * t->start_row + (k)*WF_TILE,                 \
                        t->start_row * (int64_t)sizeof(float));                                    \
        else                                                                                       \
            _tile_zero(tile);                                                                      \
    } while (0)
#define FINISH(tile, i, k)                                                                         \
    _tile_stored(tile, t->c + (i)*WF_TILE * t->c_row + (k)*WF_TILE,                                \
                 t->c_row * (int64_t)sizeof(float))

/* Sums in tiles 0 to 3, A's in 4 and 5, B's in 6 and 7. */
#define BLOCK(name, two_rows, two_columns)                                                         \
    MATRICES static void name(const wf_tiles *t)                                                   \
    {                                                                                              \
        SEEN(t);                                                                                   \
        START(0, 0, 0);                                                                            \
        if (two_columns)                                                                           \
            START(1, 0, 1);                                                                        \
        if (two_rows)                                                                              \
            START(2, 1, 0);                                                                        \
        if (two_rows && two_columns)                                                               \
            START(3, 1, 1);                                                                        \
        for (int64_t h = 0; h < t->hops; h++) {                                                    \
            const char *a = (const char *)t->a + (t->a_at ? t->a_at[h] : 0);                       \
            const char *b = (const char *)t->b + (t->b_at ? t->b_at[h] : 0);                       \
                                                                                                   \
            for (int64_t s = 0; s < t->steps; s++, a += t->a_step, b += t->b_step) {               \
                _tile_loadd(6, b, t->b_row);                                                       \
                _tile_loadd(4, a, t->a_row);                                                       \
                _tile_dpbf16ps(0, 4, 6);                                                           \
                if (two_columns) {                                                                 \
                    _tile_loadd(7, b + t->b_next, t->b_row);                                       \
                    _tile_dpbf16ps(1, 4, 7);                                                       \
                }                                                                                  \
                if (two_rows) {                                                                    \
                    _tile_loadd(5, a + t->a_next, t->a_row);                                       \
                    _tile_dpbf16ps(2, 5, 6);                                                       \
                }                                                                                  \
                if (two_rows && two_columns)                                                       \
                    _tile_dpbf16ps(3, 5, 7);                                                       \
            }                                                                                      \
        }                                                                                          \
        FINISH(0, 0, 0);                                                                           \
        if (two_columns)                                                                           \
            FINISH(1, 0, 1);                                                                       \
        if (two_rows)                                                                              \
            FINISH(2, 1, 0);                                                                       \
        if (two_rows && two_columns)                                                               \
            FINISH(3, 1, 1);                                                                       \
        SEEN(t);                                                                                   \
    }
BLOCK(block_1_1, false, false)
BLOCK(block_1_2, false, true)
BLOCK(block_2_1, true, false)
BLOCK(block_2_2, true, true)

/* Rows [from, from + GROUP) of the sums: a pair of A's times a row of B's, 16 columns at a time. */
enum { GROUP = 8 };

VECTORS static WF_INLINE void add_step(__m512 sums[GROUP][2], const char *a, int64_t a_row,
                                       const char *b, int64_t b_row, int64_t b_next, bool two)
{
    for (int p = 0; p < WF_TILE; p++, b += b_row) {
        __m512bh first = (__m512bh)_mm512_loadu_si512(b), second = first;

        if (two)
            second = (__m512bh)_mm512_loadu_si512(b + b_next);
        for (int r = 0; r < GROUP; r++) {
            __m512bh pair;
            int bits; /* rows of a plane begin at any of its elements */

            memcpy(&bits, a + r * a_row + p * (int64_t)sizeof bits, sizeof bits);
            pair = (__m512bh)_mm512_set1_epi32(bits);
            sums[r][0] = _mm512_dpbf16_ps(sums[r][0], pair, first);
            if (two)
                sums[r][1] = _mm512_dpbf16_ps(sums[r][1], pair, second);
        }
    }
}

#define ROWS(name, two)                                                                            \
    VECTORS static void name(const wf_tiles *t, int64_t from)                                      \
    {                                                                                              \
        __m512 sums[GROUP][2];                                                                     \
        int64_t at = from / WF_TILE * t->a_next + from % WF_TILE * t->a_row;                       \
                                                                                                   \
        for (int r = 0; r < GROUP; r++)                                                            \
            for (int i = 0; i <= two; i++)                                                         \
                sums[r][i] =                                                                       \
                    t->start ? _mm512_loadu_ps(t->start + (from + r) * t->start_row + i * WF_TILE) \
                             : _mm512_setzero_ps();                                                \
        for (int64_t h = 0; h < t->hops; h++) {                                                    \
            const char *a = (const char *)t->a + at + (t->a_at ? t->a_at[h] : 0);                  \
            const char *b = (const char *)t->b + (t->b_at ? t->b_at[h] : 0);                       \
                                                                                                   \
            for (int64_t s = 0; s < t->steps; s++, a += t->a_step, b += t->b_step)                 \
                add_step(sums, a, t->a_row, b, t->b_row, t->b_next, two);                          \
        }                                                                                          \
        for (int r = 0; r < GROUP; r++)                                                            \
            for (int i = 0; i <= two; i++)                                                         \
                _mm512_storeu_ps(t->c + (from + r) * t->c_row + i * WF_TILE, sums[r][i]);          \
    }
ROWS(rows_1, false)
ROWS(rows_2, true)

void wf_tiles_multiply(const wf_tiles *t)
{
    static void (*const blocks[2][2])(const wf_tiles *) = {{block_1_1, block_1_2},
                                                           {block_2_1, block_2_2}};

    if (uses_matrices) {
        blocks[t->rows - 1][t->columns - 1](t);
        return;
    }
    for (int64_t from = 0; from < t->rows * WF_TILE; from += GROUP)
        (t->columns == 2 ? rows_2 : rows_1)(t, from);
}

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

/* 16 values as they are, of which those are read whose bits are set. */
VECTORS static WF_INLINE __m512 load_wide(wf_factors x, __mmask16 there)
{
    if (x.is_bf16)
        return (__m512)_mm512_slli_epi32(
            _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(there, x.x)), 16);
    return _mm512_maskz_loadu_ps(there, x.x);
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

VECTORS void wf_tiles_unstack(const float *sums, int64_t row, int64_t pixels, int64_t images,
                              float shift, float *to, int64_t step)
{
    __m512 more = _mm512_set1_ps(shift);
    __m512i r[WF_TILE];

    for (int i = 0; i < WF_TILE; i++)
        r[i] = i < pixels ? (__m512i)_mm512_add_ps(_mm512_loadu_ps(sums + i * row), more)
                          : _mm512_setzero_si512();
    turn(r);
    for (int64_t i = 0; i < WF_TILE && i < images; i++)
        _mm512_mask_storeu_ps(to + i * step, first(pixels), (__m512)r[i]);
}

VECTORS void wf_tiles_put(const float *x, float shift, int64_t n, bool past, float *to,
                          int64_t step)
{
    __m512 more = _mm512_set1_ps(shift);
    bool lines = past && (uintptr_t)to % 64 == 0;

    if (step != 1) {
        for (int64_t i = 0; i < n; i++)
            to[i * step] = x[i] + shift;
        return;
    }
    for (int64_t i = 0; i < n; i += WF_TILE) {
        __m512 y = _mm512_add_ps(_mm512_maskz_loadu_ps(first(n - i), x + i), more);

        if (lines && n - i >= WF_TILE)
            _mm512_stream_ps(to + i, y);
        else
            _mm512_mask_storeu_ps(to + i, first(n - i), y);
    }
}

VECTORS void wf_tiles_relu_grad(float *sums, int64_t rows, int64_t columns, wf_factors y,
                                int64_t y_row)
{
    __mmask16 low = first(columns), high = first(columns - WF_TILE);

    for (int64_t i = 0; i < rows; i++, sums += WF_TILE_BLOCK) {
        __m512 l = load_wide(wf_factors_at(y, i * y_row), low);
        __m512 r = load_wide(wf_factors_at(y, i * y_row + WF_TILE), high);
        __mmask16 left = _mm512_cmp_ps_mask(l, _mm512_setzero_ps(), _CMP_GT_OQ);
        __mmask16 right = _mm512_cmp_ps_mask(r, _mm512_setzero_ps(), _CMP_GT_OQ);

        _mm512_store_ps(sums, _mm512_maskz_load_ps(left, sums));
        _mm512_store_ps(sums + WF_TILE, _mm512_maskz_load_ps(right, sums + WF_TILE));
    }
}

VECTORS void wf_tiles_move(const float *sums, int64_t rows, int64_t columns, bool relu, bool past,
                           float *c, int64_t c_row)
{
    bool whole = columns == WF_TILE_BLOCK && (uintptr_t)c % 64 == 0 && c_row % WF_TILE == 0;
    __mmask16 low = first(columns), high = first(columns - WF_TILE);

    for (int64_t i = 0; i < rows; i++, sums += WF_TILE_BLOCK, c += c_row) {
        __m512 left = _mm512_load_ps(sums), right = _mm512_load_ps(sums + WF_TILE);

        if (relu) { /* the second operand is what a NaN gives: it stays one */
            left = _mm512_max_ps(_mm512_setzero_ps(), left);
            right = _mm512_max_ps(_mm512_setzero_ps(), right);
        }
        if (past && whole) {
            _mm512_stream_ps(c, left);
            _mm512_stream_ps(c + WF_TILE, right);
        } else {
            _mm512_mask_storeu_ps(c, low, left);
            _mm512_mask_storeu_ps(c + WF_TILE, high, right);
        }
    }
}

VECTORS void wf_tiles_move_bf16(const float *sums, int64_t rows, int64_t columns, bool relu,
                                bool past, uint16_t *c, int64_t c_row)
{
    bool whole = columns == WF_TILE_BLOCK && (uintptr_t)c % 64 == 0 && c_row % WF_TILE_BLOCK == 0;
    __mmask32 there = (uint32_t)first(columns) | (uint32_t)first(columns - WF_TILE) << WF_TILE;

    for (int64_t i = 0; i < rows; i++, sums += WF_TILE_BLOCK, c += c_row) {
        __m512 left = _mm512_load_ps(sums), right = _mm512_load_ps(sums + WF_TILE);
        __m512i both;

        if (relu) { /* the second operand is what a NaN gives: it stays one */
            left = _mm512_max_ps(_mm512_setzero_ps(), left);
            right = _mm512_max_ps(_mm512_setzero_ps(), right);
        }
        both = (__m512i)_mm512_cvtne2ps_pbh(right, left);
        if (past && whole)
            _mm512_stream_si512((void *)c, both);
        else
            _mm512_mask_storeu_epi16(c, there, both);
    }
}

#else

bool wf_tiles_there(void)
{
    return false;
}

bool wf_tiles_by_amx(void)
{
    return false;
}

void wf_tiles_without_amx(bool without)
{
    (void)without;
}

void wf_tiles_begin(void)
{
}

void wf_tiles_end(void)
{
}

void wf_tiles_multiply(const wf_tiles *t)
{
    (void)t;
    wf_assert(wf_tiles_there());
}

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

void wf_tiles_unstack(const float *sums, int64_t row, int64_t pixels, int64_t images, float shift,
                      float *to, int64_t step)
{
    (void)sums, (void)row, (void)pixels, (void)images, (void)shift, (void)to, (void)step;
    wf_assert(wf_tiles_there());
}

void wf_tiles_relu_grad(float *sums, int64_t rows, int64_t columns, wf_factors y, int64_t y_row)
{
    (void)sums, (void)rows, (void)columns, (void)y, (void)y_row;
    wf_assert(wf_tiles_there());
}

void wf_tiles_move(const float *sums, int64_t rows, int64_t columns, bool relu, bool past, float *c,
                   int64_t c_row)
{
    (void)sums, (void)rows, (void)columns, (void)relu, (void)past, (void)c, (void)c_row;
    wf_assert(wf_tiles_there());
}

void wf_tiles_move_bf16(const float *sums, int64_t rows, int64_t columns, bool relu, bool past,
                        uint16_t *c, int64_t c_row)
{
    (void)sums, (void)rows, (void)columns, (void)relu, (void)past, (void)c, (void)c_row;
    wf_assert(wf_tiles_there());
}

void wf_tiles_put(const float *x, float shift, int64_t n, bool past, float *to, int64_t step)
{
    (void)x, (void)shift, (void)n, (void)past, (void)to, (void)step;
    wf_assert(wf_tiles_there());
}

#endif
