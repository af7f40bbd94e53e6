/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/product/tiles_widened.c - products of tiles by float32's multiply-adds: both
 * factors are widened in the first cache, B's once for all rows of a block. */
#include "common/kernels/cpu/product/tiles_widened.h"
#include "common/base/size.h"
#include "common/base/status.h"
#include "common/kernels/cpu/product/tile_vectors.h"

#if defined(__x86_64__)

/* Rows that are summed up at a time, in two vectors each; tiles along k that are widened together:
 * 20 KiB. */
enum { GROUP = 8, TOGETHER = 4, ALONG = TOGETHER * WF_TILE_K };

typedef struct widened {
    float b[ALONG][WF_TILE_BLOCK], a[GROUP][ALONG];
} widened;

/* A row of B's tiles holds pairs: the value of an even k is the lower half of each. */
VECTORS static WF_INLINE void store_pairs(const char *from, float *even, float *odd)
{
    __m512i pairs = _mm512_loadu_si512(from);

    _mm512_store_si512(even, _mm512_slli_epi32(pairs, 16));
    _mm512_store_si512(odd, _mm512_and_si512(pairs, _mm512_set1_epi32((int)0xffff0000)));
}

VECTORS static WF_INLINE void widen_b(const wf_tiles *t, const char *b, int64_t steps, bool two,
                                      widened *w)
{
    for (int64_t s = 0; s < steps; s++, b += t->b_step)
        for (int p = 0; p < WF_TILE; p++) {
            float(*to)[WF_TILE_BLOCK] = w->b + s * WF_TILE_K + (int64_t)2 * p;

            store_pairs(b + p * t->b_row, to[0], to[1]);
            if (two)
                store_pairs(b + p * t->b_row + t->b_next, to[0] + WF_TILE, to[1] + WF_TILE);
        }
}

/* 16 values that lie side by side. */
VECTORS static WF_INLINE void store_wide(const char *from, float *to)
{
    __m256i halves = _mm256_loadu_si256((const __m256i_u *)from);

    _mm512_store_si512(to, _mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
}

VECTORS static WF_INLINE void widen_a(const wf_tiles *t, const char *a, int64_t steps, widened *w)
{
    for (int r = 0; r < GROUP; r++, a += t->a_row) {
        const char *from = a;

        for (int64_t k = 0; k < steps * WF_TILE_K; k += WF_TILE_K, from += t->a_step) {
            store_wide(from, w->a[r] + k);
            store_wide(from + WF_TILE_K, w->a[r] + k + WF_TILE);
        }
    }
}

/* Sums that go on from `start`, or from 0. */
typedef struct sums {
    const float *start;
    int64_t start_row;
    float *c;
    int64_t c_row;
} sums;

VECTORS static WF_INLINE void add_group(const widened *w, int64_t n, bool two, sums of)
{
    __m512 y[GROUP][2];

    for (int r = 0; r < GROUP; r++)
        for (int i = 0; i <= two; i++)
            y[r][i] = of.start ? _mm512_loadu_ps(of.start + r * of.start_row + (int64_t)i * WF_TILE)
                               : _mm512_setzero_ps();
    for (int64_t k = 0; k < n; k++) {
        __m512 first = _mm512_load_ps(w->b[k]), second = first;

        if (two)
            second = _mm512_load_ps(w->b[k] + WF_TILE);
        for (int r = 0; r < GROUP; r++) {
            __m512 x = _mm512_set1_ps(w->a[r][k]);

            y[r][0] = _mm512_fmadd_ps(x, first, y[r][0]);
            if (two)
                y[r][1] = _mm512_fmadd_ps(x, second, y[r][1]);
        }
    }
    for (int r = 0; r < GROUP; r++)
        for (int i = 0; i <= two; i++)
            _mm512_storeu_ps(of.c + r * of.c_row + (int64_t)i * WF_TILE, y[r][i]);
}

#define ADD(name, two)                                                                             \
    VECTORS static void name(const wf_tiles *t, const char *a, const char *b, int64_t steps,       \
                             sums of, widened *w)                                                  \
    {                                                                                              \
        widen_b(t, b, steps, two, w);                                                              \
        for (int64_t r = 0; r < t->rows * WF_TILE; r += GROUP) {                                   \
            widen_a(t, a + r / WF_TILE * t->a_next + r % WF_TILE * t->a_row, steps, w);            \
            add_group(w, steps *WF_TILE_K, two, of);                                               \
            if (of.start)                                                                          \
                of.start += GROUP * of.start_row;                                                  \
            of.c += GROUP * of.c_row;                                                              \
        }                                                                                          \
    }
ADD(add_1, false)
ADD(add_2, true)

/* Of no products. */
VECTORS static void copy_start(const wf_tiles *t)
{
    for (int64_t r = 0; r < t->rows * WF_TILE; r++)
        for (int64_t i = 0; i < t->columns * WF_TILE; i += WF_TILE)
            _mm512_storeu_ps(t->c + r * t->c_row + i,
                             t->start ? _mm512_loadu_ps(t->start + r * t->start_row + i)
                                      : _mm512_setzero_ps());
}

void wf_tiles_multiply_widened(const wf_tiles *t)
{
    int64_t parts = wf_ceil_div(t->steps, TOGETHER), most = wf_ceil_div(t->steps, parts);
    sums of = {t->start, t->start_row, t->c, t->c_row};
    widened w WF_ALIGNED(64);

    if (t->hops == 0)
        copy_start(t);
    for (int64_t h = 0; h < t->hops; h++) {
        const char *a = (const char *)t->a + (t->a_at ? t->a_at[h] : 0);
        const char *b = (const char *)t->b + (t->b_at ? t->b_at[h] : 0);

        for (int64_t s = 0, n; s < t->steps; s += n, a += n * t->a_step, b += n * t->b_step) {
            n = WF_MIN(t->steps - s, most);
            (t->columns == 2 ? add_2 : add_1)(t, a, b, n, of, &w);
            of.start = t->c;
            of.start_row = t->c_row;
        }
    }
}

#else

void wf_tiles_multiply_widened(const wf_tiles *t)
{
    (void)t;
    wf_assert(wf_tiles_there());
}

#endif
