/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/einsum.h - the equation of Einsum, read: which axes of operands and result are one.
 *
 * A label stands for an axis: a letter, or one of the axes that "..." covers, which are matched
 * from the last. Labels are numbered from 0; a label may name several axes of one operand (its
 * diagonal), and an operand's axis of size 1 is broadcast.
 */
#ifndef WF_GRAPH_EINSUM_H
#define WF_GRAPH_EINSUM_H

#include "common/base/status.h"
#include "common/tensor/tensor.h"
#include <stdint.h>

enum { WF_EINSUM_OPERANDS = 2, WF_EINSUM_LABELS = 3 * WF_MAX_RANK };

/* The axes of an operand, or of the result. */
typedef struct wf_einsum_term {
    uint32_t rank;
    uint8_t label[WF_MAX_RANK];
} wf_einsum_term;

typedef struct wf_einsum {
    uint32_t n_in, n_labels;
    wf_einsum_term in[WF_EINSUM_OPERANDS], out;
} wf_einsum;

/* Reads an equation for n_in operands of those ranks. Errors: WF_SHAPE for one that is no equation
 * or does not fit the ranks; WF_UNSUPPORTED for more than two operands or WF_MAX_RANK axes. */
WF_MUST_USE wf_status wf_einsum_parse(const char *equation, uint32_t n_in, const uint32_t ranks[],
                                      wf_einsum *out, wf_err *err);

#endif
