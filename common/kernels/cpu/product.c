/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/product.c */
#include "common/kernels/cpu/product.h"
#include "common/base/size.h"
#include "common/kernels/cpu/bf16.h"
#include "common/kernels/cpu/cpu.h"
#include "common/kernels/cpu/gemm_avx512.h"
#include "common/kernels/cpu/onednn.h"

#include <string.h>

/* Multiply-adds that are worth a thread of their own: about 5 us. */
#define THREAD_WORK INT64_C(500000)
/* Below it rounding the factors outweighs what multiplying gains. */
#define BF16_LEAST INT64_C(1000000)
enum { TILE = 16, ALIGN = 64, BF16_ROWS = 64 };
/* OpenBLAS is the better one where a product is next to one of vectors. */
enum { VECTORS = 4, FEW_STEPS = 16 };

/* Rows, or columns, [from, from + extent) of C. */
typedef struct cut {
    int64_t from;
    wf_onednn_product *product;
    size_t workspace_at;
} cut;

struct wf_product_way {
    wf_product p;
    bool bias, relu, by_columns, bf16;
    bool rounded;    /* a and b come as bfloat16 */
    size_t a16, b16; /* bf16: where in the workspace the rounded factors lie */
    cut *cuts;       /* [n_cuts], of oneDNN; NULL: OpenBLAS, or our own if it has cells */
    int64_t n_cuts;
    /* Our own: C in across x down cells, with workspace for each. */
    wf_gemm gemm;
    int64_t down, across;
    size_t room;
};

static bool is_plain(const wf_product *p)
{
    return p->dtype == WF_F32 && p->alpha == 1 && (p->beta == 0 || p->beta == 1);
}

static bool wants_onednn(const wf_product *p, bool bf16)
{
    return bf16 && is_plain(p) && p->m * p->n * p->k >= BF16_LEAST && wf_onednn_has_f32();
}

static bool wants_own(const wf_product *p)
{
    return is_plain(p) && WF_MIN(p->m, p->n) >= VECTORS && p->k >= FEW_STEPS && wf_gemm_is_here();
}

static wf_onednn_shape shape_of(const wf_product_way *w, int64_t extent)
{
    const wf_product *p = &w->p;

    return (wf_onednn_shape){.trans_a = p->trans_a,
                             .trans_b = p->trans_b,
                             .m = w->by_columns ? p->m : extent,
                             .n = w->by_columns ? extent : p->n,
                             .k = p->k,
                             .bf16 = w->bf16,
                             .lda = p->trans_a ? p->m : p->k,
                             .ldb = p->trans_b ? p->k : p->n,
                             .ldc = p->n,
                             .add = p->beta == 1,
                             .bias = w->bias,
                             .relu = w->relu};
}

static void drop_cuts(wf_product_way *w)
{
    for (int64_t i = 0; w->cuts && i < w->n_cuts; i++)
        wf_onednn_product_free(w->cuts[i].product);
    w->cuts = NULL;
}

/* One product for each thread: the memory that it reads is set in it. False: oneDNN has no way. */
static bool cut_up(wf_product_way *w, uint32_t threads, size_t *workspace)
{
    int64_t extent = w->by_columns ? w->p.n : w->p.m, tiles = (extent + TILE - 1) / TILE;
    int64_t share = (tiles + w->n_cuts - 1) / w->n_cuts * TILE, n = 0;

    (void)threads;
    for (int64_t from = 0; from < extent; from += share, n++) {
        wf_onednn_shape s = shape_of(w, WF_MIN(share, extent - from));
        cut *c = &w->cuts[n];

        c->from = from;
        c->workspace_at = *workspace;
        c->product = wf_onednn_product_new(&s);
        if (!c->product)
            return false;
        *workspace += wf_align_up(wf_onednn_product_workspace(c->product), ALIGN);
    }
    w->n_cuts = n;
    return true;
}

static void make_room(wf_product_way *w, size_t *workspace)
{
    w->a16 = *workspace;
    w->b16 = w->a16 + wf_align_up((size_t)(w->p.m * w->p.k) * sizeof(uint16_t), ALIGN);
    *workspace = w->b16 + wf_align_up((size_t)(w->p.k * w->p.n) * sizeof(uint16_t), ALIGN);
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
    prep->workspace_bytes = WF_MAX(prep->workspace_bytes, (size_t)(w->down * w->across) * w->room);
}

