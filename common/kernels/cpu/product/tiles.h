/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/product/tiles.h - products of bfloat16 factors with f32 sums, 16 x 16 sums at
 * a time: with AMX (Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2,
 * TDPBF16PS), or on the same operands with AVX-512 bf16 (VDPBF16PS), or where that is slower with
 * multiply-adds of widened factors.
 *
 * A tile of A is 16 rows of 32 values along k; a tile of B is 16 rows of 16 pairs, where row i
 * holds the values of k = 2 i and 2 i + 1 of 16 columns in turn. So both are 16 rows of 64 bytes,
 * and one is the other turned by pairs. Rows of a tile may lie any number of bytes apart.
 *
 * A thread that multiplies, or writes past the caches, stands between wf_tiles_begin and
 * wf_tiles_end: they set the tiles up and give their state back, which the system would else save
 * at every switch.
 */
#ifndef WF_KERNELS_CPU_TILES_H
#define WF_KERNELS_CPU_TILES_H

#include <stdbool.h>
#include <stdint.h>

/* Rows or columns of a tile; values along k; bytes; rows or columns of the largest block of sums.
 */
enum { WF_TILE = 16, WF_TILE_K = 32, WF_TILE_BYTES = 1024, WF_TILE_BLOCK = 2 * WF_TILE };

/* What multiplies. */
typedef enum wf_tiles_unit { WF_TILES_PAIRS, WF_TILES_WIDENED, WF_TILES_AMX } wf_tiles_unit;

/* Whether this processor has AVX-512 bf16, by which factors are rounded. */
bool wf_tiles_there(void);
/* What is used, if wf_tiles_there; else it is not WF_TILES_AMX. */
wf_tiles_unit wf_tiles_used(void);
/* Whether the processor has it; if so, it is used from now on. For tests, from one thread at a
 * time. */
bool wf_tiles_use(wf_tiles_unit unit);

void wf_tiles_begin(void);
void wf_tiles_end(void);

/* One block of sums, of 1 or 2 tiles each way: c = start + the sum over all hops and steps of
 * A's tiles times B's. All distances but those of c are bytes. */
typedef struct wf_tiles {
    const void *a, *b;
    int64_t a_row, a_next, a_step; /* to the next row of a tile, the tile below, the one along k */
    int64_t b_row, b_next, b_step; /* the same, and to the tile at the right */
    int64_t steps;                 /* tiles along k, of each hop: at least 1 */
    int64_t hops;                  /* 1, or as many as there are places, which may be none: */
    const int64_t *a_at, *b_at;    /* [hops] added to a and b; NULL for a single hop at 0 */
    int rows, columns;             /* tiles: 1 or 2 */
    const float *start;            /* what the sums start with; NULL: 0 */
    int64_t start_row;             /* floats to its next row: 0 repeats the first */
    float *c;
    int64_t c_row; /* floats */
} wf_tiles;
void wf_tiles_multiply(const wf_tiles *t);

/* Moves rows x columns sums of a block, WF_TILE_BLOCK floats from row to row and aligned to 64, to
 * c. `relu`: negative ones become 0. `past`: past the caches, for a result that is larger than they
 * are; whole lines are then not read before they are written. */
void wf_tiles_move(const float *sums, int64_t rows, int64_t columns, bool relu, bool past, float *c,
                   int64_t c_row);
/* The same, rounded to bfloat16. */
void wf_tiles_move_bf16(const float *sums, int64_t rows, int64_t columns, bool relu, bool past,
                        uint16_t *c, int64_t c_row);

/* Values of float32, which are rounded where they become factors, or of bfloat16 already. */
typedef struct wf_factors {
    const void *x;
    bool is_bf16;
} wf_factors;

/* Those from value i on. */
static inline wf_factors wf_factors_at(wf_factors f, int64_t i)
{
    return (wf_factors){(const char *)f.x + i * (f.is_bf16 ? 2 : 4), f.is_bf16};
}

/* Sums of a block become 0 where y is not above 0, whose rows lie y_row values apart. */
void wf_tiles_relu_grad(float *sums, int64_t rows, int64_t columns, wf_factors y, int64_t y_row);

/* What lies along k in the rows of a matrix that is packed. */
typedef enum wf_along { WF_ALONG_K, WF_ACROSS_K } wf_along;

/* Where the values of a part of a matrix lie: values from row to row, and from one value of a row
 * to the next, which is 1 for bfloat16. */
typedef struct wf_strided {
    wf_factors x;
    int64_t row, step;
} wf_strided;

/* Rounds a part of a matrix (to the nearest, ties to even) into tiles: of A, or of B. `outer` of
 * its rows or columns are those of the product, `k` lie along it. Tiles of 16 of them follow each
 * other along k, `panel` bytes on the next 16 begin. What the last tiles have too much is 0. */
void wf_tiles_pack(wf_strided from, wf_along along, bool for_b, int64_t outer, int64_t k, void *to,
                   int64_t panel);

/* The same across k into tiles of B, whose k values each, as they are, are added to sums [outer],
 * in an order that k alone decides. */
void wf_tiles_pack_and_sum(wf_factors x, int64_t row, int64_t outer, int64_t k, void *to,
                           int64_t panel, float sums[]);

/* Rounds n values of a row, `step` values apart. */
void wf_tiles_round(wf_factors x, int64_t step, int64_t n, uint16_t *to);
/* Rounds n values of two rows into pairs: the second row lies `second` values from x; without one,
 * of 0. */
void wf_tiles_pair(wf_factors x, int64_t second, bool has_second, int64_t step, int64_t n,
                   uint16_t *to);
/* Turns tiles of A, whose rows lie `row` bytes apart and are `tiles` tiles long, into tiles of B.
 */
void wf_tiles_turn(const void *rows, int64_t row, int64_t tiles, void *to);
/* Rounds and turns `pixels` columns of rows of pairs: row i < n_first is x + i step, its second
 * half x + second + i step for i < n_second. Pixel p's 16 pairs, those that are not there 0, go to
 * to + p slot (bytes). */
void wf_tiles_stack(wf_factors x, int64_t second, int64_t step, int64_t n_first, int64_t n_second,
                    int64_t pixels, void *to, int64_t slot);
/* Turns sums [pixels, 16], `row` floats from pixel to pixel, back: image i < images gets its
 * pixels, at most 16, plus shift at to + i step. */
void wf_tiles_unstack(const float *sums, int64_t row, int64_t pixels, int64_t images, float shift,
                      float *to, int64_t step);
/* to = x + shift, n values that come to lie `step` floats apart; `past` as above. */
void wf_tiles_put(const float *x, float shift, int64_t n, bool past, float *to, int64_t step);

#endif
