/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/product/product.c */
#include "common/kernels/cpu/product/product.h"
#include "common/base/size.h"
#include "common/kernels/cpu/cpu.h"
#include "common/kernels/cpu/product/gemm_avx512.h"
#include "common/kernels/cpu/product/product_tiles.h"
#include "common/kernels/cpu/product/tiles.h"
#include "common/kernels/cpu/product/vectors.h"
#include "common/kernels/cpu/reduce/reduce.h"

#include <string.h>

/* Multiply-adds of whole vectors that are worth a thread of their own: about 3 us. */
#define THREAD_WORK INT64_C(200000)
/* Below it rounding the factors outweighs what multiplying gains. */
#define BF16_LEAST INT64_C(1000000)
enum { TILE = 16, ALIGN = 64 };
/* OpenBLAS is the better one where a product is next to one of vectors. */
enum { VECTORS = 4, FEW_STEPS = 16 };
enum { SPLIT_STEPS = 256, SPLIT_USES = 100 };
enum { PARTS_MOST = 1 << 16 }; /* floats of sums that are made apart */

/* In bfloat16; else by our own kernels, if there are cells or a vector; else through OpenBLAS. */
struct wf_product_way {
    wf_product p;
    uint32_t then; /* sums only where they are given */
    bool vectors;
    wf_product_tiles *rounding, *splitting; /* or NULL */
    /* C in across x down cells, with workspace for each; 0: none. Sums of so many groups of blocks
     * of k are made apart, at parts_at of the workspace but for those of the first group, and then
     * added; 1: all of k at once. */
    wf_gemm gemm;
    int64_t down, across, deep;
    size_t room, parts_at;
    size_t sums_at; /* doubles of B's rows, in the workspace */
};

static bool is_plain(const wf_product *p)
{
    return p->dtype == WF_F32 && p->alpha == 1 && (p->beta == 0 || p->beta == 1);
}

static bool wants_rounding(const wf_prep *prep, const wf_product *p)
{
    return prep->compute == WF_COMPUTE_BF16 && is_plain(p) && (p->beta == 0 || !p->c_is_bf16) &&
           p->m * p->n * p->k >= BF16_LEAST && wf_tiles_there();
}

/* Whether splitting the factors takes less time than six products of bfloat16 save: by bench/gemm.c
 * the sums have to be long, and a value that is split has to be used often. */
static bool wants_splitting(const wf_product *p)
{
    return is_plain(p) && p->beta == 0 && !p->a_is_bf16 && !p->b_is_bf16 && !p->c_is_bf16 &&
           p->k >= SPLIT_STEPS && p->m * p->n >= SPLIT_USES * (p->m + p->n) &&
           wf_tiles_used() == WF_TILES_AMX;
}

static bool wants_own(const wf_product *p)
{
    return is_plain(p) && WF_MIN(p->m, p->n) >= VECTORS && p->k >= FEW_STEPS && wf_gemm_is_here();
}

/* Rows and columns of a cell. */
static int64_t cell_rows(const wf_product_way *w)
{
    return (w->p.m + w->down - 1) / w->down;
}

static int64_t cell_columns(const wf_product_way *w)
{
    int64_t n = (w->p.n + w->across - 1) / w->across;

    return (n + TILE - 1) / TILE * TILE;
}

/* Blocks of k [*first, end) of a group. */
static int64_t group(const wf_product_way *w, int64_t i, int64_t *first)
{
    int64_t block, blocks = wf_gemm_blocks(w->p.k, &block);

    *first = i * blocks / w->deep;
    return (i + 1) * blocks / w->deep;
}

/* Sums of blocks that are made apart from C. */
static int64_t parts_of(const wf_product_way *w)
{
    int64_t block, ignored;

    return wf_gemm_blocks(w->p.k, &block) - group(w, 0, &ignored);
}

/* What the cells of one thread cost, in cycles or so: vectors of C times k, and packing B, which
 * every cell does for itself; reading A is worth something too, the more so where another processor
 * has made a part of it; and so is adding up sums that were made apart. */
