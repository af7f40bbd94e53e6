/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/product/product.c
 *
 * cuBLASLt's matrices are column-major: C is its n x m matrix, which is B' times A' there.
 *
 * A description is of one caller at a time, since the row's address is one of its attributes; so a
 * way is too, as a plan is.
 *
 * Sums of the rows of A are those of cuBLASLt's B, which has to be transposed for it, and sums of
 * the rows of B those of its A, which has not: it adds up along the columns of its matrices as they
 * lie, and has no algorithm for another layout. */
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
    bool apart;                   /* the sums are a kernel of their own */
    wf_cuda_product *products[2]; /* by `apart`: with all that was asked for; without the sums */
    wf_cuda_layout *a, *b, *c;
    wf_cuda_algorithm algorithm;
    size_t workspace;
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

static int describe_product(const wf_cuda_gemm_way *w, wf_cuda_sums sums, wf_cuda_product **out)
{
    static const uint32_t then_sums[] = {
        [WF_CUDA_SUMS_OF_A] = WF_CUDA_THEN_SUMS_OF_B, [WF_CUDA_SUMS_OF_B] = WF_CUDA_THEN_SUMS_OF_A};
    const wf_cuda_calls *calls = w->gpu->calls;
    const wf_cuda_gemm *g = &w->g;
    int32_t transposed = WF_CUDA_TRANSPOSED;
    uint32_t then =
        (g->adds_row ? WF_CUDA_THEN_BIAS : 0) | (g->cuts ? WF_CUDA_THEN_RELU : 0) | then_sums[sums];
    int error = calls->product_new(out, w->compute, type_of(g->dtype));

    if (g->trans_b)
        NEXT(error, calls->product_set(*out, WF_CUDA_TRANSPOSE_A, &transposed, sizeof transposed));
    if (g->trans_a)
        NEXT(error, calls->product_set(*out, WF_CUDA_TRANSPOSE_B, &transposed, sizeof transposed));
    if (then)
        NEXT(error, calls->product_set(*out, WF_CUDA_EPILOGUE, &then, sizeof then));
    return error;
}

static int describe(wf_cuda_gemm_way *w)
{
    const wf_cuda_gemm *g = &w->g;
    int error = describe_product(w, g->sums, &w->products[0]);

    if (g->sums != WF_CUDA_NO_SUMS)
        NEXT(error, describe_product(w, WF_CUDA_NO_SUMS, &w->products[1]));
    NEXT(error, add_layout(w, w->factors, g->trans_b ? g->n : g->k, g->trans_b ? g->k : g->n,
                           g->strides[1], &w->b));
    NEXT(error, add_layout(w, w->factors, g->trans_a ? g->k : g->m, g->trans_a ? g->m : g->k,
                           g->strides[0], &w->a));
    NEXT(error, add_layout(w, w->result, g->m, g->n, g->strides[2], &w->c));
    return error;
}

