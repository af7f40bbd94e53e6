/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/product/gemm_avx512.c
 *
 * 28 sums, two vectors of B and one of A are the 32 registers that there are, less one. What the
 * figures below rest on is measured by bench/gemm.c.
 */
#include "common/kernels/cpu/product/gemm_avx512.h"
#include "common/base/cc.h"
#include "common/base/size.h"
#include "common/base/status.h"

enum {
    ROWS = 14,
    THIRDS = (ROWS + 2) / 3,
    LANES = 16,
    COLUMNS = 2 * LANES,
    K_BLOCK = 512, /* a panel of A is 28 KiB, and stays in the first cache */
    N_BLOCK = 640, /* a block of B is 1.3 MiB, and stays in the second */
    TOGETHER = 8,  /* panels of a transposed A that are packed at a time: what is read of each of
                    * its rows is 448 bytes then */
    PIECE = 8,     /* rows of B that are packed at a time */
    /* Rows of A so far apart, in floats, meet in few sets of the first cache: they are packed if
     * more than FEW columns read them. */
    SAME_SETS = 1024,
    FEW = 128,
    /* B is read in place by up to so many panels of rows, if it has no more floats than NEAR. */
    THIN = 10,
    NEAR = 1 << 17
};

static int64_t blocks_of(int64_t n, int64_t most)
{
    return n > 0 ? (n + most - 1) / most : 1;
}

static int64_t round_up(int64_t n, int64_t to)
{
    return (n + to - 1) / to * to;
}

int64_t wf_gemm_blocks(int64_t k, int64_t *block)
{
    int64_t blocks = blocks_of(k, K_BLOCK);

    *block = (k + blocks - 1) / blocks;
    return blocks;
}

/* k and n in blocks of one size, but for the last. */
static int64_t k_block(const wf_gemm *g)
{
    int64_t block;

    (void)wf_gemm_blocks(g->k, &block);
    return block;
}

static int64_t n_block(const wf_gemm *g)
{
    int64_t blocks = blocks_of(g->n, N_BLOCK);

    return round_up((g->n + blocks - 1) / blocks, COLUMNS);
}

/* Rows of C in panels of almost one size. */
static int64_t panel_at(int64_t m, int64_t panels, int64_t i)
{
    return i * (m / panels) + WF_MIN(i, m % panels);
}

/* How rows of A come to the tiles: as they lie, or packed, [k, 16] a panel of 14. */
static bool packs_a(const wf_gemm *g)
{
    return g->trans_a || (g->lda % SAME_SETS == 0 && g->n > FEW);
}

static int64_t together(const wf_gemm *g)
{
    return g->trans_a ? TOGETHER : 1;
}

/* No less for a product of more columns or a longer sum: k_block would jump up and down. */
static size_t a_floats(const wf_gemm *g)
{
    return packs_a(g) ? (size_t)(together(g) * WF_MIN(g->k, (int64_t)K_BLOCK) * LANES) : 0;
}

size_t wf_gemm_packed_room(const wf_gemm *g)
{
    return a_floats(g) * sizeof(float);
}

size_t wf_gemm_room(const wf_gemm *g)
{
    int64_t n = WF_MIN(round_up(g->n, COLUMNS), (int64_t)N_BLOCK);

    return (a_floats(g) + (size_t)(WF_MIN(g->k, (int64_t)K_BLOCK) * n)) * sizeof(float);
}

size_t wf_gemm_packed_floats(int64_t n, int64_t k)
{
    return (size_t)k * (size_t)round_up(n, LANES);
}

#if defined(__x86_64__)

#include <immintrin.h>

#define AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,fma")))