static double cost_of(const wf_product_way *w)
{
    double rows = (double)cell_rows(w), columns = (double)cell_columns(w);
    double k = (double)((w->p.k + w->deep - 1) / w->deep);
    double added =
        (double)(parts_of(w) * w->p.m * w->p.n) / (double)(w->down * w->across * w->deep);

    return k * (rows * columns / (2 * TILE) + columns * (w->p.trans_b ? 0.5 : 0.25) + rows * 0.25) +
           added * 0.2;
}

/* The cheapest grid of cells, one for each thread that there is work for. Sums are made apart where
 * they stay in the caches. */
static void lay_cells(wf_product_way *w, uint32_t threads)
{
    int64_t work = w->p.m * (int64_t)wf_align_up((size_t)w->p.n, TILE) * w->p.k, block;
    int64_t cells = WF_MIN((int64_t)threads, work / THREAD_WORK + 1);
    int64_t blocks = wf_gemm_blocks(w->p.k, &block);
    wf_product_way best = *w;
    double least = 0;

    for (w->deep = 1; w->deep <= WF_MIN(cells, blocks); w->deep++) {
        if (w->deep > 1 &&
            (w->then & WF_PRODUCT_SUMS_B || parts_of(w) * w->p.m * w->p.n > PARTS_MOST))
            break;
        for (w->down = 1; w->down <= WF_MIN(cells / w->deep, w->p.m); w->down++) {
            w->across = WF_MIN(cells / w->deep / w->down, (w->p.n + TILE - 1) / TILE);
            if (least == 0 || cost_of(w) < least) {
                best = *w;
                least = cost_of(w);
            }
        }
    }
    *w = best;
}

static void prepare_own(wf_prep *prep, wf_product_way *w)
{
    const wf_product *p = &w->p;

    lay_cells(w, prep->threads);
    w->gemm = (wf_gemm){.trans_a = p->trans_a,
                        .trans_b = p->trans_b,
                        .m = cell_rows(w),
                        .n = cell_columns(w),
                        .k = p->k,
                        .lda = p->trans_a ? p->m : p->k,
                        .ldb = p->trans_b ? p->k : p->n,
                        .ldc = p->n,
                        .add = p->beta == 1,
                        .relu = w->then & WF_PRODUCT_RELU};
    w->room = wf_align_up(wf_gemm_room(&w->gemm), ALIGN);
    w->sums_at = w->parts_at = (size_t)(w->down * w->across * w->deep) * w->room;
    prep->workspace_bytes =
        WF_MAX(prep->workspace_bytes,
               w->sums_at + (w->then & WF_PRODUCT_SUMS_B ? (size_t)p->n * sizeof(double) : 0) +
                   (w->deep > 1 ? (size_t)(parts_of(w) * p->m * p->n) * sizeof(float) : 0));
}

wf_status wf_product_prepare(wf_prep *prep, const wf_product *p, uint32_t then,
                             wf_product_way **out, wf_err *err)
{
    wf_product_way *w = wf_arena_alloc(prep->arena, sizeof *w);

    if (!w)
        return wf_fail_nomem(err, sizeof *w);
    *w = (wf_product_way){.p = *p, .then = then & ~(uint32_t)WF_PRODUCT_SUMS_B};
    *out = w;
    if (wants_rounding(prep, p)) {
        if (!p->trans_b)
            w->then = then;
        return wf_product_tiles_prepare(prep, p, w->then, false, &w->rounding, err);
    }
    prep->widens = prep->widens || p->a_is_bf16 || p->b_is_bf16 || p->c_is_bf16 || p->y_is_bf16;
    w->vectors = wf_vectors_fit(p);
    if (w->vectors || !wants_own(p))
        return WF_OK;
    if (wants_splitting(p))
        WF_TRY(wf_product_tiles_prepare(prep, p, w->then, true, &w->splitting, err));
    if (!w->splitting && !p->trans_b && p->k < WF_REDUCE_LEAST_CUT)
        w->then = then;
    prepare_own(prep, w);
    return WF_OK;
}

