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

/* Multiply-adds that are worth a thread of their own: about 5 us. */
#define THREAD_WORK INT64_C(500000)
/* Below it rounding the factors outweighs what multiplying gains. */
#define BF16_LEAST INT64_C(1000000)
enum { TILE = 16, ALIGN = 64 };
/* OpenBLAS is the better one where a product is next to one of vectors. */
enum { VECTORS = 4, FEW_STEPS = 16 };
enum { SPLIT_STEPS = 256, SPLIT_USES = 100 };

/* In bfloat16; else by our own kernels, if there are cells or a vector; else through OpenBLAS. */
struct wf_product_way {
    wf_product p;
    bool bias, relu, vectors;
    wf_product_tiles *rounding, *splitting; /* or NULL */
    /* C in across x down cells, with workspace for each; 0: none */
    wf_gemm gemm;
    int64_t down, across;
    size_t room;
    bool sums; /* of B's rows, as doubles at sums_at of the workspace */
    size_t sums_at;
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
           p->k >= SPLIT_STEPS && p->m * p->n >= SPLIT_USES * (p->m + p->n) && wf_tiles_by_amx();
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

/* What the cells of one thread cost, in cycles or so: vectors of C times k, and packing B, which
 * every cell does for itself; reading A is worth something too. */
static double cost_of(const wf_product_way *w)
{
    double rows = (double)cell_rows(w), columns = (double)cell_columns(w), k = (double)w->p.k;

    return k * (rows * columns / (2 * TILE) + columns * (w->p.trans_b ? 0.5 : 0.25) +
                rows * (w->p.trans_a ? 0.25 : 0.1));
}

/* The cheapest grid of cells, one for each thread that there is work for. */
static void lay_cells(wf_product_way *w, uint32_t threads)
{
    int64_t cells = WF_MIN((int64_t)threads, w->p.m * w->p.n * w->p.k / THREAD_WORK + 1);
    wf_product_way best = *w;
    double least = 0;

    for (w->down = 1; w->down <= WF_MIN(cells, w->p.m); w->down++) {
        w->across = WF_MIN(cells / w->down, (w->p.n + TILE - 1) / TILE);
        if (least == 0 || cost_of(w) < least) {
            best = *w;
            least = cost_of(w);
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
                        .relu = w->relu};
    w->room = wf_align_up(wf_gemm_room(&w->gemm), ALIGN);
    w->sums_at = (size_t)(w->down * w->across) * w->room;
    prep->workspace_bytes =
        WF_MAX(prep->workspace_bytes, w->sums_at + (w->sums ? (size_t)p->n * sizeof(double) : 0));
}

wf_status wf_product_prepare(wf_prep *prep, const wf_product *p, uint32_t then,
                             wf_product_way **out, wf_err *err)
{
    wf_product_way *w = wf_arena_alloc(prep->arena, sizeof *w);

    if (!w)
        return wf_fail_nomem(err, sizeof *w);
    *w = (wf_product_way){.p = *p, .bias = then & WF_PRODUCT_BIAS, .relu = then & WF_PRODUCT_RELU};
    *out = w;
    if (wants_rounding(prep, p))
        return wf_product_tiles_prepare(prep, p, w->bias, w->relu, false, &w->rounding, err);
    prep->widens = prep->widens || p->a_is_bf16 || p->b_is_bf16 || p->c_is_bf16;
    w->vectors = wf_vectors_fit(p);
    if (w->vectors || !wants_own(p))
        return WF_OK;
    if (wants_splitting(p))
        WF_TRY(wf_product_tiles_prepare(prep, p, w->bias, w->relu, true, &w->splitting, err));
    w->sums =
        !w->splitting && then & WF_PRODUCT_SUMS_B && !p->trans_b && p->k < WF_REDUCE_LEAST_CUT;
    prepare_own(prep, w);
    return WF_OK;
}

typedef struct job {
    const wf_product_way *w;
    const float *a, *b, *bias;
    float *c;
    double *sums; /* or NULL */
    char *workspace;
} job;

static void cells_range(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const wf_product_way *w = j->w;

    for (int64_t i = begin; i < end; i++) {
        int64_t row = i / w->across * w->gemm.m, column = i % w->across * w->gemm.n;
        wf_gemm g = w->gemm;

        g.sums = j->sums && row == 0 ? j->sums + column : NULL;
        g.m = WF_MIN(g.m, w->p.m - row);
        g.n = WF_MIN(g.n, w->p.n - column);
        if (g.m > 0 && g.n > 0)
            wf_gemm_go(&g, j->a + (g.trans_a ? row : row * g.lda),
                       j->b + (g.trans_b ? column * g.ldb : column),
                       j->bias ? j->bias + column : NULL, j->c + row * g.ldc + column,
                       j->workspace + (size_t)i * w->room);
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

void wf_product_go(const wf_product_way *w, const wf_run *run, const void *a, const void *b,
                   const void *bias, void *c)
{
    wf_product p = w->p;

    if (w->rounding) {
        (void)wf_product_tiles_go(w->rounding, run, a, b, bias, c);
        return;
    }
    if (w->splitting && wf_product_tiles_go(w->splitting, run, a, b, bias, c))
        return;
    if (w->down) {
        job j = {w, a, b, bias, c, NULL, run->workspace};

        wf_pool_for(run->pool, w->down * w->across, 1, cells_range, &j);
        return;
    }
    p.a = a;
    p.b = b;
    p.c = c;
    if (w->vectors) {
        wf_vectors_run(&p, bias, w->relu, run->pool);
        return;
    }
    if (w->bias) {
        spread(&p, bias, c);
        p.beta = 1;
    }
    wf_product_run(&p, run->pool);
    if (w->relu)
        wf_pool_for(run->pool, p.m * p.n, WF_GRAIN, cut_range, &p);
}

bool wf_product_sums_b(const wf_product_way *w)
{
    return w->sums;
}

void wf_product_go_sums(const wf_product_way *w, const wf_run *run, const void *a, const void *b,
                        void *c, float *sums)
{
    job j = {
        w, a, b, NULL, c, (double *)(void *)((char *)run->workspace + w->sums_at), run->workspace};

    wf_assert(w->sums && !w->bias);
    wf_pool_for(run->pool, w->down * w->across, 1, cells_range, &j);
    for (int64_t i = 0; i < w->p.n; i++)
        sums[i] = (float)j.sums[i];
}