wf_status wf_product_prepare(wf_prep *prep, const wf_product *p, uint32_t then,
                             wf_product_way **out, wf_err *err)
{
    wf_product_way *w = wf_arena_alloc(prep->arena, sizeof *w);
    size_t workspace = 0;

    if (!w)
        return wf_fail_nomem(err, sizeof *w);
    *w = (wf_product_way){.p = *p,
                          .bias = then & WF_PRODUCT_BIAS,
                          .relu = then & WF_PRODUCT_RELU,
                          .by_columns = p->n > p->m,
                          .bf16 = prep->bf16 && wf_onednn_has_bf16()};
    *out = w;
    if (!wants_onednn(p, w->bf16)) {
        if (wants_own(p))
            prepare_own(prep, w);
        return WF_OK;
    }
    /* oneDNN's products on AMX want whole rows of B and C. */
    if (w->bf16 && p->m >= BF16_ROWS * (int64_t)prep->threads)
        w->by_columns = false;
    w->rounded = then & WF_PRODUCT_ROUNDED;
    if (w->bf16 && !w->rounded)
        make_room(w, &workspace);
    w->n_cuts = WF_MIN((int64_t)prep->threads, p->m * p->n * p->k / THREAD_WORK + 1);
    w->cuts = wf_arena_array(prep->arena, (size_t)w->n_cuts, sizeof *w->cuts);
    if (!w->cuts)
        return wf_fail_nomem(err, (size_t)w->n_cuts * sizeof *w->cuts);
    if (cut_up(w, prep->threads, &workspace))
        prep->workspace_bytes = WF_MAX(prep->workspace_bytes, workspace);
    else
        drop_cuts(w);
    return WF_OK;
}

bool wf_product_is_bf16(const wf_product_way *w)
{
    return w->bf16 && w->cuts;
}

void wf_product_release(wf_product_way *w)
{
    if (w)
        drop_cuts(w);
}

typedef struct job {
    const wf_product_way *w;
    const char *a, *b; /* f32, or bfloat16 by now */
    const float *bias;
    float *c;
    char *workspace;
    size_t size; /* of an element of a and b */
} job;

static void range(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const wf_product *p = &j->w->p;

    for (int64_t i = begin; i < end; i++) {
        const cut *t = &j->w->cuts[i];
        int64_t from = t->from;

        if (j->w->by_columns)
            wf_onednn_product_run(
                t->product, j->a, j->b + (size_t)(p->trans_b ? from * p->k : from) * j->size,
                j->bias ? j->bias + from : NULL, j->c + from, j->workspace + t->workspace_at);
        else
            wf_onednn_product_run(t->product,
                                  j->a + (size_t)(p->trans_a ? from : from * p->k) * j->size, j->b,
                                  j->bias, j->c + from * p->n, j->workspace + t->workspace_at);
    }
}

static void cells_range(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const wf_product_way *w = j->w;
    const float *a = (const float *)(const void *)j->a, *b = (const float *)(const void *)j->b;

    for (int64_t i = begin; i < end; i++) {
        int64_t row = i / w->across * w->gemm.m, column = i % w->across * w->gemm.n;
        wf_gemm g = w->gemm;

        g.m = WF_MIN(g.m, w->p.m - row);
        g.n = WF_MIN(g.n, w->p.n - column);
        if (g.m > 0 && g.n > 0)
            wf_gemm_go(&g, a + (g.trans_a ? row : row * g.lda),
                       b + (g.trans_b ? column * g.ldb : column), j->bias ? j->bias + column : NULL,
                       j->c + row * g.ldc + column, j->workspace + (size_t)i * w->room);
    }
}

typedef struct rounding {
    const float *x;
    uint16_t *y;
} rounding;

static void round_range(void *arg, int64_t begin, int64_t end)
{
    const rounding *r = arg;

    wf_round_to_bf16(r->x + begin, r->y + begin, end - begin);
}

static void round_factors(const wf_product_way *w, const wf_run *run, job *j)
{
    rounding a = {(const float *)(const void *)j->a, (void *)(j->workspace + w->a16)};
    rounding b = {(const float *)(const void *)j->b, (void *)(j->workspace + w->b16)};

    wf_pool_for(run->pool, w->p.m * w->p.k, WF_GRAIN, round_range, &a);
    wf_pool_for(run->pool, w->p.k * w->p.n, WF_GRAIN, round_range, &b);
    j->a = (const char *)a.y;
    j->b = (const char *)b.y;
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

    if (w->cuts) {
        job j = {w, a, b, bias, c, run->workspace, w->bf16 ? sizeof(uint16_t) : sizeof(float)};

        if (w->bf16 && !w->rounded)
            round_factors(w, run, &j);
        wf_pool_for(run->pool, w->n_cuts, 1, range, &j);
        return;
    }
    if (w->down) {
        job j = {w, a, b, bias, c, run->workspace, sizeof(float)};

        wf_pool_for(run->pool, w->down * w->across, 1, cells_range, &j);
        return;
    }
    if (w->bias) {
        spread(&p, bias, c);
        p.beta = 1;
    }
    p.a = a;
    p.b = b;
    p.c = c;
    wf_product_run(&p, run->pool);
    if (w->relu)
        wf_pool_for(run->pool, p.m * p.n, WF_GRAIN, cut_range, &p);
}
