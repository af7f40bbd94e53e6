/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/product/packed.h - thin products by one matrix that is used many times: a few
 * rows by B at each step of a sequence. B is put once per run into the order that the inner loop
 * reads: without that each of the products would do so again (bench/gemm.c: lstm step).
 *
 * Rows are cut into parts; parts run on any thread, several at a time.
 */
#ifndef WF_KERNELS_CPU_PACKED_H
#define WF_KERNELS_CPU_PACKED_H

#include "common/kernels/cpu/product/blas.h"
#include "common/kernels/kernel.h"

typedef struct wf_packed wf_packed;

/* Products of `p->m` rows in parts of `share`; a, b and c need not be set, beta is 0. With `bias` a
 * row vector is added. Takes its workspace behind what `prep` says now, so that others must not
 * begin at 0 later. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_packed_prepare(wf_prep *prep, const wf_strided_product *p, int64_t share,
                                        bool bias, wf_packed **out, wf_err *err);
/* Reads B into the workspace of the run. */
void wf_packed_load(const wf_packed *w, const wf_run *run, const void *b);
/* C = A' B' (+ bias [n], when it was asked for) of one part, on the calling thread; a and c begin
 * at its first row. B as it was loaded, and still there. */
void wf_packed_go(const wf_packed *w, const wf_run *run, int64_t part, const void *a, const void *b,
                  const void *bias, void *c);

#endif
