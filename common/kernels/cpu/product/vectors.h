/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/product/vectors.h - f32 products of a matrix and a vector, and of two vectors:
 * each element of the matrix is read or written once, where a library copies it first (bench/gemm.c
 * does not measure these: memory bounds them).
 *
 *     [m, k] [k, 1]      k terms for each row
 *     [k, m]' [k, 1]     rows added up, weighted
 *     [m, 1] [1, n]      all pairs
 *
 * The same bits from any number of threads: they share the elements of C.
 */
#ifndef WF_KERNELS_CPU_VECTORS_H
#define WF_KERNELS_CPU_VECTORS_H

#include "common/kernels/cpu/product/blas.h"
#include <stdbool.h>

/* Whether p is one of these: f32, alpha 1 and beta 0 or 1. */
bool wf_vectors_fit(const wf_product *p);
/* C = A' B' + beta C (+ bias [n], or NULL), negative results cut to 0 with `relu`; a NaN stays. */
void wf_vectors_run(const wf_product *p, const float *bias, bool relu, wf_pool *pool);

#endif