typedef struct job {
    const wf_product_way *w;
    const float *a, *b, *bias, *y;
    float *c;
    double *sums; /* or NULL */
    char *workspace;
} job;

static float *part_at(const job *j, int64_t i)
{
    return (float *)(void *)(j->workspace + j->w->parts_at) + i * j->w->p.m * j->w->p.n;
}

#define RELU_GRAD(T)                                                                               \
    WF_MULTIVERSION static void relu_grad_##T(T *c, const T *y, int64_t n)                         \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++)                                                            \
            c[i] = y[i] > 0 ? c[i] : 0;                                                            \
    }
RELU_GRAD(float)
RELU_GRAD(double)

/* Rows [row, row + m) of columns [column, column + n). */
static void finish_cell(const job *j, int64_t row, int64_t column, int64_t m, int64_t n)
{
    for (int64_t i = row; j->y && i < row + m; i++)
        relu_grad_float(j->c + i * j->w->p.n + column, j->y + i * j->w->p.n + column, n);
}

/* The sums of a group's blocks of k, of a cell. */
static void go_group(const job *j, wf_gemm g, int64_t i, int64_t row, int64_t column, char *room)
{
    int64_t size, end, first, own, ignored;
    const wf_product_way *w = j->w;

    (void)wf_gemm_blocks(w->p.k, &size);
    end = group(w, i, &first);
    own = group(w, 0, &ignored);
    g.relu = false;
    for (int64_t b = first; b < end; b++) {
        int64_t k = b * size;
        float *c = b < own ? j->c : part_at(j, b - own);

        g.k = WF_MIN(size, w->p.k - k);
        g.add = b < own && (b > 0 || w->gemm.add);
        wf_gemm_go(&g, j->a + (g.trans_a ? row + k * g.lda : row * g.lda + k),
                   j->b + (g.trans_b ? column * g.ldb + k : column + k * g.ldb), NULL,
                   c + row * g.ldc + column, room);
    }
}

static void cells_range(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const wf_product_way *w = j->w;

    for (int64_t i = begin; i < end; i++) {
        int64_t deep = i / (w->down * w->across), at = i % (w->down * w->across);
        int64_t row = at / w->across * w->gemm.m, column = at % w->across * w->gemm.n;
        char *room = j->workspace + (size_t)i * w->room;
        wf_gemm g = w->gemm;

        g.sums = j->sums && row == 0 ? j->sums + column : NULL;
        g.m = WF_MIN(g.m, w->p.m - row);
        g.n = WF_MIN(g.n, w->p.n - column);
        if (g.m <= 0 || g.n <= 0)
            continue;
        if (w->deep > 1) {
            go_group(j, g, deep, row, column, room);
            continue;
        }
        wf_gemm_go(&g, j->a + (g.trans_a ? row : row * g.lda),
                   j->b + (g.trans_b ? column * g.ldb : column), j->bias ? j->bias + column : NULL,
                   j->c + row * g.ldc + column, room);
        finish_cell(j, row, column, g.m, g.n);
    }
}

WF_MULTIVERSION static void add_part(float *c, const float *part, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        c[i] += part[i];
}

WF_MULTIVERSION static void finish_row(float *c, const float *bias, bool relu, int64_t n)
{
    for (int64_t i = 0; bias && i < n; i++)
        c[i] += bias[i];
    for (int64_t i = 0; relu && i < n; i++)
        c[i] = c[i] < 0 ? 0 : c[i];
}

/* Rows of C: the sums of blocks that were made apart, in the order of k, as wf_gemm_go adds them.
 */
