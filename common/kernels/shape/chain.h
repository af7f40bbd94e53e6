/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/shape/chain.h - the program of a Chain node with how its inputs are spread over
 * the output. */
#ifndef WF_KERNELS_SHAPE_CHAIN_H
#define WF_KERNELS_SHAPE_CHAIN_H

#include "common/graph/chain.h"
#include "common/tensor/tensor.h"
#include <stdint.h>

typedef struct wf_chain_plan {
    wf_chain chain;
    uint32_t n_in;
    /* Output element i reads element i % period: all of them, a row of them, or 1. With a span, of
     * as many output elements as one period is repeated over, i / span * period + i % period. */
    int64_t periods[WF_CHAIN_INPUTS], spans[WF_CHAIN_INPUTS]; /* span 0: none */
} wf_chain_plan;

/* Errors: those of wf_chain_read; WF_UNSUPPORTED when an input is spread in another way. */
WF_MUST_USE wf_status wf_chain_plan_of(const wf_node *n, const wf_tensor *const in[],
                                       const wf_tensor *out, wf_chain_plan *p, wf_err *err);

#endif
