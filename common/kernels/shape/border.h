/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/shape/border.h - what Pad and CenterCropPad put around a tensor, or take off. */
#ifndef WF_KERNELS_SHAPE_BORDER_H
#define WF_KERNELS_SHAPE_BORDER_H

#include "common/base/status.h"
#include "common/graph/graph.h"
#include "common/tensor/tensor.h"
#include <stdint.h>

typedef enum wf_border_mode {
    WF_BORDER_CONSTANT,
    WF_BORDER_REFLECT,
    WF_BORDER_EDGE,
    WF_BORDER_WRAP
} wf_border_mode;

typedef struct wf_border {
    int64_t before[WF_MAX_RANK]; /* how much lies before each axis; below 0: is taken off */
    wf_border_mode mode;         /* what is put there */
} wf_border;

/* From a Pad's attributes and operands, for a tensor of so many axes; `axes` may be NULL.
 * Errors: WF_UNSUPPORTED when the content of the operands is not known. */
WF_MUST_USE wf_status wf_border_of(const wf_node *node, const wf_tensor *pads,
                                   const wf_tensor *axes, uint32_t rank, wf_border *b, wf_err *err);
/* CenterCropPad of `from` to the dims of `to`: both round the middle down, so that the smaller half
 * comes first. */
wf_border wf_border_centred(const wf_tensor *from, const wf_tensor *to);

#endif
