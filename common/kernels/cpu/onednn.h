/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/onednn.h - matrix products through oneDNN, which bench/gemm.c sets beside
 * weft's own; and what its convolutions share.
 *
 * Each call runs on the calling thread alone; kernels split their work over weft's pool. What is
 * made here is made once per shape, in `prepare`.
 */
#ifndef WF_KERNELS_CPU_ONEDNN_H
#define WF_KERNELS_CPU_ONEDNN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dnnl_engine;
/* The one engine, or NULL when there is none. */
struct dnnl_engine *wf_onednn_engine(void);
/* Keeps oneDNN on the calling thread: it would start a team of its own in each of ours. */
void wf_onednn_stay(void);

/* Whether this processor has the vector units that oneDNN's matrix products are written for. */
bool wf_onednn_has_f32(void); /* AVX-512 */

/* C = A' B' + beta C, or with a row vector added to each row, and negative results cut to 0. */
typedef struct wf_onednn_shape {
    bool trans_a, trans_b;
    int64_t m, n, k;
    int64_t lda, ldb, ldc; /* elements from row to row, as stored */
    bool add;              /* beta 1, or 0 */
    bool bias;             /* [n] */
    bool relu;
} wf_onednn_shape;

typedef struct wf_onednn_product wf_onednn_product;

/* NULL when oneDNN has no fast way for it, or no memory: the caller then takes another way. */
wf_onednn_product *wf_onednn_product_new(const wf_onednn_shape *s);
void wf_onednn_product_free(wf_onednn_product *p);
/* What a run wants besides; aligned to 64. */
size_t wf_onednn_product_workspace(const wf_onednn_product *p);
/* One thread at a time for one product; bias NULL without one. */
void wf_onednn_product_run(wf_onednn_product *p, const void *a, const void *b, const float *bias,
                           float *c, void *workspace);

#endif