bool wf_gemm_is_here(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

/* Where a tile of C goes, and how. */
typedef struct finish {
    float *c;
    int64_t ldc;
    const float *bias;     /* of its columns, or NULL */
    bool add, relu, plain; /* plain: none of the three */
    __mmask16 last;        /* the columns of its last vector that are there */
} finish;

/* Of how many rows one broadcast of A serves both vectors of B; for the others it is a part of the
 * multiplication. The first costs instructions, the second reads twice; some of each was the
 * fastest, also where another thread shares the core. */
enum { BROADCAST = 5 };

AVX512 static WF_INLINE void put(const finish *f, int i, int j, bool is_last, __m512 x)
{
    __mmask16 mask = is_last ? f->last : (__mmask16)0xFFFF;
    float *to = f->c + i * f->ldc + LANES * j;

    if (f->plain) {
        _mm512_mask_storeu_ps(to, mask, x);
        return;
    }
    if (f->add)
        x = _mm512_add_ps(x, _mm512_maskz_loadu_ps(mask, to));
    if (f->bias)
        x = _mm512_add_ps(x, _mm512_maskz_loadu_ps(mask, f->bias + LANES * j));
    if (f->relu) /* a NaN stays one */
        x = _mm512_mask_mov_ps(x, _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_LT_OQ),
                               _mm512_setzero_ps());
    _mm512_mask_storeu_ps(to, mask, x);
}

/* z += x y; and y one number in memory. Left to the compiler, some sums wander between registers,
 * and no broadcast that is used twice becomes a part of two multiplications. */
#define MULTIPLY_ADD(z, x, y) __asm__("vfmadd231ps %2, %1, %0" : "+v"(z) : "v"(x), "v"(y))
#define MULTIPLY_ADD_ONE(z, x, y)                                                                  \
    __asm__("vfmadd231ps %2%{1to16%}, %1, %0" : "+v"(z) : "v"(x), "m"(y))

/* `rows` x 16 `vectors` of C, from rows of A that are `lda` apart, or from a packed panel. Every
 * third row in place has a register of its own, and the next two are reached from there. */
AVX512 static WF_INLINE void tile(int rows, int vectors, bool packed, int64_t k, const float *a,
                                  int64_t lda, const float *b, int64_t ldb, const finish *f)
{
    const float *at[THIRDS] = {a, a + 3 * lda, a + 6 * lda, a + 9 * lda, a + 12 * lda};
    __m512 sum[ROWS][2];

#pragma GCC unroll 14
    for (int i = 0; i < rows; i++) {
        WF_PREFETCH(f->c + i * f->ldc);
        if (vectors > 1)
            WF_PREFETCH(f->c + i * f->ldc + LANES);
        sum[i][0] = sum[i][1] = _mm512_setzero_ps();
    }
#pragma GCC unroll 2
    for (int64_t p = 0; p < k; p++) {
        __m512 first = _mm512_loadu_ps(b), second = first;

        if (vectors > 1)
            second = _mm512_loadu_ps(b + LANES);
#pragma GCC unroll 14
        for (int i = 0; i < rows; i++) {
            const float *x = packed ? a + i : at[i / 3] + i % 3 * lda;

            if (vectors > 1 && (packed ? i < BROADCAST : i % 3 > 0)) {
                __m512 all = _mm512_set1_ps(*x);

                MULTIPLY_ADD(sum[i][0], first, all);
                MULTIPLY_ADD(sum[i][1], second, all);
                continue;
            }
            MULTIPLY_ADD_ONE(sum[i][0], first, *x);
            if (vectors > 1)
                MULTIPLY_ADD_ONE(sum[i][1], second, *x);
        }
        a += LANES;
        b += ldb;
#pragma GCC unroll 5
        for (int i = 0; i < THIRDS; i++)
            at[i]++;
    }
#pragma GCC unroll 14
    for (int i = 0; i < rows; i++) {
        put(f, i, 0, vectors == 1, sum[i][0]);
        if (vectors > 1)
            put(f, i, 1, true, sum[i][1]);
    }
}

typedef void tile_fn(int64_t k, const float *a, int64_t lda, const float *b, int64_t ldb,
                     const finish *f);

#define ONE(count, vectors, name, packed)                                                          \
    AVX512 static void name##_##count##_##vectors(int64_t k, const float *a, int64_t lda,          \
                                                  const float *b, int64_t ldb, const finish *f)    \
    {                                                                                              \
        tile(count, vectors, packed, k, a, lda, b, ldb, f);                                        \
    }
