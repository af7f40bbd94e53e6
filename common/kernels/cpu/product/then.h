/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/product/then.h - what follows a product while its result is at hand, and the
 * operands that all of it has. */
#ifndef WF_KERNELS_CPU_PRODUCT_THEN_H
#define WF_KERNELS_CPU_PRODUCT_THEN_H

/* None or several of: a row vector is added, and then beta must be 0; negative results are cut to
 * 0; those are cut to 0 where y is not above 0, the last of all (ReluGrad); the rows of B are added
 * up where they are read anyway. */
enum { WF_PRODUCT_BIAS = 1, WF_PRODUCT_RELU = 2, WF_PRODUCT_RELU_GRAD = 4, WF_PRODUCT_SUMS_B = 8 };

typedef struct wf_product_operands {
    const void *a, *b;
    const void *bias; /* [n], when it was asked for */
    const void *y;    /* [m, n], likewise */
    void *c;
    float *sums; /* [n], likewise */
} wf_product_operands;

#endif
