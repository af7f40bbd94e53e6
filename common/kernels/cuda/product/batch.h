/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/product/batch.h - products of matrices that lie one behind the other, of any
 * extents: what has no elements is not made, and where there is nothing to add up zeros are. */
#ifndef WF_KERNELS_CUDA_BATCH_H
#define WF_KERNELS_CUDA_BATCH_H

#include "common/kernels/cuda/memory.h"
extern "C" {
#include "common/kernels/cuda/product/product.h"
}

/* C = alpha A' B' for each of `batch`: C is [batch, m, n]. */
struct wf_batch {
    wf_dtype dtype;
    bool trans_a, trans_b;
    int64_t batch, m, n, k;
    double alpha;
    wf_cuda_gemm_way *way; /* NULL: m, n, k or the batch is 0 */
};

/* Plans b, of which all but the way is set; the products of a plan share the front of its
 * workspace, which is asked for here, before any piece of it is taken. Call wf_batch_free. Errors:
 * WF_UNSUPPORTED; what wf_cuda_gemm_new says. */
static inline wf_status wf_batch_new(wf_prep *prep, wf_batch *b, wf_err *err)
{
    const uint64_t size = wf_dtype_size(b->dtype);
    const size_t before = prep->workspace_bytes;
    wf_cuda_gemm g = {};
    uint64_t bits = WF_ALIGNED;

    if (b->batch == 0 || b->m == 0 || b->n == 0 || b->k == 0)
        return WF_OK;
    if (WF_MAX(WF_MAX(b->batch, b->m), WF_MAX(b->n, b->k)) > INT32_MAX)
        return wf_fail(err, WF_UNSUPPORTED, NULL, "its parts are larger than weft multiplies");
    g.dtype = b->dtype;
    g.trans_a = b->trans_a;
    g.trans_b = b->trans_b;
    g.m = b->m;
    g.n = b->n;
    g.k = b->k;
    g.alpha = b->alpha;
    g.batch = b->batch;
    g.strides[0] = b->m * b->k;
    g.strides[1] = b->k * b->n;
    g.strides[2] = b->m * b->n;
    for (int64_t stride : g.strides)
        bits |= (uint64_t)stride * size;
    g.aligned = (uint32_t)(bits & -bits); /* the lowest one: where a matrix may begin */
    WF_TRY(wf_cuda_gemm_new(prep, &g, &b->way, err));
    prep->workspace_bytes = WF_MAX(prep->workspace_bytes, before);
    return WF_OK;
}

static inline void wf_batch_free(wf_batch *b)
{
    wf_cuda_gemm_free(b->way);
}

/* Queues it. */
static inline wf_status wf_batch_go(const wf_batch *b, const wf_run *run, const void *x,
                                    const void *y, void *to, wf_err *err)
{
    size_t bytes = (size_t)(b->batch * b->m * b->n) * wf_dtype_size(b->dtype);

    if (b->way)
        return wf_cuda_gemm_go(b->way, run, x, y, NULL, to, err);
    return bytes ? wf_stream_fill(run->stream, to, 0, bytes, err) : WF_OK;
}

#endif
