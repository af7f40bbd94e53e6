/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/product/product.h - matrix products by cuBLASLt, with what follows them. */
#ifndef WF_KERNELS_CUDA_PRODUCT_H
#define WF_KERNELS_CUDA_PRODUCT_H

#include "common/kernels/cuda/device.h"
#include "common/kernels/kernel.h"

/* The factor whose rows, as it lies, are summed beside the product. */
typedef enum wf_cuda_sums { WF_CUDA_NO_SUMS, WF_CUDA_SUMS_OF_A, WF_CUDA_SUMS_OF_B } wf_cuda_sums;

/* Queues the sums of a factor's rows in a kernel of its own.
 *   x     the factor
 *   sums  [its columns]
 *   room  `room` bytes of wf_cuda_sum, undefined */
typedef wf_status wf_cuda_sum_fn(const void *arg, const wf_run *run, const void *x, void *sums,
                                 void *room, wf_err *err);
typedef struct wf_cuda_sum {
    wf_cuda_sum_fn *run;
    const void *arg; /* lives as long as the way */
    size_t room;     /* bytes */
} wf_cuda_sum;

/* C = alpha A' B' + beta C, then a row vector is added to each row, then negative results are cut
 * to 0. Matrices are row-major without gaps; ' is a transpose if asked for. Several at a time lie
 * `strides` elements apart, 0: the same one for all.
 *
 * It is computed in f32 or f64. Of f32, A and B may both be of one narrow type, and then C may be
 * of it too; the row has C's type. These are all that cuBLASLt has ("cublasLtMatmul", its table of
 * types).
 *
 * With `sums` the rows of A (where trans_a) or B (where not trans_b) are summed, which is along k;
 * alpha does not scale the sums. They have C's type. cuBLASLt has it as an epilogue of its own
 * (BGRADA, BGRADB), for one product at a time, without a row and without a cut. Its documentation
 * does not say whether it rounds the rows where the product rounds factors of f32. */
typedef struct wf_cuda_gemm {
    wf_dtype dtype;           /* in which it is computed */
    wf_dtype factors, result; /* of A and B, of C; WF_NONE: dtype */
    bool trans_a, trans_b, adds_row, cuts;
    wf_cuda_sums sums;
    wf_cuda_sum sum; /* with sums: another way to them */
    int64_t m, n, k; /* none is 0 */
    double alpha, beta;
    int64_t batch, strides[3]; /* of A, B, C */
    uint32_t aligned;          /* bytes to which each A, B and C is; a tensor is to 64 */
} wf_cuda_gemm;

typedef struct wf_cuda_gemm_way wf_cuda_gemm_way;

/* Chooses an algorithm (tune/tune.h), one that rounds factors of f32 to what the plan computes
 * in; asks `prep` for workspace. Call wf_cuda_gemm_free.
 *
 * With sums the algorithms to choose from are those that cuBLASLt names with the epilogue and,
 * behind them, those of the plain product, each with g->sum after it: which of the two is faster
 * depends on the case. Where cuBLASLt has no algorithm with the epilogue, there are only the
 * latter.
 * Errors: WF_NOMEM; what cuBLASLt says. */
WF_MUST_USE wf_status wf_cuda_gemm_new(wf_prep *prep, const wf_cuda_gemm *g, wf_cuda_gemm_way **out,
                                       wf_err *err);
/* Frees it; NULL is fine. */
void wf_cuda_gemm_free(wf_cuda_gemm_way *w);
/* Queues it on the run's stream. row: [n], with adds_row. */
WF_MUST_USE wf_status wf_cuda_gemm_go(const wf_cuda_gemm_way *w, const wf_run *run, const void *a,
                                      const void *b, const void *row, void *c, wf_err *err);
/* Queues one with sums: [m] of A, [n] of B. */
WF_MUST_USE wf_status wf_cuda_gemm_go_sums(const wf_cuda_gemm_way *w, const wf_run *run,
                                           const void *a, const void *b, void *sums, void *c,
                                           wf_err *err);

#endif
