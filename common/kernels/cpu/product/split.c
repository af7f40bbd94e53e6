/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/product/split.c */
#include "common/kernels/cpu/product/split.h"
#include "common/base/status.h"
#include "common/kernels/cpu/product/tile_vectors.h"

#if defined(__x86_64__)

/* Bytes of a step; the bits of a float that are one of bfloat16. */
enum { TILES_BYTES = WF_PIECES * WF_TILE_BYTES, UPPER = (int)0xffff0000 };

typedef struct pieces {
    __m512i rows[WF_PIECES][WF_TILE]; /* of tiles */
} pieces;

/* Cuts a piece off x: to the nearest, ties away from 0. */
VECTORS static WF_INLINE __m512i cut(__m512 *x)
{
    __m512i piece = _mm512_add_epi32(_mm512_castps_si512(*x), _mm512_set1_epi32(0x8000));

    piece = _mm512_and_si512(piece, _mm512_set1_epi32(UPPER));
    *x = _mm512_sub_ps(*x, _mm512_castsi512_ps(piece));
    return piece;
}

/* The upper halves of two vectors as pairs. */
VECTORS static WF_INLINE __m512i pair(__m512i a, __m512i b)
{
    return _mm512_mask_mov_epi16(_mm512_srli_epi32(a, 16), 0xaaaaaaaa, b);
}

/* Row i of a tile in pieces: values of a and b in pairs. What two pieces leave has no more than
 * eight bits. */
VECTORS static WF_INLINE void split(__m512 a, __m512 b, int i, pieces *to)
{
    to->rows[0][i] = pair(cut(&a), cut(&b));
    to->rows[1][i] = pair(cut(&a), cut(&b));
    to->rows[2][i] = pair(_mm512_castps_si512(a), _mm512_castps_si512(b));
}

/* The bits of the largest magnitudes so far, lane by lane; NaN counts as the largest. */
VECTORS static WF_INLINE __m512i greater(__m512i most, __m512 x)
{
    return _mm512_max_epu32(
        most, _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(0x7fffffff)));
}

VECTORS static WF_INLINE __m512i load_along(const float *x, int64_t row, int64_t outer, int64_t k,
                                            __m512i most, pieces *to)
{
    __mmask16 low = first(k), high = first(k - WF_TILE);

    for (int i = 0; i < WF_TILE; i++) {
        __m512 a = _mm512_maskz_loadu_ps(i < outer ? low : 0, x + i * row);
        __m512 b = _mm512_maskz_loadu_ps(i < outer ? high : 0, x + i * row + WF_TILE);

        most = greater(greater(most, a), b);
        split(a, b, i, to);
    }
    return most;
}

VECTORS static WF_INLINE __m512i load_across(const float *x, int64_t row, int64_t outer, int64_t k,
                                             __m512i most, pieces *to)
{
    __mmask16 all = first(outer);

    for (int i = 0; i < WF_TILE; i++) {
        __m512 a = _mm512_maskz_loadu_ps(i < k ? all : 0, x + i * row);
        __m512 b = _mm512_maskz_loadu_ps(i + WF_TILE < k ? all : 0, x + (i + WF_TILE) * row);

        most = greater(greater(most, a), b);
        split(a, b, i, to);
    }
    return most;
}

/* The tile whose first value is at x, of which `outer` and `k` are there. */
VECTORS static WF_INLINE __m512i split_tile(const float *x, int64_t row, wf_along along, bool turns,
                                            int64_t outer, int64_t k, __m512i most, char *to)
{
    pieces tile;

    most = along == WF_ALONG_K ? load_along(x, row, outer, k, most, &tile)
                               : load_across(x, row, outer, k, most, &tile);
    for (int p = 0; p < WF_PIECES; p++) {
        if (turns)
            turn(tile.rows[p]);
        store_tile(tile.rows[p], to + p * WF_TILE_BYTES);
    }
    return most;
}

/* Both read their rows from the left to the right, as far as they go. */
VECTORS static __m512i split_along(const float *x, int64_t row, bool turns, int64_t outer,
                                   int64_t k, char *to, int64_t panel)
{
    __m512i most = _mm512_setzero_si512();

    for (int64_t o = 0; o < outer; o += WF_TILE, to += panel)
        for (int64_t i = 0; i < k; i += WF_TILE_K)
            most = split_tile(x + o * row + i, row, WF_ALONG_K, turns, outer - o, k - i, most,
                              to + i / WF_TILE_K * TILES_BYTES);
    return most;
}

