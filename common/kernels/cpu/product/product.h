/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/product/product.h - a matrix product prepared for one shape: what computes it,
 * and how it is cut over the pool's threads.
 *
 * The choice is a function of shape, number of threads and processor alone, so that two runs of a
 * job on one machine give the same bits. bench/gemm.c measures what it rests on.
 */
#ifndef WF_KERNELS_CPU_PRODUCT_H
#define WF_KERNELS_CPU_PRODUCT_H

#include "common/kernels/cpu/product/blas.h"
#include "common/kernels/kernel.h"

typedef struct wf_product_way wf_product_way;

/* A way to compute `p`, whose a, b and c need not be set, in prep's arena; asks `prep` for its
 * workspace. Where p has something of bfloat16 that it would not round: sets prep->widens. What
 * follows the product, none or several of: a row vector is added, and then beta must be 0; negative
 * results are cut to 0; the rows of B are added up where they are read anyway (wf_product_sums_b).
 * Errors: WF_NOMEM. */
enum { WF_PRODUCT_BIAS = 1, WF_PRODUCT_RELU = 2, WF_PRODUCT_SUMS_B = 4 };
WF_MUST_USE wf_status wf_product_prepare(wf_prep *prep, const wf_product *p, uint32_t then,
                                         wf_product_way **out, wf_err *err);
/* bias [n], when it was asked for. */
void wf_product_go(const wf_product_way *w, const wf_run *run, const void *a, const void *b,
                   const void *bias, void *c);

/* Whether the way was asked for the sums of B's rows, and gives them. */
bool wf_product_sums_b(const wf_product_way *w);
/* The same with these sums [n], which have the bits of ReduceSum. */
void wf_product_go_sums(const wf_product_way *w, const wf_run *run, const void *a, const void *b,
                        void *c, float *sums);

/* Sets p's dtype and what of it is of bfloat16 from the tensors. */
static inline void wf_product_types(wf_product *p, const wf_tensor *a, const wf_tensor *b,
                                    const wf_tensor *c)
{
    p->a_is_bf16 = a->dtype == WF_BF16;
    p->b_is_bf16 = b->dtype == WF_BF16;
    p->c_is_bf16 = c->dtype == WF_BF16;
    p->dtype = p->a_is_bf16 || p->b_is_bf16 || p->c_is_bf16 ? WF_F32 : c->dtype;
}

#endif