/* All that an algorithm depends on. */
typedef struct described {
    int64_t dtype, factors, result, compute, trans_a, trans_b, adds_row, cuts, adds_to, sums;
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
                       .sums = g->sums,
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

/* Where an algorithm works: memory of the device. */
typedef struct operands {
    const void *a, *b;
    const void *row; /* that is added; or the sums, which are written */
    void *c, *workspace;
} operands;

static int multiply(const wf_cuda_gemm_way *w, const wf_cuda_algorithm *by, bool apart,
                    const operands *o, wf_cuda_stream *s)
{
    const wf_cuda_calls *calls = w->gpu->calls;
    wf_cuda_product *product = w->products[apart];
    float alpha = (float)w->g.alpha, beta = (float)w->g.beta;
    bool is_f32 = w->g.dtype == WF_F32;
    int error = 0;

    if (w->g.adds_row || (w->g.sums != WF_CUDA_NO_SUMS && !apart))
        NEXT(error, calls->product_set(product, WF_CUDA_BIAS, &o->row, sizeof o->row));
    NEXT(error, calls->multiply(
                    w->gpu->lt, product, is_f32 ? (const void *)&alpha : (const void *)&w->g.alpha,
                    o->b, w->b, o->a, w->a, is_f32 ? (const void *)&beta : (const void *)&w->g.beta,
                    o->c, w->c, by, o->workspace, s));
    return error;
}

/* The sums in a kernel of their own; they are in o->row. */
static wf_status sum_apart(const wf_cuda_gemm_way *w, const wf_run *run, const operands *o,
                           wf_err *err)
{
    const wf_cuda_sum *sum = &w->g.sum;

    return sum->run(sum->arg, run, w->g.sums == WF_CUDA_SUMS_OF_A ? o->a : o->b,
                    (void *)(uintptr_t)o->row, o->workspace, err);
}

/* ---- algorithms ---- */

/* Algorithms to choose from. */
typedef struct choosing {
    const wf_cuda_gemm_way *w;
    const wf_prep *prep;
    int n;
    wf_cuda_algorithm found[WF_TUNE_RACE];
    bool apart[WF_TUNE_RACE]; /* the sums are a kernel of their own */
} choosing;

static int go(void *arg, unsigned i, const void *const tensors[], void *workspace,
              wf_cuda_stream *s)
{
    const choosing *c = arg;
    const operands o = {tensors[0], tensors[1], tensors[3], (void *)(uintptr_t)tensors[2],
                        workspace};
    wf_cuda_lane lane = {.base = {.device = c->prep->device}, .of = s};
    const wf_run run = {.node = c->prep->node, .device = c->prep->device, .stream = &lane.base};
    int error = multiply(c->w, &c->found[i], c->apart[i], &o, s);
    wf_err err;

    if (error == 0 && c->apart[i] && sum_apart(c->w, &run, &o, &err) != WF_OK)
        error = WF_CUDA_NO_ALGORITHM; /* whatever it is: this one cannot be queued */
    return error;
}

/* What the product and the kernel behind it take, one after the other. */
static size_t workspace_of(const choosing *c, int i)
{
    return WF_MAX(c->found[i].workspace, c->apart[i] ? c->w->g.sum.room : 0);
}

static int pick(const choosing *c)
{
    const wf_cuda_gemm_way *w = c->w;
    const wf_cuda_gemm *g = &w->g;
    const int64_t row = g->sums == WF_CUDA_SUMS_OF_A ? g->m : g->n;
    const size_t tensors[] = {bytes_of(g, w->factors, g->m * g->k, g->strides[0]),
                              bytes_of(g, w->factors, g->k * g->n, g->strides[1]),
                              bytes_of(g, w->result, g->m * g->n, g->strides[2]),
                              (size_t)row * wf_dtype_size(w->result)};
    const described d = describe_case(w);
    const wf_tune_case of = {"cublasLt", w->gpu->calls->lt_version(), &d, sizeof d};
    wf_tune_candidates candidates = {.n = (unsigned)c->n,
                                     .n_tensors = WF_COUNT(tensors),
                                     .tensors = tensors,
                                     .go = go,
                                     .arg = (void *)(uintptr_t)c};

    for (int i = 0; i < c->n; i++) {
        memcpy(candidates.names[i].of, c->found[i].of, sizeof c->found[i].of);
        candidates.names[i].way[0] = c->apart[i];
        candidates.workspace = WF_MAX(candidates.workspace, workspace_of(c, i));
    }
    return (int)wf_tune_pick(w->gpu->tuned, &of, &candidates);
}

/* Asks for `most` more algorithms; none is no error where others may be found. */
static int ask(choosing *c, bool apart, int most)
{
    const wf_cuda_gemm_way *w = c->w;
    int n = 0,
        error = w->gpu->calls->choose(w->gpu->lt, w->products[apart], w->b, w->a, w->c,
                                      MOST_WORKSPACE, w->g.aligned, most, c->found + c->n, &n);

    if (error == WF_CUDA_NO_ALGORITHM && w->g.sums != WF_CUDA_NO_SUMS && !apart)
        return 0;
    for (int i = 0; i < n && error == 0; i++)
        c->apart[c->n++] = apart;
    return error;
}

static int choose(wf_cuda_gemm_way *w, const wf_prep *prep)
{
    const bool takes_first = prep->untimed && !prep->takes_any;
    const int most = takes_first ? 1 : WF_TUNE_MOST;
    choosing c = {.w = w, .prep = prep};
    int error = ask(&c, false, most), picked = 0;

    if (w->g.sums != WF_CUDA_NO_SUMS && !(takes_first && c.n > 0))
        NEXT(error, ask(&c, true, most));
    if (error != 0)
        return error;
    if (!prep->untimed)
        picked = pick(&c);
    w->algorithm = c.found[picked];
    w->apart = c.apart[picked];
    w->workspace = workspace_of(&c, picked);
    for (int i = 0; prep->takes_any && i < c.n; i++)
        w->workspace = WF_MAX(w->workspace, workspace_of(&c, i));
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
    prep->workspace_bytes = w->workspace;
    *out = w;
    return WF_OK;
}

void wf_cuda_gemm_free(wf_cuda_gemm_way *w)
{
    const wf_cuda_calls *calls = w ? w->gpu->calls : NULL;

    if (!w)
        return;
    for (size_t i = 0; i < WF_COUNT(w->products); i++)
        if (w->products[i])
            (void)calls->product_free(w->products[i]);
    if (w->a)
        (void)calls->layout_free(w->a);
    if (w->b)
        (void)calls->layout_free(w->b);
    if (w->c)
        (void)calls->layout_free(w->c);
    free(w);
}

static wf_status queue(const wf_cuda_gemm_way *w, const wf_run *run, const operands *o, wf_err *err)
{
    int error = w->gpu->calls->use(w->gpu->index);

    wf_tune_say(w->gpu->tuned);
    NEXT(error, multiply(w, &w->algorithm, w->apart, o, wf_cuda_stream_of(run->stream)));
    return error == 0 ? WF_OK : wf_cuda_fail(w->gpu, error, err);
}

wf_status wf_cuda_gemm_go(const wf_cuda_gemm_way *w, const wf_run *run, const void *a,
                          const void *b, const void *row, void *c, wf_err *err)
{
    const operands o = {a, b, row, c, run->workspace};

    wf_assert(w->g.sums == WF_CUDA_NO_SUMS);
    return queue(w, run, &o, err);
}

wf_status wf_cuda_gemm_go_sums(const wf_cuda_gemm_way *w, const wf_run *run, const void *a,
                               const void *b, void *sums, void *c, wf_err *err)
{
    const operands o = {a, b, sums, c, run->workspace};

    wf_assert(w->g.sums != WF_CUDA_NO_SUMS);
    WF_TRY(queue(w, run, &o, err));
    return w->apart ? sum_apart(w, run, &o, err) : WF_OK;
}
