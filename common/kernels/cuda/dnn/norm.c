/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/dnn/norm.c */
#include "common/kernels/cuda/dnn/norm.h"

/* Axes are [batch, channels, inner, 1]. */
enum { RANK = 4 };

_Static_assert((int)WF_DNN_BN_GRAD_TENSORS <= (int)WF_DNN_MOST_TENSORS &&
                   (int)WF_DNN_BN_TENSORS <= (int)WF_DNN_MOST_TENSORS &&
                   sizeof(wf_dnn_norm) <= WF_DNN_CASE_BYTES,
               "a graph has room for a normalisation");

static void add(wf_dnn_builder *b, wf_cuda_descriptor *d, int attribute, unsigned tensor,
                int64_t batch, int64_t channels, int64_t inner)
{
    const int64_t dims[] = {batch, channels, inner, 1};
    const int64_t strides[] = {channels * inner, inner, 1, 1};

    wf_dnn_set_descriptor(b, d, attribute,
                          wf_dnn_tensor(b, tensor, WF_DNN_F32, RANK, dims, strides));
}

static void add_whole(wf_dnn_builder *b, const wf_dnn_norm *n, wf_cuda_descriptor *d, int attribute,
                      unsigned tensor)
{
    add(b, d, attribute, tensor, n->batch, n->channels, n->inner);
}

static void add_channels(wf_dnn_builder *b, const wf_dnn_norm *n, wf_cuda_descriptor *d,
                         int attribute, unsigned tensor)
{
    add(b, d, attribute, tensor, 1, n->channels, 1);
}

static wf_cuda_descriptor *forward(wf_dnn_builder *b, const wf_dnn_norm *n)
{
    const int32_t mode = WF_DNN_OF_BATCH, phase = WF_DNN_TRAINS;
    wf_cuda_descriptor *d = wf_dnn_make(b, WF_DNN_DO_NORM);

    wf_dnn_set(b, d, WF_DNN_NORM_MODE, WF_DNN_IS_NORM_MODE, 1, &mode);
    wf_dnn_set(b, d, WF_DNN_NORM_PHASE, WF_DNN_IS_NORM_PHASE, 1, &phase);
    add_whole(b, n, d, WF_DNN_NORM_X, WF_DNN_BN_X);
    add_channels(b, n, d, WF_DNN_NORM_SCALE, WF_DNN_BN_SCALE);
    add_channels(b, n, d, WF_DNN_NORM_BIAS, WF_DNN_BN_BIAS);
    wf_dnn_set_descriptor(b, d, WF_DNN_NORM_EPSILON, wf_dnn_scalar(b, RANK, (float)n->epsilon));
    add_channels(b, n, d, WF_DNN_NORM_MEAN, WF_DNN_BN_MEAN);
    add_channels(b, n, d, WF_DNN_NORM_INVERSE, WF_DNN_BN_INVERSE);
    add_whole(b, n, d, WF_DNN_NORM_Y, WF_DNN_BN_Y);
    return d;
}

static wf_cuda_descriptor *backward(wf_dnn_builder *b, const wf_dnn_norm *n)
{
    const int32_t mode = WF_DNN_OF_BATCH;
    wf_cuda_descriptor *d = wf_dnn_make(b, WF_DNN_DO_NORM_GRAD);

    wf_dnn_set(b, d, WF_DNN_NORM_GRAD_MODE, WF_DNN_IS_NORM_MODE, 1, &mode);
    add_whole(b, n, d, WF_DNN_NORM_GRAD_X, WF_DNN_BN_X);
    add_whole(b, n, d, WF_DNN_NORM_GRAD_DY, WF_DNN_BN_DY);
    add_channels(b, n, d, WF_DNN_NORM_GRAD_SCALE, WF_DNN_BN_SCALE);
    add_channels(b, n, d, WF_DNN_NORM_GRAD_MEAN, WF_DNN_BN_MEAN);
    add_channels(b, n, d, WF_DNN_NORM_GRAD_INVERSE, WF_DNN_BN_INVERSE);
    add_channels(b, n, d, WF_DNN_NORM_GRAD_DSCALE, WF_DNN_BN_DSCALE);
    add_channels(b, n, d, WF_DNN_NORM_GRAD_DBIAS, WF_DNN_BN_DBIAS);
    add_whole(b, n, d, WF_DNN_NORM_GRAD_DX, WF_DNN_BN_DX);
    return d;
}

static int build(const wf_cuda_calls *calls, wf_cuda_dnn *dnn, const void *of, wf_dnn_graph *g)
{
    const wf_dnn_norm *n = of;
    wf_dnn_builder b = wf_dnn_build(calls, g);
    wf_cuda_descriptor *d = n->is_grad ? backward(&b, n) : forward(&b, n);

    wf_dnn_finish(&b, d);
    return wf_dnn_end(&b, dnn, n->is_grad ? WF_DNN_BN_GRAD_TENSORS : WF_DNN_BN_TENSORS, 1, &d);
}

/* It has sums, and no products whose factors might be rounded: but engines that say so are passed
 * over. */
wf_dnn_asked wf_dnn_ask_norm(const wf_dnn_norm *n)
{
    return (wf_dnn_asked){.kind = "cuDNN normalisation",
                          .of = n,
                          .bytes = sizeof *n,
                          .build = build,
                          .rounding = {.f32 = true}};
}
