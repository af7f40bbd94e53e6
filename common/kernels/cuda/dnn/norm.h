/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/dnn/norm.h - batch normalisation by the batch's own statistics, and its
 * gradient, in cuDNN's terms. */
#ifndef WF_KERNELS_CUDA_DNN_NORM_H
#define WF_KERNELS_CUDA_DNN_NORM_H

#include "common/kernels/cuda/dnn/graph.h"

/* Tensors: X, Y and their gradients are [batch, channels, inner], of one type; the others are
 * [channels], of float32. INVERSE is 1 / sqrt(variance + epsilon); the forward pass makes it, and
 * MEAN, which the gradient reads. */
enum { WF_DNN_BN_X, WF_DNN_BN_SCALE, WF_DNN_BN_MEAN, WF_DNN_BN_INVERSE };
enum { WF_DNN_BN_BIAS = WF_DNN_BN_INVERSE + 1, WF_DNN_BN_Y, WF_DNN_BN_TENSORS };
enum {
    WF_DNN_BN_DY = WF_DNN_BN_INVERSE + 1,
    WF_DNN_BN_DX,
    WF_DNN_BN_DSCALE,
    WF_DNN_BN_DBIAS,
    WF_DNN_BN_GRAD_TENSORS
};

/* int64_t and double alone: without gaps. */
typedef struct wf_dnn_norm {
    int64_t dtype; /* WF_F32, WF_F16 or WF_BF16; cuDNN has no mixture of them */
    int64_t is_grad, batch, channels, inner; /* no extent is 0 */
    double epsilon;
} wf_dnn_norm;

/* The question for it; borrows n. */
wf_dnn_asked wf_dnn_ask_norm(const wf_dnn_norm *n);

#endif
