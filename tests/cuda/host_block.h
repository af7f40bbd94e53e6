/* SPDX-License-Identifier: Apache-2.0 */
/* tests/cuda/host_block.h - the threads of a kernel's block on the host; for the files beside it
 * alone. */
#ifndef TESTS_CUDA_HOST_BLOCK_H
#define TESTS_CUDA_HOST_BLOCK_H

#include "common/base/rng.h"
#include "common/kernels/cuda/calls.h"

/* Runs all threads of one block: one after the other, or, if they meet, in turns that are random
 * where meetings allow it. */
void host_block_run(const wf_cuda_function *f, wf_cuda_dim grid, wf_cuda_dim block, wf_cuda_dim at,
                    void *const args[], wf_rng_key seed);

#endif
