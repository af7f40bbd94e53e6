/* SPDX-License-Identifier: Apache-2.0 */
/* tests/cuda/host_blas.h - cuBLASLt's part of host.h's table, computed plainly in double; for the
 * files beside it alone.
 *
 * What the documentation asks for is checked when a product is queued: that types agree, that the
 * extents of transposed operands fit, leading dimensions, the place and alignment of each matrix
 * with all of its batch, the bias that an epilogue needs or the sums that it writes, which
 * epilogues there are, the workspace. A mistake ends the program, and is named. The heuristic names
 * three algorithms, which differ in what they take of time and workspace. For sums of rows it names
 * none where cuBLASLt 13.0 has none: A has to be as it lies for those of A, and B transposed for
 * those of B.
 */
#ifndef TESTS_CUDA_HOST_BLAS_H
#define TESTS_CUDA_HOST_BLAS_H

#include "common/kernels/cuda/calls.h"
#include <stddef.h>

int host_lt_new(wf_cuda_lt **out);
int host_lt_free(wf_cuda_lt *lt);
int host_product_new(wf_cuda_product **out, int compute, int scale);
int host_product_set(wf_cuda_product *p, int attribute, const void *value, size_t bytes);
int host_product_free(wf_cuda_product *p);
int host_layout_new(wf_cuda_layout **out, int type, uint64_t rows, uint64_t columns, int64_t ld);
int host_layout_set(wf_cuda_layout *l, int attribute, const void *value, size_t bytes);
int host_layout_free(wf_cuda_layout *l);
int host_choose(wf_cuda_lt *lt, wf_cuda_product *p, wf_cuda_layout *a, wf_cuda_layout *b,
                wf_cuda_layout *c, size_t workspace, uint32_t aligned, int most,
                wf_cuda_algorithm out[], int *n);
uint64_t host_lt_version(void);

/* A product with all that it was called with. */
typedef struct host_multiplication host_multiplication;
/* In the lock: checked; the caller frees it. NULL without memory. */
host_multiplication *host_multiplication_new(const wf_cuda_product *p, const void *alpha,
                                             const void *a, const wf_cuda_layout *of_a,
                                             const void *b, const wf_cuda_layout *of_b,
                                             const void *beta, void *c, const wf_cuda_layout *of_c,
                                             const wf_cuda_algorithm *algorithm, void *workspace);
void host_multiplication_do(const host_multiplication *m);
/* What its algorithm takes for it, on a stream's clock. */
double host_multiplication_ms(const host_multiplication *m);
/* Objects that have not been freed. */
size_t host_blas_objects(void);

#endif
