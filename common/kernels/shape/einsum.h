/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/shape/einsum.h - Einsum as one matrix product per batch.
 *
 * Each operand is packed, by one walk, into [batch, rows, inner, alone]: labels that both and the
 * result have, that it and the result have, that both have, and that it has alone; the last are
 * summed. Then come the products, and a walk that puts the axes of the result into its order. A
 * repeated label is a walk along a diagonal, and a broadcast axis one that does not move, so
 * neither needs code of its own.
 */
#ifndef WF_KERNELS_SHAPE_EINSUM_H
#define WF_KERNELS_SHAPE_EINSUM_H

#include "common/graph/einsum.h"
#include "common/kernels/kernel.h"
#include "common/kernels/shape/walk.h"

/* How an operand is packed: dims of the walk are those groups of labels, in this order. */
typedef struct wf_packing {
    wf_walk walk;
    int64_t elems, alone; /* after the sum; what is summed into each */
} wf_packing;

typedef struct wf_einsum_plan {
    uint32_t n_in;
    wf_packing in[WF_EINSUM_OPERANDS]; /* the right one is [batch, inner, rows, alone] */
    wf_walk result; /* over [batch, rows of 0, rows of 1]; operand 0 is the result */
    int64_t batch, m, n, k;
} wf_einsum_plan;

/* From a node and the shapes of its tensors. Errors: WF_UNSUPPORTED; what wf_einsum_parse says. */
WF_MUST_USE wf_status wf_einsum_plan_of(const wf_node *node, const wf_tensor *const in[],
                                        const wf_tensor *out, wf_einsum_plan *p, wf_err *err);

#endif
