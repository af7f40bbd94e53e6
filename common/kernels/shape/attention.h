/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/shape/attention.h - the extents of DotAttention and its gradient. */
#ifndef WF_KERNELS_SHAPE_ATTENTION_H
#define WF_KERNELS_SHAPE_ATTENTION_H

#include "common/kernels/kernel.h"

typedef struct wf_attention {
    int64_t heads, t, s, d, e; /* q [heads, t, d], k [heads, s, d], v [heads, s, e] */
    bool trans_k;              /* k is [heads, d, s] */
    bool causal;               /* row i has columns 0 to i alone, and there is no mask */
    double scale, fill;        /* of scores; where a bool mask is true */
} wf_attention;

/* in: q, k, v. Errors: WF_SHAPE. */
WF_MUST_USE wf_status wf_attention_of(const wf_node *n, const wf_tensor *const in[],
                                      wf_attention *a, wf_err *err);

#endif
