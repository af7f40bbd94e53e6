/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/product/product_tiles.h - a matrix product whose factors are rounded to
 * bfloat16 on the way into tiles, or split into three pieces of it (split.h); sums and the result
 * are f32.
 *
 * Blocking follows Goto & van de Geijn (Anatomy of High-Performance Matrix Multiplication, TOMS
 * 2008): of the factor with more rows or columns a block stays in the second cache, of the other
 * one a panel in the first. Threads split the rows or columns of the result, and how k is cut is a
 * matter of the shape, so no sum depends on their number.
 */
#ifndef WF_KERNELS_CPU_PRODUCT_TILES_H
#define WF_KERNELS_CPU_PRODUCT_TILES_H

#include "common/kernels/cpu/product/blas.h"
#include "common/kernels/cpu/product/then.h"
#include "common/kernels/kernel.h"
#include <stddef.h>
#include <stdint.h>

typedef struct wf_product_tiles wf_product_tiles;

/* For p of f32, alpha 1 and beta 0 or 1, on a processor with tiles; what p points to need not be
 * set. Factors may be of bfloat16, and with beta 0 the result. `then`: of then.h, sums only where B
 * is rounded and not transposed. `split`: factors are f32 and are split, and the processor has AMX
 * (WF_TILES_AMX); else they are rounded. Asks `prep` for its workspace. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_product_tiles_prepare(wf_prep *prep, const wf_product *p, uint32_t then,
                                               bool split, wf_product_tiles **out, wf_err *err);
/* The bias is of f32. False: a factor has a value that cannot be split, and the result is of no
 * use. */
bool wf_product_tiles_go(const wf_product_tiles *v, const wf_run *run,
                         const wf_product_operands *of);

/* The same on the calling thread alone, which stands between wf_tiles_begin and wf_tiles_end, of
 * matrices whose rows lie apart, beta 0 or 1, for kernels that split their work themselves. Both
 * factors are packed for each call: `room` is the bytes that takes, aligned to 64. */
size_t wf_product_tiles_room(int64_t m, int64_t n, int64_t k);
void wf_product_tiles_strided(const wf_strided_product *p, void *room);

#endif
