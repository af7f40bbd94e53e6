/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/product/product.h - matrix products by cuBLASLt, with what follows them. */
#ifndef WF_KERNELS_CUDA_PRODUCT_H
#define WF_KERNELS_CUDA_PRODUCT_H

#include "common/kernels/cuda/device.h"
#include "common/kernels/kernel.h"

/* C = alpha A' B' + beta C, then a row vector is added to each row, then negative results are cut
 * to 0. Matrices are row-major without gaps; ' is a transpose if asked for. Several at a time lie
 * `strides` elements apart, 0: the same one for all.
 *
 * It is computed in f32 or f64. Of f32, A and B may both be of one narrow type, and then C may be
 * of it too; the row has C's type. These are all that cuBLASLt has ("cublasLtMatmul", its table of
 * types). */
typedef struct wf_cuda_gemm {
    wf_dtype dtype;           /* in which it is computed */
    wf_dtype factors, result; /* of A and B, of C; WF_NONE: dtype */
    bool trans_a, trans_b, adds_row, cuts;
    int64_t m, n, k; /* none is 0 */
    double alpha, beta;
    int64_t batch, strides[3]; /* of A, B, C */
    uint32_t aligned;          /* bytes to which each A, B and C is; a tensor is to 64 */
} wf_cuda_gemm;

typedef struct wf_cuda_gemm_way wf_cuda_gemm_way;

/* Chooses an algorithm (tune/tune.h), one that rounds factors of f32 to what the plan computes
 * in; asks `prep` for workspace. Call wf_cuda_gemm_free. Errors: WF_NOMEM; what cuBLASLt says. */
WF_MUST_USE wf_status wf_cuda_gemm_new(wf_prep *prep, const wf_cuda_gemm *g, wf_cuda_gemm_way **out,
                                       wf_err *err);
/* Frees it; NULL is fine. */
void wf_cuda_gemm_free(wf_cuda_gemm_way *w);
/* Queues it on the run's stream. row: [n], with adds_row. */
WF_MUST_USE wf_status wf_cuda_gemm_go(const wf_cuda_gemm_way *w, const wf_run *run, const void *a,
                                      const void *b, const void *row, void *c, wf_err *err);

#endif
