/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/product.c */
#include "common/kernels/cpu/product.h"
#include "common/base/size.h"
#include "common/kernels/cpu/cpu.h"
#include "common/kernels/cpu/onednn.h"
#include "common/kernels/cpu/product_bf16.h"
#include "common/kernels/cpu/tiles.h"

#include <string.h>

/* Multiply-adds that are worth a thread of their own: about 5 us. */
#define THREAD_WORK INT64_C(500000)
/* Below it the call of oneDNN, about 1 us, outweighs what it gains. */
#define ONEDNN_LEAST INT64_C(20000)
/* Below it rounding the factors outweighs what multiplying gains. */
#define BF16_LEAST INT64_C(1000000)
enum { TILE = 16, ALIGN = 64 };

/* Rows, or columns, [from, from + extent) of C. */
typedef struct cut {
    int64_t from;
    wf_onednn_product *product;
    size_t workspace_at;
} cut;

struct wf_product_way {
    wf_product p;
    bool bias, relu, by_columns;
    wf_product_bf16 *rounding; /* in bfloat16; or NULL */
    cut *cuts;                 /* [n_cuts], of oneDNN; NULL: OpenBLAS */
    int64_t n_cuts;
};

/* oneDNN won on thin products (1.1 to 1.7 times OpenBLAS 0.3.21) and drew on large ones; with few
 * columns and both operands walked across their rows it lost. */
static bool wants_onednn(const wf_product *p)
{
    int64_t work = p->m * p->n * p->k;

    if (p->dtype != WF_F32 || p->alpha != 1 || (p->beta != 0 && p->beta != 1) ||
        !wf_onednn_has_f32())
        return false;
    if (work < ONEDNN_LEAST || (p->trans_a && p->n < 2 * TILE))
        return false;
    return WF_MIN(WF_MIN(p->m, p->n), p->k) < 512;
}

static wf_onednn_shape shape_of(const wf_product_way *w, int64_t extent)
{
    const wf_product *p = &w->p;

    return (wf_onednn_shape){.trans_a = p->trans_a,
                             .trans_b = p->trans_b,
                             .m = w->by_columns ? p->m : extent,
                             .n = w->by_columns ? extent : p->n,
                             .k = p->k,
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

static bool wants_rounding(const wf_prep *prep, const wf_product *p)
{
    return prep->bf16 && p->dtype == WF_F32 && p->alpha == 1 && (p->beta == 0 || p->beta == 1) &&
           p->m * p->n * p->k >= BF16_LEAST && wf_tiles_there();
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
                          .by_columns = p->n > p->m};
    *out = w;
    if (wants_rounding(prep, p))
        return wf_product_bf16_prepare(prep, p, w->bias, w->relu, &w->rounding, err);
    if (!wants_onednn(p))
        return WF_OK;
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

void wf_product_release(wf_product_way *w)
{
    if (w)
        drop_cuts(w);
}

typedef struct job {
    const wf_product_way *w;
    const char *a, *b;
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
        wf_product_bf16_go(w->rounding, run, a, b, bias, c);
        return;
    }
    if (w->cuts) {
        job j = {w, a, b, bias, c, run->workspace, sizeof(float)};

        wf_pool_for(run->pool, w->n_cuts, 1, range, &j);
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
