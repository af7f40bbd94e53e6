/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/product/product.c
 *
 * cuBLASLt's matrices are column-major: C is its n x m matrix, which is B' times A' there.
 *
 * A description is of one caller at a time, since the row's address is one of its attributes; so a
 * way is too, as a plan is. */
#include "common/kernels/cuda/product/product.h"
#include "common/base/size.h"

#include <stdlib.h>
#include <string.h>

static const size_t MOST_WORKSPACE = (size_t)32 << 20;

struct wf_cuda_gemm_way {
    wf_cuda_gemm g;
    const wf_cuda_gpu *gpu;
    wf_dtype factors, result; /* of A and B, of C */
    int compute;
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

/* CUDA's number of a type. */
static int type_of(wf_dtype dtype)
{
    switch (dtype) {
    case WF_F64:
        return WF_CUDA_F64;
    case WF_F16:
        return WF_CUDA_F16;
    case WF_BF16:
        return WF_CUDA_BF16;
    default:
        return WF_CUDA_F32;
    }
}

/* Factors that are narrow already are multiplied as they are. */
static int compute_of(const wf_cuda_gemm_way *w, const wf_prep *prep)
{
    static const int rounding[WF_COMPUTES] = {[WF_COMPUTE_F32] = WF_CUDA_COMPUTE_F32,
                                              [WF_COMPUTE_BF16] = WF_CUDA_COMPUTE_F32_OF_BF16,
                                              [WF_COMPUTE_F16] = WF_CUDA_COMPUTE_F32_OF_F16,
                                              [WF_COMPUTE_TF32] = WF_CUDA_COMPUTE_F32_OF_TF32};

    if (w->g.dtype != WF_F32)
        return WF_CUDA_COMPUTE_F64;
    return w->factors == WF_F32 ? rounding[prep->compute] : WF_CUDA_COMPUTE_F32;
}

/* A row-major matrix [rows, columns], as cuBLASLt has it. */
static int add_layout(const wf_cuda_gemm_way *w, wf_dtype dtype, int64_t rows, int64_t columns,
                      int64_t stride, wf_cuda_layout **out)
{
    const wf_cuda_calls *calls = w->gpu->calls;
    int32_t batch = (int32_t)w->g.batch;
    int error = calls->layout_new(out, type_of(dtype), (uint64_t)columns, (uint64_t)rows, columns);

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
    int32_t transposed = WF_CUDA_TRANSPOSED;
    uint32_t then = (g->adds_row ? WF_CUDA_THEN_BIAS : 0) | (g->cuts ? WF_CUDA_THEN_RELU : 0);
    int error = calls->product_new(&w->product, w->compute, type_of(g->dtype));

    if (g->trans_b)
        NEXT(error,
             calls->product_set(w->product, WF_CUDA_TRANSPOSE_A, &transposed, sizeof transposed));
    if (g->trans_a)
        NEXT(error,
             calls->product_set(w->product, WF_CUDA_TRANSPOSE_B, &transposed, sizeof transposed));
    if (then)
        NEXT(error, calls->product_set(w->product, WF_CUDA_EPILOGUE, &then, sizeof then));
    NEXT(error, add_layout(w, w->factors, g->trans_b ? g->n : g->k, g->trans_b ? g->k : g->n,
                           g->strides[1], &w->b));
    NEXT(error, add_layout(w, w->factors, g->trans_a ? g->k : g->m, g->trans_a ? g->m : g->k,
                           g->strides[0], &w->a));
    NEXT(error, add_layout(w, w->result, g->m, g->n, g->strides[2], &w->c));
    return error;
}

/* All that an algorithm depends on. */
typedef struct described {
    int64_t dtype, factors, result, compute, trans_a, trans_b, adds_row, cuts, adds_to;
    int64_t m, n, k, batch, strides[3], aligned, workspace;
} described;

static described describe_case(const wf_cuda_gemm_way *w)
{
    const wf_cuda_gemm *g = &w->g;

    return (described){.dtype = g->dtype,
                       .factors = w->factors,
                       .result = w->result,
                       .compute = w->compute,
                       .trans_a = g->trans_a,
                       .trans_b = g->trans_b,
                       .adds_row = g->adds_row,
                       .cuts = g->cuts,
                       .adds_to = g->beta != 0,
                       .m = g->m,
                       .n = g->n,
                       .k = g->k,
                       .batch = g->batch,
                       .strides = {g->strides[0], g->strides[1], g->strides[2]},
                       .aligned = g->aligned,
                       .workspace = (int64_t)MOST_WORKSPACE};
}

/* Bytes of matrices of so many elements, so far apart. */
static size_t bytes_of(const wf_cuda_gemm *g, wf_dtype dtype, int64_t elems, int64_t stride)
{
    return (size_t)((g->batch - 1) * stride + elems) * wf_dtype_size(dtype);
}

static int multiply(const wf_cuda_gemm_way *w, const wf_cuda_algorithm *by, const void *a,
                    const void *b, const void *row, void *c, void *workspace, wf_cuda_stream *s)
{
    const wf_cuda_calls *calls = w->gpu->calls;
    float alpha = (float)w->g.alpha, beta = (float)w->g.beta;
    bool is_f32 = w->g.dtype == WF_F32;
    int error = 0;

    if (w->g.adds_row)
        NEXT(error, calls->product_set(w->product, WF_CUDA_BIAS, &row, sizeof row));
    NEXT(error, calls->multiply(w->gpu->lt, w->product,
                                is_f32 ? (const void *)&alpha : (const void *)&w->g.alpha, b, w->b,
                                a, w->a, is_f32 ? (const void *)&beta : (const void *)&w->g.beta, c,
                                w->c, by, workspace, s));
    return error;
}

/* Algorithms to choose from. */
typedef struct choosing {
    const wf_cuda_gemm_way *w;
    wf_cuda_algorithm found[WF_TUNE_MOST];
} choosing;

static int go(void *arg, unsigned i, const void *const tensors[], void *workspace,
              wf_cuda_stream *s)
{
    const choosing *c = arg;

    return multiply(c->w, &c->found[i], tensors[0], tensors[1], tensors[3],
                    (void *)(uintptr_t)tensors[2], workspace, s);
}

static wf_cuda_algorithm pick(const wf_cuda_gemm_way *w, choosing *c, int n)
{
    const wf_cuda_gemm *g = &w->g;
    const size_t tensors[] = {bytes_of(g, w->factors, g->m * g->k, g->strides[0]),
                              bytes_of(g, w->factors, g->k * g->n, g->strides[1]),
                              bytes_of(g, w->result, g->m * g->n, g->strides[2]),
                              (size_t)g->n * wf_dtype_size(w->result)};
    const described d = describe_case(w);
    const wf_tune_case of = {"cublasLt", w->gpu->calls->lt_version(), &d, sizeof d};
    wf_tune_candidates candidates = {
        .n = (unsigned)n, .n_tensors = WF_COUNT(tensors), .tensors = tensors, .go = go, .arg = c};

    for (int i = 0; i < n; i++) {
        memcpy(candidates.names[i].of, c->found[i].of, sizeof c->found[i].of);
        candidates.workspace = WF_MAX(candidates.workspace, c->found[i].workspace);
    }
    return c->found[wf_tune_pick(w->gpu->tuned, &of, &candidates)];
}

static int choose(wf_cuda_gemm_way *w, const wf_prep *prep)
{
    const int most = prep->untimed && !prep->takes_any ? 1 : WF_TUNE_MOST;
    choosing c = {.w = w};
    int n = 0, error = w->gpu->calls->choose(w->gpu->lt, w->product, w->b, w->a, w->c,
                                             MOST_WORKSPACE, w->g.aligned, most, c.found, &n);

    if (error != 0)
        return error;
    w->algorithm = prep->untimed ? c.found[0] : pick(w, &c, n);
    for (int i = 1; prep->takes_any && i < n; i++)
        w->algorithm.workspace = WF_MAX(w->algorithm.workspace, c.found[i].workspace);
    return 0;
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
    w->factors = g->factors == WF_NONE ? g->dtype : g->factors;
    w->result = g->result == WF_NONE ? g->dtype : g->result;
    w->compute = compute_of(w, prep);
    error = w->gpu->calls->use(w->gpu->index);
    NEXT(error, describe(w));
    NEXT(error, choose(w, prep));
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
    int error = w->gpu->calls->use(w->gpu->index);

    wf_tune_say(w->gpu->tuned);
    NEXT(error,
         multiply(w, &w->algorithm, a, b, row, c, run->workspace, wf_cuda_stream_of(run->stream)));
    return error == 0 ? WF_OK : wf_cuda_fail(w->gpu, error, err);
}
