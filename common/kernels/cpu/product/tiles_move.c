/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/product/tiles_move.c - sums of tiles to where the result is. */
#include "common/base/cc.h"
#include "common/base/status.h"
#include "common/kernels/cpu/product/tile_vectors.h"
#include "common/kernels/cpu/product/tiles.h"

#if defined(__x86_64__)

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
