/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/product/blas.h - matrix products through OpenBLAS, split over weft's own pool.
 *
 * OpenBLAS itself runs on one thread: its own pool would fight with ours and with other processes
 * for the cores. Measured: bench/mlp.c.
 */
#ifndef WF_KERNELS_CPU_BLAS_H
#define WF_KERNELS_CPU_BLAS_H

#include "common/kernels/pool.h"
#include "common/tensor/dtype.h"
#include <stdbool.h>
#include <stdint.h>

/* C = alpha A' B' + beta C, all row-major and dense: A' [m, k], B' [k, n], C [m, n]. A is stored
 * [k, m] when trans_a, B [n, k] when trans_b. */
typedef struct wf_product {
    wf_dtype dtype; /* f32 or f64 */
    bool trans_a, trans_b;
    int64_t m, n, k; /* each below 2^31 */
    double alpha, beta;
    const void *a, *b;
    void *c;
    bool a_is_bf16, b_is_bf16, c_is_bf16; /* not of dtype; for those who say so (product.h), */
    bool y_is_bf16;                       /* of then.h too */
} wf_product;

void wf_product_run(const wf_product *p, wf_pool *pool);

/* The same on the calling thread alone, of matrices whose rows lie lda, ldb and ldc elements apart,
 * for kernels that split their work themselves. All sizes are below 2^31. */
typedef struct wf_strided_product {
    wf_dtype dtype;
    bool trans_a, trans_b;
    int64_t m, n, k;
    const void *a, *b;
    void *c;
    int64_t lda, ldb, ldc;
    double beta;
    bool a_is_bf16, b_is_bf16; /* for wf_product_tiles_strided */
} wf_strided_product;

void wf_product_strided(const wf_strided_product *p);

/* OpenBLAS chooses its kernels by the number of the processor's model, and for one that it does not
 * know it takes those of Prescott, without AVX: 0.3.21 does so on an Emerald Rapids, and multiplies
 * at a fifth to a third of the rate of SkylakeX's. Then this chooses by what the processor has;
 * where OPENBLAS_CORETYPE is set it does nothing. For the start of a program: nobody may multiply,
 * or read the environment, at the same time. */
void wf_blas_choose_core(void);

#endif
