/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/product/gemm_avx512.h - matrix products of f32 on AVX-512: C = A' B', added to
 * C or not, with a row vector added and negative results cut to 0 on the way to memory.
 *
 * The loops are those of Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication"
 * (ACM TOMS 34(3), 2008), seen from row-major storage, with the inner kernel apart as in Van Zee
 * and van de Geijn, "BLIS" (ACM TOMS 41(3), 2015):
 *
 *     blocks of columns of C      as much of B as stays in the second cache
 *       blocks of k               B is packed: panels of 32 columns, row after row
 *         panels of 14 rows of C  A is read where it lies; packed, [k, 14], if it is transposed
 *           panels of B           14 x 32 sums in 28 registers, over all k of the block
 *
 * B is read where it lies when few rows use it and it need not be transposed. A is packed too when
 * its rows are so far apart that they would drive each other out of the cache.
 *
 * Each element of C is one sum in the order of k, in blocks that follow from k alone: the same bits
 * however C is cut into calls, so callers may cut it for their threads as they like.
 */
#ifndef WF_KERNELS_CPU_GEMM_AVX512_H
#define WF_KERNELS_CPU_GEMM_AVX512_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether this processor has it; nothing below may be called otherwise. */
bool wf_gemm_is_here(void);

/* C [m, n] = A' [m, k] B' [k, n], with the distances of rows as stored. */
typedef struct wf_gemm {
    bool trans_a, trans_b;
    int64_t m, n, k;
    int64_t lda, ldb, ldc;
    bool add; /* to what C holds */
    bool relu;
    double *sums; /* [n], or NULL: gets the sum of the rows of B, which is not transposed, in their
                     order; not by wf_gemm_go_packed */
} wf_gemm;

/* How many blocks of k the sums of a product are made in, each of *block but for the last: the sum
 * of each block by itself, all added in their order, has the same bits. */
int64_t wf_gemm_blocks(int64_t k, int64_t *block);
/* What a call of wf_gemm_go wants besides, aligned to 64. It is enough for every product of no more
 * rows, columns and k that lies likewise. */
size_t wf_gemm_room(const wf_gemm *g);
/* On the calling thread. bias [n] or NULL. */
void wf_gemm_go(const wf_gemm *g, const float *a, const float *b, const float *bias, float *c,
                void *room);

/* B packed once, for several products of its n and k: how many floats it takes, and B put there,
 * aligned to 64; ldb and trans_b say how it lies. */
size_t wf_gemm_packed_floats(int64_t n, int64_t k);
void wf_gemm_pack(const wf_gemm *g, const float *b, float *to);
/* wf_gemm_go by a B that was packed; wants wf_gemm_packed_room besides. */
size_t wf_gemm_packed_room(const wf_gemm *g);
void wf_gemm_go_packed(const wf_gemm *g, const float *a, const float *packed, const float *bias,
                       float *c, void *room);

#endif