static void add_parts(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    int64_t n = j->w->p.n, parts = parts_of(j->w);

    for (int64_t i = begin; i < end; i++) {
        for (int64_t k = 0; k < parts; k++)
            add_part(j->c + i * n, part_at(j, k) + i * n, n);
        finish_row(j->c + i * n, j->bias, j->w->then & WF_PRODUCT_RELU, n);
        finish_cell(j, i, 0, 1, n);
    }
}

/* The row vector into every row of C, for OpenBLAS to add to. */
static void spread(const wf_product *p, const void *bias, void *c)
{
    size_t bytes = (size_t)p->n * wf_dtype_size(p->dtype);

    for (int64_t i = 0; i < p->m; i++)
        memcpy((char *)c + (size_t)i * bytes, bias, bytes);
}

#define CUT(T)                                                                                     \
    WF_MULTIVERSION static void cut_##T(T *c, int64_t begin, int64_t end)                          \
    {                                                                                              \
        for (int64_t i = begin; i < end; i++)                                                      \
            c[i] = c[i] < 0 ? 0 : c[i];                                                            \
    }
CUT(float)
CUT(double)

/* Relu in place, for OpenBLAS; a NaN stays one. */
static void cut_range(void *arg, int64_t begin, int64_t end)
{
    const wf_product *p = arg;

    if (p->dtype == WF_F32)
        cut_float(p->c, begin, end);
    else
        cut_double(p->c, begin, end);
}

typedef struct masked {
    const wf_product *p;
    const void *y;
} masked;

static void relu_grad_range(void *arg, int64_t begin, int64_t end)
{
    const masked *m = arg;

    if (m->p->dtype == WF_F32)
        relu_grad_float((float *)m->p->c + begin, (const float *)m->y + begin, end - begin);
    else
        relu_grad_double((double *)m->p->c + begin, (const double *)m->y + begin, end - begin);
}

static void go_cells(const wf_product_way *w, const wf_run *run, const wf_product_operands *of)
{
    double *sums = (double *)(void *)((char *)run->workspace + w->sums_at);
    bool has_sums = w->then & WF_PRODUCT_SUMS_B;
    job j = {.w = w,
             .a = of->a,
             .b = of->b,
             .bias = of->bias,
             .y = of->y,
             .c = of->c,
             .sums = has_sums ? sums : NULL,
             .workspace = run->workspace};

    wf_pool_for(run->pool, w->down * w->across * w->deep, 1, cells_range, &j);
    if (w->deep > 1)
        wf_pool_for(run->pool, w->p.m, 1 + WF_GRAIN / (4 * w->p.n), add_parts, &j);
    for (int64_t i = 0; has_sums && i < w->p.n; i++)
        of->sums[i] = (float)sums[i];
}

static void go_blas(const wf_product_way *w, wf_product *p, const void *bias, wf_pool *pool)
{
    bool relu = w->then & WF_PRODUCT_RELU;

    if (w->vectors) {
        wf_vectors_run(p, bias, relu, pool);
        return;
    }
    if (w->then & WF_PRODUCT_BIAS) {
        spread(p, bias, p->c);
        p->beta = 1;
    }
    wf_product_run(p, pool);
    if (relu)
        wf_pool_for(pool, p->m * p->n, WF_GRAIN, cut_range, p);
}

void wf_product_go(const wf_product_way *w, const wf_run *run, const wf_product_operands *of)
{
    wf_product p = w->p;

    if (w->rounding) {
        (void)wf_product_tiles_go(w->rounding, run, of);
        return;
    }
    if (w->splitting && wf_product_tiles_go(w->splitting, run, of))
        return;
    if (w->down) {
        go_cells(w, run, of);
        return;
    }
    p.a = of->a;
    p.b = of->b;
    p.c = of->c;
    go_blas(w, &p, of->bias, run->pool);
    if (w->then & WF_PRODUCT_RELU_GRAD)
        wf_pool_for(run->pool, p.m * p.n, WF_GRAIN, relu_grad_range, &(masked){&p, of->y});
}

bool wf_product_sums_b(const wf_product_way *w)
{
    return w->then & WF_PRODUCT_SUMS_B;
}
