/* SPDX-License-Identifier: Apache-2.0 */
/* tests/cuda/chain_case.h - chains for tests of their compilation. */
#ifndef TESTS_CUDA_CHAIN_CASE_H
#define TESTS_CUDA_CHAIN_CASE_H

#include "common/kernels/cuda/compile/source.h"

enum { CHAIN_CASES = 4 };

/* A chain with how its inputs are spread over n elements. */
typedef struct chain_case {
    wf_chain_plan plan;
    wf_cuda_chain_types types;
    wf_dtype dtype; /* that it is computed in */
    int64_t n;
} chain_case;

/* One that loads 4 elements at once, with all inputs whole; one of single elements with an input
 * that is repeated and one of 1 element; one of more elements than 32 bits count; one with an
 * input of which parts are repeated. */
chain_case chain_case_at(int i);
/* All operations as steps, of two inputs: an input of n elements, and one of `period`. */
chain_case chain_case_of_all(wf_dtype dtype, int64_t n, int64_t period);
/* The same in float32, where bit i of `narrow` makes input i of that type, and the bit behind
 * the inputs the output. */
chain_case chain_case_narrow(wf_dtype type, uint32_t narrow, int64_t n, int64_t period);
/* Products of as many numbers of that type as it has, and a few of float32. */
chain_case chain_case_of_halves(wf_dtype type);

#endif
