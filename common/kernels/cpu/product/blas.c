/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/product/blas.c */
#include "common/kernels/cpu/product/blas.h"
#include "common/base/size.h"

#include <cblas.h>
#include <stddef.h>

/* Multiply-adds that are worth a thread of their own: about 10 us. */
#define THREAD_WORK INT64_C(500000)
enum { TILE = 16 }; /* ranges are cut in multiples of this, the width of a vector */

/* Rows [begin, end) x TILE of C, or columns when by_columns. */
typedef struct part {
    const wf_product *p;
    bool by_columns;
} part;

static void multiply(const wf_product *p, int64_t m, int64_t n, const void *a, const void *b,
                     void *c)
{
    enum CBLAS_TRANSPOSE ta = p->trans_a ? CblasTrans : CblasNoTrans;
    enum CBLAS_TRANSPOSE tb = p->trans_b ? CblasTrans : CblasNoTrans;
    blasint lda = (blasint)(p->trans_a ? p->m : p->k), ldb = (blasint)(p->trans_b ? p->k : p->n);

    lda = WF_MAX(lda, 1);
    ldb = WF_MAX(ldb, 1);
    if (p->dtype == WF_F32)
        cblas_sgemm(CblasRowMajor, ta, tb, (blasint)m, (blasint)n, (blasint)p->k, (float)p->alpha,
                    a, lda, b, ldb, (float)p->beta, c, (blasint)p->n);
    else
        cblas_dgemm(CblasRowMajor, ta, tb, (blasint)m, (blasint)n, (blasint)p->k, p->alpha, a, lda,
                    b, ldb, p->beta, c, (blasint)p->n);
}

static void range(void *arg, int64_t begin, int64_t end)
{
    const part *t = arg;
    const wf_product *p = t->p;
    size_t size = wf_dtype_size(p->dtype);
    int64_t extent = t->by_columns ? p->n : p->m;
    int64_t from = begin * TILE, to = WF_MIN(end * TILE, extent);
    const char *a = p->a, *b = p->b;
    char *c = p->c;

    if (t->by_columns)
        multiply(p, p->m, to - from, a, b + (size_t)(p->trans_b ? from * p->k : from) * size,
                 c + (size_t)from * size);
    else
        multiply(p, to - from, p->n, a + (size_t)(p->trans_a ? from : from * p->k) * size, b,
                 c + (size_t)(from * p->n) * size);
}

void wf_product_strided(const wf_strided_product *p)
{
    enum CBLAS_TRANSPOSE ta = p->trans_a ? CblasTrans : CblasNoTrans;
    enum CBLAS_TRANSPOSE tb = p->trans_b ? CblasTrans : CblasNoTrans;
    blasint m = (blasint)p->m, n = (blasint)p->n, k = (blasint)p->k;
    blasint lda = (blasint)WF_MAX(p->lda, (int64_t)1), ldb = (blasint)WF_MAX(p->ldb, (int64_t)1);
    blasint ldc = (blasint)WF_MAX(p->ldc, (int64_t)1);

    if (m == 0 || n == 0)
        return;
    if (p->dtype == WF_F32)
        cblas_sgemm(CblasRowMajor, ta, tb, m, n, k, 1.0f, p->a, lda, p->b, ldb, (float)p->beta,
                    p->c, ldc);
    else
        cblas_dgemm(CblasRowMajor, ta, tb, m, n, k, 1.0, p->a, lda, p->b, ldb, p->beta, p->c, ldc);
}

void wf_product_run(const wf_product *p, wf_pool *pool)
{
    part t = {p, p->n > p->m};
    int64_t tiles = (WF_MAX(p->m, p->n) + TILE - 1) / TILE;
    int64_t per_tile = TILE * WF_MIN(p->m, p->n) * p->k;

    if (p->m == 0 || p->n == 0)
        return;
    wf_pool_for(pool, tiles, THREAD_WORK / WF_MAX(per_tile, (int64_t)1) + 1, range, &t);
}
