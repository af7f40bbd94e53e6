/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/compile/source.h - the CUDA C++ of a chain.
 *
 * The text depends on the steps, the dtypes and how inputs are spread, and not on extents: batches
 * of different sizes share their code. The same chain gives the same bytes.
 */
#ifndef WF_KERNELS_CUDA_SOURCE_H
#define WF_KERNELS_CUDA_SOURCE_H

#include "common/base/bytes.h"
#include "common/kernels/shape/chain.h"

/* The kernel of a source: void(const wf_chain_operands), see steps.h. */
#define WF_CUDA_CHAIN_KERNEL "wf_chain"

/* How the kernel goes through n elements. */
typedef struct wf_cuda_chain_way {
    bool fours; /* a thread takes 4 neighbouring elements: operands are aligned to 16 bytes */
    bool wide;  /* indices have 64 bits */
} wf_cuda_chain_way;

/* The types of a chain: all F32 or all F64, or F32, bfloat16 and float16, in any mixture; computed
 * in F32. */
typedef struct wf_cuda_chain_types {
    wf_dtype in[WF_CHAIN_INPUTS], out;
} wf_cuda_chain_types;

wf_cuda_chain_way wf_cuda_chain_way_of(const wf_chain_plan *p, int64_t n);
/* Whether there is a source for them. */
bool wf_cuda_chain_has_types(const wf_chain_plan *p, const wf_cuda_chain_types *types);
/* Appends the source to *out; n > 0 elements. The caller checks *out. */
void wf_cuda_chain_source(const wf_chain_plan *p, int64_t n, const wf_cuda_chain_types *types,
                          wf_bytes *out);

#endif
