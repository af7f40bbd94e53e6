/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/shape/pooling.h - what a pooling does with its window, whatever it makes of the
 * elements. A plane is one channel of one image. */
#ifndef WF_KERNELS_SHAPE_POOLING_H
#define WF_KERNELS_SHAPE_POOLING_H

#include "common/kernels/shape/spatial.h"

typedef struct wf_pooling {
    wf_spatial s;
    int64_t planes;
    bool by_columns; /* storage_order 1, of MaxPool's indices */
    bool whole;      /* one output, of the whole plane, which is not empty */
    bool pads;       /* AveragePool counts the padding */
    double p;        /* of LpPool */
} wf_pooling;

/* From data x and result y. Errors: WF_SHAPE, WF_INVALID; what wf_spatial_of says. */
WF_MUST_USE wf_status wf_pooling_of(const wf_node *n, const wf_tensor *x, const wf_tensor *y,
                                    wf_pooling *v, wf_err *err);
/* The same of its gradient. in: dy, x, (y). */
WF_MUST_USE wf_status wf_pooling_grad_of(const wf_node *n, const wf_tensor *const in[],
                                         wf_pooling *v, wf_err *err);

#endif
