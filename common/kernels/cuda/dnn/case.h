/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/dnn/case.h - a convolution in cuDNN's terms: all that a choice of an engine
 * depends on, and nothing else, so that equal layers have equal cases. */
#ifndef WF_KERNELS_CUDA_DNN_CASE_H
#define WF_KERNELS_CUDA_DNN_CASE_H

#include "common/kernels/shape/convolution.h"

/* int64_t alone: without gaps, cases are compared as bytes. Of the spatial axes, the first `axes`
 * of each list are used, the others are 0. */
typedef struct wf_dnn_case {
    int64_t pass, dtype; /* wf_conv_pass, wf_dtype */
    int64_t bf16, tf32;  /* f32 factors may be rounded: to anything, to TF32 */
    int64_t adds_bias;   /* to the result of the pass, one number a channel */
    int64_t batch, groups, c, m, axes;
    int64_t in[WF_WINDOW_AXES], out[WF_WINDOW_AXES], kernel[WF_WINDOW_AXES];
    int64_t stride[WF_WINDOW_AXES], dilation[WF_WINDOW_AXES];
    int64_t before[WF_WINDOW_AXES], after[WF_WINDOW_AXES];
} wf_dnn_case;

/* False: cuDNN cannot be asked, since an extent is 0 or a padding would be negative. */
bool wf_dnn_case_of(const wf_convolution *v, wf_conv_pass pass, wf_dtype dtype, bool bf16,
                    bool tf32, bool adds_bias, wf_dnn_case *out);

#endif
