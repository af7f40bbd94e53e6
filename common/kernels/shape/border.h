/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/shape/border.h - what Pad and CenterCropPad put around a tensor, or take off. */
#ifndef WF_KERNELS_SHAPE_BORDER_H
#define WF_KERNELS_SHAPE_BORDER_H

#include "common/base/cc.h"
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

/* The remainder that is never negative. */
WF_ALSO_GPU static inline int64_t wf_modulo(int64_t a, int64_t n)
{
    return (a % n + n) % n;
}

/* Where index i of an axis with its border lies in the `size` elements within; -1: it holds the
 * filler. */
WF_ALSO_GPU static inline int64_t wf_border_place(const wf_border *b, uint32_t axis, int64_t i,
                                                  int64_t size)
{
    const int64_t before = b->before[axis];
    /* Cropped by more than any axis has, it is behind the end. */
    int64_t at = before < 0 && i > INT64_MAX + before ? INT64_MAX : i - before;

    if (at >= 0 && at < size)
        return at;
    switch (b->mode) {
    case WF_BORDER_EDGE:
        return at < 0 ? 0 : size - 1;
    case WF_BORDER_WRAP:
        return wf_modulo(at, size);
    case WF_BORDER_REFLECT:
        /* There and back, without the ends twice; a single element is its own mirror image. */
        at = size > 1 ? wf_modulo(at, 2 * (size - 1)) : 0;
        return at < size ? at : 2 * (size - 1) - at;
    case WF_BORDER_CONSTANT:
        break;
    }
    return -1;
}

#endif