#define EACH(count)                                                                                \
    ONE(count, 1, in_place, false)                                                                 \
    ONE(count, 2, in_place, false)                                                                 \
    ONE(count, 1, packed, true)                                                                    \
    ONE(count, 2, packed, true)
#define TILES(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14)
TILES(EACH)

#define NAMES(count)                                                                               \
    {{in_place_##count##_1, in_place_##count##_2}, {packed_##count##_1, packed_##count##_2}},
/* By rows, whether A is packed, and vectors. */
static tile_fn *const tiles[ROWS][2][2] = {TILES(NAMES)};

static __mmask16 mask_of(int64_t n)
{
    return (__mmask16)(n >= LANES ? 0xFFFF : (1u << n) - 1);
}

/* Rows of 16 vectors become columns. */
AVX512 static WF_INLINE void transpose(__m512 r[LANES])
{
    __m512 t[LANES];

#pragma GCC unroll 8
    for (int i = 0; i < LANES; i += 2) {
        t[i] = _mm512_unpacklo_ps(r[i], r[i + 1]);
        t[i + 1] = _mm512_unpackhi_ps(r[i], r[i + 1]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < LANES; i += 4) {
        __m512d x = _mm512_castps_pd(t[i]), y = _mm512_castps_pd(t[i + 1]);
        __m512d z = _mm512_castps_pd(t[i + 2]), w = _mm512_castps_pd(t[i + 3]);

        r[i] = _mm512_castpd_ps(_mm512_unpacklo_pd(x, z));
        r[i + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(x, z));
        r[i + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(y, w));
        r[i + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(y, w));
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        t[i] = _mm512_shuffle_f32x4(r[i], r[i + 4], 0x88);
        t[i + 4] = _mm512_shuffle_f32x4(r[i], r[i + 4], 0xDD);
        t[i + 8] = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0x88);
        t[i + 12] = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0xDD);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        r[i] = _mm512_shuffle_f32x4(t[i], t[i + 8], 0x88);
        r[i + 4] = _mm512_shuffle_f32x4(t[i + 4], t[i + 12], 0x88);
        r[i + 8] = _mm512_shuffle_f32x4(t[i], t[i + 8], 0xDD);
        r[i + 12] = _mm512_shuffle_f32x4(t[i + 4], t[i + 12], 0xDD);
    }
}

/* 16 x 16, or what there is of it; rows of y are `width` apart. */
AVX512 static WF_INLINE void turn(bool whole, const float *x, int64_t ld, int64_t rows,
                                  int64_t columns, float *y, int64_t width)
{
    __mmask16 mask = mask_of(columns);
    __m512 r[LANES];

#pragma GCC unroll 16
    for (int i = 0; i < LANES; i++)
        if (whole)
            r[i] = _mm512_loadu_ps(x + i * ld);
        else
            r[i] = i < rows ? _mm512_maskz_loadu_ps(mask, x + i * ld) : _mm512_setzero_ps();
    transpose(r);
#pragma GCC unroll 16
    for (int i = 0; i < LANES; i++)
        if (whole || i < columns)
            _mm512_store_ps(y + i * width, r[i]);
}

/* Up to 16 rows of k become columns, [k, 16] of rows `width` apart, with zeros for what is missing.
 */
AVX512 static void pack_turned(const float *x, int64_t ld, int64_t rows, int64_t k, float *y,
                               int64_t width)
{
    int64_t p = 0;

    for (; rows == LANES && p + LANES <= k; p += LANES)
        turn(true, x + p, ld, LANES, LANES, y + p * width, width);
    for (; p < k; p += LANES)
        turn(false, x + p, ld, rows, WF_MIN(k - p, (int64_t)LANES), y + p * width, width);
}

/* `n` columns of k rows of B at x into a panel of width 16 or 32. */
AVX512 static void pack_b(const wf_gemm *g, const float *x, int64_t n, int64_t k, float *y)
{
    int64_t width = round_up(n, LANES);
    __mmask16 mask = mask_of(n - (width - LANES));

    if (g->trans_b) {
        for (int64_t j = 0; j < n; j += LANES)
            pack_turned(x + j * g->ldb, g->ldb, WF_MIN(n - j, (int64_t)LANES), k, y + j, width);
        return;
    }
    for (int64_t p = 0; p < k; p++, x += g->ldb, y += width) {
        if (width > LANES)
            _mm512_store_ps(y, _mm512_loadu_ps(x));
        _mm512_store_ps(y + width - LANES, _mm512_maskz_loadu_ps(mask, x + width - LANES));
    }
}

/* Adds `rows` rows of n <= 32 columns of B at x to sums: of a piece that was packed a moment ago.
 * Four sums at a time, since each waits for its last addition. */
AVX512 static void sum_b(const wf_gemm *g, const float *x, int64_t n, int64_t rows, double *sums)
{
    enum { HALF = LANES / 2, SUMS = COLUMNS / HALF };
    __mmask8 mask[SUMS];
    __m512d sum[SUMS];

#pragma GCC unroll 4
    for (int i = 0; i < SUMS; i++) {
        mask[i] = (__mmask8)mask_of(WF_MAX(WF_MIN(n - i * HALF, (int64_t)HALF), (int64_t)0));
        sum[i] = _mm512_maskz_loadu_pd(mask[i], sums + i * HALF);
    }
    for (int64_t p = 0; p < rows; p++, x += g->ldb)
#pragma GCC unroll 4
        for (int i = 0; i < SUMS; i++)
            sum[i] = _mm512_add_pd(sum[i],
                                   _mm512_cvtps_pd(_mm256_maskz_loadu_ps(mask[i], x + i * HALF)));
#pragma GCC unroll 4
    for (int i = 0; i < SUMS; i++)
        _mm512_mask_storeu_pd(sums + i * HALF, mask[i], sum[i]);
}

/* Panels [from, until) of an A that is transposed. */
AVX512 static void pack_columns(const wf_gemm *g, const float *x, int64_t panels, int64_t from,
                                int64_t until, int64_t k, float *y)
{
    int64_t at[TOGETHER];
    __mmask16 mask[TOGETHER];

    for (int64_t i = from; i < until; i++) {
        at[i - from] = panel_at(g->m, panels, i);
        mask[i - from] = mask_of(panel_at(g->m, panels, i + 1) - at[i - from]);
    }
    for (int64_t p = 0; p < k; p++, x += g->lda, y += LANES)
        for (int64_t i = 0; i < until - from; i++)
            _mm512_store_ps(y + i * k * LANES, _mm512_maskz_loadu_ps(mask[i], x + at[i]));
}

/* A block of B, and what is done with it. */
typedef struct block {
    const wf_gemm *g;
    int64_t n, k;
    const float *a, *b; /* b: where it lies in B, for panels that are read in place */
    const float *packed;
    double *sums; /* of its columns, or NULL */
    bool in_place;
    finish finish;
} block;

/* A panel of rows of C: all of the block's columns. */
static void do_panel(const block *l, const float *a, int64_t rows, float *c)
{
    finish f = l->finish;
    bool packed = packs_a(l->g);

    for (int64_t j = 0; j < l->n; j += COLUMNS) {
        int64_t n = WF_MIN(l->n - j, (int64_t)COLUMNS);
        bool in_place = l->in_place && n % LANES == 0;

        f.c = c + j;
        f.bias = l->finish.bias ? l->finish.bias + j : NULL;
        f.last = mask_of(n > LANES ? n - LANES : n);
        tiles[rows - 1][packed][n > LANES](l->k, a, l->g->lda,
                                           in_place ? l->b + j : l->packed + j * l->k,
                                           in_place ? l->g->ldb : round_up(n, LANES), &f);
    }
}

static void do_block(const block *l, float *room)
{
    const wf_gemm *g = l->g;
    int64_t panels = blocks_of(g->m, ROWS), some = together(g);

    for (int64_t i = 0; i < panels; i++) {
        int64_t row = panel_at(g->m, panels, i), rows = panel_at(g->m, panels, i + 1) - row;
        const float *a = room + i % some * l->k * LANES;

        if (!packs_a(g))
            a = l->a + row * g->lda;
        else if (!g->trans_a)
            pack_turned(l->a + row * g->lda, g->lda, rows, l->k, room, LANES);
        else if (i % some == 0)
            pack_columns(g, l->a, panels, i, WF_MIN(i + some, panels), l->k, room);
        do_panel(l, a, rows, l->finish.c + row * g->ldc);
    }
}

/* A few rows at a time: pieces of a row are read one after the other. */
static void pack_block(const block *l, float *to)
{
    int64_t some = l->g->trans_b ? l->k : PIECE;

    for (int64_t p = 0; p < l->k; p += some)
        for (int64_t j = 0; j < l->n; j += COLUMNS) {
            int64_t n = WF_MIN(l->n - j, (int64_t)COLUMNS);
            const float *from = l->b + (l->g->trans_b ? j * l->g->ldb : p * l->g->ldb + j);

            if (!l->in_place || n % LANES)
                pack_b(l->g, from, n, WF_MIN(some, l->k - p),
                       to + j * l->k + p * round_up(n, LANES));
            if (l->sums)
                sum_b(l->g, from, n, WF_MIN(some, l->k - p), l->sums + j);
        }
}

static void go(const wf_gemm *g, const float *a, const float *b, const float *packed,
               const float *bias, float *c, float *room)
{
    int64_t kc = k_block(g), nc = n_block(g);
    float *own = room + a_floats(g);
    block l = {.g = g,
               .in_place =
                   !packed && !g->trans_b && blocks_of(g->m, ROWS) <= THIN && g->k * g->n <= NEAR};

    wf_assert(!g->sums || (!packed && !g->trans_b));
    for (int64_t j = 0; g->sums && j < g->n; j++)
        g->sums[j] = 0;
    if (g->m == 0 || g->n == 0)
        return;
    for (int64_t j = 0; j < g->n; j += nc) {
        l.n = WF_MIN(nc, g->n - j);
        l.sums = g->sums ? g->sums + j : NULL;
        for (int64_t p = 0; p == 0 || p < g->k; p += kc) {
            bool is_last = p + kc >= g->k;

            l.k = WF_MIN(kc, g->k - p);
            l.a = a + (g->trans_a ? p * g->lda : p);
            l.finish = (finish){.c = c + j,
                                .ldc = g->ldc,
                                .bias = bias && is_last ? bias + j : NULL,
                                .add = g->add || p > 0,
                                .relu = g->relu && is_last};
            l.finish.plain = !l.finish.bias && !l.finish.add && !l.finish.relu;
            if (packed) {
                l.packed = packed + p * round_up(g->n, LANES) + j * l.k;
            } else {
                l.b = b + (g->trans_b ? j * g->ldb + p : p * g->ldb + j);
                l.packed = own;
                pack_block(&l, own);
            }
            do_block(&l, room);
            if (kc == 0)
                break;
        }
    }
}

void wf_gemm_go(const wf_gemm *g, const float *a, const float *b, const float *bias, float *c,
                void *room)
{
    go(g, a, b, NULL, bias, c, room);
}

void wf_gemm_go_packed(const wf_gemm *g, const float *a, const float *packed, const float *bias,
                       float *c, void *room)
{
    go(g, a, NULL, packed, bias, c, room);
}

void wf_gemm_pack(const wf_gemm *g, const float *b, float *to)
{
    int64_t kc = k_block(g);

    for (int64_t p = 0; p < g->k; p += kc) {
        block l = {
            .g = g, .n = g->n, .k = WF_MIN(kc, g->k - p), .b = b + (g->trans_b ? p : p * g->ldb)};

        pack_block(&l, to + p * round_up(g->n, LANES));
    }
}

#else

bool wf_gemm_is_here(void)
{
    return false;
}

void wf_gemm_go(const wf_gemm *g, const float *a, const float *b, const float *bias, float *c,
                void *room)
{
    (void)g, (void)a, (void)b, (void)bias, (void)c, (void)room;
}

void wf_gemm_go_packed(const wf_gemm *g, const float *a, const float *packed, const float *bias,
                       float *c, void *room)
{
    (void)g, (void)a, (void)packed, (void)bias, (void)c, (void)room;
}

void wf_gemm_pack(const wf_gemm *g, const float *b, float *to)
{
    (void)g, (void)b, (void)to;
}

#endif