VECTORS static __m512i split_across(const float *x, int64_t row, bool turns, int64_t outer,
                                    int64_t k, char *to, int64_t panel)
{
    __m512i most = _mm512_setzero_si512();

    for (int64_t i = 0; i < k; i += WF_TILE_K, to += TILES_BYTES)
        for (int64_t o = 0; o < outer; o += WF_TILE)
            most = split_tile(x + i * row + o, row, WF_ACROSS_K, turns, outer - o, k - i, most,
                              to + o / WF_TILE * panel);
    return most;
}

VECTORS bool wf_split_pack(const float *x, int64_t row, wf_along along, bool for_b, int64_t outer,
                           int64_t k, void *to, int64_t panel)
{
    __m512i most = along == WF_ALONG_K ? split_along(x, row, for_b, outer, k, to, panel)
                                       : split_across(x, row, !for_b, outer, k, to, panel);

    return _mm512_reduce_max_epu32(most) < WF_SPLIT_END;
}

/* Of one step: pieces of A into tiles 4 and 5, of B into 6 and 7, and a pair of them into the sums,
 * tiles 0 to 3. The order of pairs changes one factor at a time, and begins with small ones. */
#define LOAD_A(piece, two_rows)                                                                    \
    do {                                                                                           \
        _tile_loadd(4, a + (piece)*WF_TILE_BYTES, 64);                                             \
        if (two_rows)                                                                              \
            _tile_loadd(5, a + t->a_next + (piece)*WF_TILE_BYTES, 64);                             \
    } while (0)
#define LOAD_B(piece, two_columns)                                                                 \
    do {                                                                                           \
        _tile_loadd(6, b + (piece)*WF_TILE_BYTES, 64);                                             \
        if (two_columns)                                                                           \
            _tile_loadd(7, b + t->b_next + (piece)*WF_TILE_BYTES, 64);                             \
    } while (0)
#define MULTIPLY(two_rows, two_columns)                                                            \
    do {                                                                                           \
        _tile_dpbf16ps(0, 4, 6);                                                                   \
        if (two_columns)                                                                           \
            _tile_dpbf16ps(1, 4, 7);                                                               \
        if (two_rows)                                                                              \
            _tile_dpbf16ps(2, 5, 6);                                                               \
        if (two_rows && two_columns)                                                               \
            _tile_dpbf16ps(3, 5, 7);                                                               \
    } while (0)
#define FINISH(tile, i, k)                                                                         \
    _tile_stored(tile, t->c + (i)*WF_TILE * t->c_row + (k)*WF_TILE,                                \
                 t->c_row * (int64_t)sizeof(float))

#define BLOCK(name, two_rows, two_columns)                                                         \
    MATRICES static void name(const wf_split *t)                                                   \
    {                                                                                              \
        const char *a = t->a, *b = t->b;                                                           \
                                                                                                   \
        SEEN(t);                                                                                   \
        _tile_zero(0);                                                                             \
        _tile_zero(1);                                                                             \
        _tile_zero(2);                                                                             \
        _tile_zero(3);                                                                             \
        for (int64_t s = 0; s < t->steps;                                                          \
             s++, a += WF_PIECES * WF_TILE_BYTES, b += WF_PIECES * WF_TILE_BYTES) {                \
            LOAD_B(0, two_columns);                                                                \
            LOAD_A(2, two_rows);                                                                   \
            MULTIPLY(two_rows, two_columns);                                                       \
            LOAD_A(1, two_rows);                                                                   \
            MULTIPLY(two_rows, two_columns);                                                       \
            LOAD_B(1, two_columns);                                                                \
            MULTIPLY(two_rows, two_columns);                                                       \
            LOAD_A(0, two_rows);                                                                   \
            MULTIPLY(two_rows, two_columns);                                                       \
            LOAD_B(2, two_columns);                                                                \
            MULTIPLY(two_rows, two_columns);                                                       \
            LOAD_B(0, two_columns);                                                                \
            MULTIPLY(two_rows, two_columns);                                                       \
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

void wf_split_multiply(const wf_split *t)
{
    static void (*const blocks[2][2])(const wf_split *) = {{block_1_1, block_1_2},
                                                           {block_2_1, block_2_2}};

    blocks[t->rows - 1][t->columns - 1](t);
}

#else

void wf_split_multiply(const wf_split *t)
{
    (void)t;
    wf_assert(wf_tiles_there());
}

bool wf_split_pack(const float *x, int64_t row, wf_along along, bool for_b, int64_t outer,
                   int64_t k, void *to, int64_t panel)
{
    (void)x, (void)row, (void)along, (void)for_b, (void)outer, (void)k, (void)to, (void)panel;
    wf_assert(wf_tiles_there());
    return false;
}

#endif
