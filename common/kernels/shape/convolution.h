/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/shape/convolution.h - the geometry of a convolution.
 *
 * Conv, ConvTranspose and their gradients are three computations on one geometry, from images x
 * [batch, groups c, in...] through weights w [groups m, c, taps...] to maps y
 * [batch, groups m, out...]:
 *
 *   forward   y = w * x     Conv, ConvTransposeDataGrad
 *   data      x from y, w   ConvDataGrad, ConvTranspose
 *   weights   w from x, y   ConvWeightGrad, ConvTransposeWeightGrad
 */
#ifndef WF_KERNELS_SHAPE_CONVOLUTION_H
#define WF_KERNELS_SHAPE_CONVOLUTION_H

#include "common/kernels/shape/spatial.h"

typedef enum wf_conv_pass {
    WF_CONV_FORWARD, /* maps from images and weights */
    WF_CONV_DATA,    /* images from maps and weights */
    WF_CONV_WEIGHTS  /* weights from images and maps */
} wf_conv_pass;

typedef struct wf_convolution {
    wf_spatial s;
    int64_t batch, groups;
    int64_t c, m; /* channels and maps of one group */
} wf_convolution;

/* From a node of Conv or (transposed) ConvTranspose or their gradients. Errors: WF_SHAPE; what
 * wf_spatial_of says. */
WF_MUST_USE wf_status wf_convolution_of(const wf_node *n, const wf_tensor *x, const wf_tensor *w,
                                        const wf_tensor *y, bool transposed, wf_convolution *v,
                                        wf_err *err);

#endif
