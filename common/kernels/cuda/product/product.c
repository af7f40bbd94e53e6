/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/product/product.c
 *
 * cuBLASLt's matrices are column-major: C is its n x m matrix, which is B' times A' there.
 *
 * A description is of one caller at a time, since the row's address is one of its attributes; so a
 * way is too, as a plan is. */
#include "common/kernels/cuda/product/product.h"

#include <stdlib.h>

static const size_t MOST_WORKSPACE = (size_t)32 << 20;

struct wf_cuda_gemm_way {
    wf_cuda_gemm g;
    const wf_cuda_gpu *gpu;
    int compute; /* of a product in f32 */
    wf_cuda_product *product;
    wf_cuda_layout *a, *b, *c;
    wf_cuda_algorithm algorithm;
};

/* The error of a call, if none before it failed. */
#define NEXT(error, call)                                                                          \
    do {                                                                                           \
        if ((error) == 0)                                                                          \
            (error) = (call);                                                                      \
    } while (0)

/* A row-major matrix [rows, columns], as cuBLASLt has it. */
static int add_layout(const wf_cuda_gemm_way *w, int64_t rows, int64_t columns, int64_t stride,
                      wf_cuda_layout **out)
{
    const wf_cuda_calls *calls = w->gpu->calls;
    int type = w->g.dtype == WF_F32 ? WF_CUDA_F32 : WF_CUDA_F64, error;
    int32_t batch = (int32_t)w->g.batch;

    error = calls->layout_new(out, type, (uint64_t)columns, (uint64_t)rows, columns);
    if (batch > 1) {
        NEXT(error, calls->layout_set(*out, WF_CUDA_BATCH, &batch, sizeof batch));
        NEXT(error, calls->layout_set(*out, WF_CUDA_BATCH_STRIDE, &stride, sizeof stride));
    }
    return error;
}

static int describe(wf_cuda_gemm_way *w)
{
    const wf_cuda_calls *calls = w->gpu->calls;
    const wf_cuda_gemm *g = &w->g;
    bool is_f32 = g->dtype == WF_F32;
    int32_t transposed = WF_CUDA_TRANSPOSED;
    uint32_t then = (g->adds_row ? WF_CUDA_THEN_BIAS : 0) | (g->cuts ? WF_CUDA_THEN_RELU : 0);
    int error = calls->product_new(&w->product, is_f32 ? w->compute : WF_CUDA_COMPUTE_F64,
                                   is_f32 ? WF_CUDA_F32 : WF_CUDA_F64);

    if (g->trans_b)
        NEXT(error,
             calls->product_set(w->product, WF_CUDA_TRANSPOSE_A, &transposed, sizeof transposed));
    if (g->trans_a)
        NEXT(error,
             calls->product_set(w->product, WF_CUDA_TRANSPOSE_B, &transposed, sizeof transposed));
    if (then)
        NEXT(error, calls->product_set(w->product, WF_CUDA_EPILOGUE, &then, sizeof then));
    NEXT(error,
         add_layout(w, g->trans_b ? g->n : g->k, g->trans_b ? g->k : g->n, g->strides[1], &w->b));
    NEXT(error,
         add_layout(w, g->trans_a ? g->k : g->m, g->trans_a ? g->m : g->k, g->strides[0], &w->a));
    NEXT(error, add_layout(w, g->m, g->n, g->strides[2], &w->c));
    return error;
}

wf_status wf_cuda_gemm_new(wf_prep *prep, const wf_cuda_gemm *g, wf_cuda_gemm_way **out,
                           wf_err *err)
{
    wf_cuda_gemm_way *w = calloc(1, sizeof *w);
    int error;

    if (!w)
        return wf_fail_nomem(err, sizeof *w);
    w->g = *g;
    w->gpu = wf_cuda_gpu_of(prep->device);
    w->compute = prep->bf16   ? WF_CUDA_COMPUTE_F32_OF_BF16
                 : prep->tf32 ? WF_CUDA_COMPUTE_F32_OF_TF32
                              : WF_CUDA_COMPUTE_F32;
    error = w->gpu->calls->use(w->gpu->index);
    NEXT(error, describe(w));
    NEXT(error, w->gpu->calls->choose(w->gpu->lt, w->product, w->b, w->a, w->c, MOST_WORKSPACE,
                                      g->aligned, &w->algorithm));
    if (error != 0) {
        wf_status rc = wf_cuda_fail(w->gpu, error, err);

        wf_cuda_gemm_free(w);
        return rc;
    }
    prep->workspace_bytes = w->algorithm.workspace;
    *out = w;
    return WF_OK;
}

void wf_cuda_gemm_free(wf_cuda_gemm_way *w)
{
    const wf_cuda_calls *calls = w ? w->gpu->calls : NULL;

    if (!w)
        return;
    if (w->product)
        (void)calls->product_free(w->product);
    if (w->a)
        (void)calls->layout_free(w->a);
    if (w->b)
        (void)calls->layout_free(w->b);
    if (w->c)
        (void)calls->layout_free(w->c);
    free(w);
}

wf_status wf_cuda_gemm_go(const wf_cuda_gemm_way *w, const wf_run *run, const void *a,
                          const void *b, const void *row, void *c, wf_err *err)
{
    const wf_cuda_calls *calls = w->gpu->calls;
    float alpha = (float)w->g.alpha, beta = (float)w->g.beta;
    bool is_f32 = w->g.dtype == WF_F32;
    int error = calls->use(w->gpu->index);

    if (w->g.adds_row)
        NEXT(error, calls->product_set(w->product, WF_CUDA_BIAS, &row, sizeof row));
    NEXT(error,
         calls->multiply(w->gpu->lt, w->product,
                         is_f32 ? (const void *)&alpha : (const void *)&w->g.alpha, b, w->b, a,
                         w->a, is_f32 ? (const void *)&beta : (const void *)&w->g.beta, c, w->c,
                         &w->algorithm, run->workspace, wf_cuda_stream_of(run->stream)));
    return error == 0 ? WF_OK : wf_cuda_fail(w->gpu, error, err);
}
