/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/product/tiles.c - which instructions there are, and products by them. */
#include "common/kernels/cpu/product/tiles.h"
#include "common/base/cc.h"
#include "common/base/status.h"
#include "common/kernels/cpu/device.h"
#include "common/kernels/cpu/product/tile_vectors.h"
#include "common/kernels/cpu/product/tiles_widened.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <pthread.h>
#include <string.h>

static wf_tiles_unit used; /* read for each block: no call */

static void look(void)
{
    const wf_cpu_units *cpu = wf_cpu_has();

    used = cpu->tiles ? WF_TILES_AMX : cpu->slow_bf16 ? WF_TILES_WIDENED : WF_TILES_PAIRS;
}

bool wf_tiles_there(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, look);
    return wf_cpu_has()->bf16;
}

wf_tiles_unit wf_tiles_used(void)
{
    (void)wf_tiles_there();
    return used;
}

bool wf_tiles_use(wf_tiles_unit unit)
{
    if (!wf_tiles_there() || (unit == WF_TILES_AMX && !wf_cpu_has()->tiles))
        return false;
    used = unit;
    return true;
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
    if (used == WF_TILES_AMX)
        set_up();
}

void wf_tiles_end(void)
{
    _mm_sfence(); /* what went past the caches, before another thread is told that it is there */
    if (used == WF_TILES_AMX)
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

    if (used == WF_TILES_AMX) {
        blocks[t->rows - 1][t->columns - 1](t);
        return;
    }
    if (used == WF_TILES_WIDENED) {
        wf_tiles_multiply_widened(t);
        return;
    }
    for (int64_t from = 0; from < t->rows * WF_TILE; from += GROUP)
        (t->columns == 2 ? rows_2 : rows_1)(t, from);
}

#else

bool wf_tiles_there(void)
{
    return false;
}

wf_tiles_unit wf_tiles_used(void)
{
    return WF_TILES_PAIRS;
}

bool wf_tiles_use(wf_tiles_unit unit)
{
    (void)unit;
    return false;
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

#endif
