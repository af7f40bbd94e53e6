/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/nn/onednn_conv.h - f32 convolutions of a few images through oneDNN, on the
 * calling thread. Images, weights and maps are plain ([n, c, h, w], [m, c, kh, kw]); what layout
 * oneDNN likes better it is given by reordering on the way in and out, which for a few images at a
 * time happens in cache. So is rounding to bfloat16, where that is asked for.
 */
#ifndef WF_KERNELS_CPU_ONEDNN_CONV_H
#define WF_KERNELS_CPU_ONEDNN_CONV_H

#include "common/kernels/cpu/nn/conv.h"

/* Of one group; two spatial axes. */
typedef struct wf_onednn_conv_shape {
    wf_conv_pass pass;
    int64_t images, c, m;
    int64_t in[2], out[2], kernel[2], stride[2], dilation[2], before[2];
} wf_onednn_conv_shape;

/* `images` of a convolution of two spatial axes. */
wf_onednn_conv_shape wf_onednn_conv_shape_of(const wf_conv *v, int64_t images);

typedef struct wf_onednn_conv wf_onednn_conv;

/* NULL when oneDNN has no fast way for it, or no memory: the caller then takes another way. */
wf_onednn_conv *wf_onednn_conv_new(const wf_onednn_conv_shape *s);
void wf_onednn_conv_free(wf_onednn_conv *v);
/* What a run wants besides; aligned to 64. */
size_t wf_onednn_conv_workspace(const wf_onednn_conv *v);
/* Bytes of the weights as the convolution has them, and putting them there from plain ones, once
 * for many runs. For WEIGHTS the other way: what a run makes, and plain ones from that. */
size_t wf_onednn_conv_packed(const wf_onednn_conv *v);
void wf_onednn_conv_pack(wf_onednn_conv *v, const float *weights, void *packed);
void wf_onednn_conv_unpack(wf_onednn_conv *v, const void *packed, float *weights);
/* The images' way: x and y are read or written as the pass says; packed is read, or made for
 * WEIGHTS. One thread at a time for one convolution. */
void wf_onednn_conv_run(wf_onednn_conv *v, float *x, void *packed, float *y, void *workspace);

#endif
