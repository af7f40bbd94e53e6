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
#include "common/kernels/cpu/product/then.h"
#include "common/kernels/kernel.h"

typedef struct wf_product_way wf_product_way;

/* A way to compute `p`, whose a, b and c need not be set, and what follows it (then.h; sums of B:
 * wf_product_sums_b), in prep's arena; asks `prep` for its workspace. Where p has something of
 * bfloat16 that it would not round: sets prep->widens. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_product_prepare(wf_prep *prep, const wf_product *p, uint32_t then,
                                         wf_product_way **out, wf_err *err);
void wf_product_go(const wf_product_way *w, const wf_run *run, const wf_product_operands *of);

/* Whether the way was asked for the sums of B's rows, and gives them: where factors are rounded
 * they are added up in float32, else they have the bits of ReduceSum. */
bool wf_product_sums_b(const wf_product_way *w);

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
