/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/shape/attention.h - the extents of DotAttention and its gradient. */
#ifndef WF_KERNELS_SHAPE_ATTENTION_H
#define WF_KERNELS_SHAPE_ATTENTION_H

#include "common/kernels/kernel.h"

typedef struct wf_attention {
    int64_t heads, t, s, d, e; /* q [heads, t, d], k [heads, s, d], v [heads, s, e] */
    int64_t side;              /* heads whose rows lie side by side, so that q is [heads / side, t,
                                * side, d], and so on; or 1 */
    bool heads_last;           /* the axis `side` is there */
    bool trans_k;              /* k is [heads, d, s] */
    bool causal;               /* row i has columns 0 to i alone, and there is no mask */
    double scale, fill;        /* of scores; where a bool mask is true */
} wf_attention;

/* in: q, k, v. Errors: WF_SHAPE. */
WF_MUST_USE wf_status wf_attention_of(const wf_node *n, const wf_tensor *const in[],
                                      wf_attention *a, wf_err *err);

/* The shape [..., heads, t, s] of the scores of q, without elements. */
wf_tensor wf_attention_scores(const wf_attention *a, const wf_tensor *q);

/* The element at which a row of a head begins, in a tensor that has `rows` of each, `width` wide.
 */
static inline int64_t wf_attention_row(const wf_attention *a, int64_t head, int64_t row,
                                       int64_t rows, int64_t width)
{
    return ((head / a->side * rows + row) * a->side + head % a->side) * width;
}

#endif
