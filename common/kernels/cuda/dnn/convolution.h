/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/dnn/convolution.h - a convolution in cuDNN's terms: all that a choice of an
 * engine depends on, and nothing else, so that equal layers have equal cases. Its graph is the
 * convolution, and the bias behind it. */
#ifndef WF_KERNELS_CUDA_DNN_CONVOLUTION_H
#define WF_KERNELS_CUDA_DNN_CONVOLUTION_H

#include "common/kernels/cuda/dnn/graph.h"
#include "common/kernels/shape/convolution.h"

/* The tensors. The last is memory of the caller's where the case adds a bias. */
enum { WF_DNN_X, WF_DNN_W, WF_DNN_Y, WF_DNN_BIAS, WF_DNN_TENSORS };

/* int64_t alone: without gaps, cases are compared as bytes. Of the spatial axes, the first `axes`
 * of each list are used, the others are 0. */
typedef struct wf_dnn_conv {
    int64_t pass;
    int64_t dtype;     /* of all tensors: cuDNN has no other mixture. Sums of narrow ones are f32 */
    int64_t compute;   /* wf_compute: what f32 factors may be rounded to */
    int64_t adds_bias; /* to the result of the pass, one number a channel */
    int64_t last;      /* channels are last in memory: [n, h, w, c], and weights [m, h, w, c] */
    int64_t batch, groups, c, m, axes;
    int64_t in[WF_WINDOW_AXES], out[WF_WINDOW_AXES], kernel[WF_WINDOW_AXES];
    int64_t stride[WF_WINDOW_AXES], dilation[WF_WINDOW_AXES];
    int64_t before[WF_WINDOW_AXES], after[WF_WINDOW_AXES];
} wf_dnn_conv;

/* False: cuDNN cannot be asked, since an extent is 0 or a padding would be negative. */
bool wf_dnn_conv_of(const wf_convolution *v, wf_conv_pass pass, wf_dtype dtype, wf_compute compute,
                    bool adds_bias, wf_dnn_conv *out);
/* The question for it; borrows c. */
wf_dnn_asked wf_dnn_ask_conv(const wf_dnn_conv *c);

#endif
