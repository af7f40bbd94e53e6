/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/shape/norm.h - which elements each normalisation takes together, and the numbers
 * that its attributes give. */
#ifndef WF_KERNELS_SHAPE_NORM_H
#define WF_KERNELS_SHAPE_NORM_H

#include "common/kernels/kernel.h"

/* LayerNormalization and RMSNormalization: x is [rows, n]. */
typedef struct wf_layer_norm {
    int64_t rows, n;
    double epsilon;
    bool rms; /* about 0 */
} wf_layer_norm;

/* bias: may be NULL. Errors: WF_UNSUPPORTED where scale or bias are broadcast. */
WF_MUST_USE wf_status wf_layer_norm_of(const wf_node *n, const wf_tensor *x, const wf_tensor *scale,
                                       const wf_tensor *bias, wf_layer_norm *v, wf_err *err);

/* GroupNormalization and InstanceNormalization: x is [images, groups, each, inner]. */
typedef struct wf_group_norm {
    int64_t images, groups, each, inner; /* each: channels of a group */
    double epsilon;
    bool per_group; /* scale and bias */
} wf_group_norm;

/* bias: may be NULL. Errors: WF_SHAPE. */
WF_MUST_USE wf_status wf_group_norm_of(const wf_node *n, const wf_tensor *x, const wf_tensor *scale,
                                       const wf_tensor *bias, wf_group_norm *v, wf_err *err);

/* BatchNormalization: x is [batch, channels, inner]. */
typedef struct wf_batch_norm {
    int64_t batch, channels, inner;
    double epsilon, momentum;
    bool training;
} wf_batch_norm;

/* From a node without running mean and variance (BatchNormalizationTrain) training of momentum 0.
 * in: x, scale, bias, (mean, variance). Errors: WF_SHAPE. */
WF_MUST_USE wf_status wf_batch_norm_of(const wf_node *n, const wf_tensor *const in[],
                                       wf_batch_norm *v, wf_err *err);
/* The same of its gradient. in: dy, x, scale, (mean, variance). Errors: WF_SHAPE, WF_INVALID. */
WF_MUST_USE wf_status wf_batch_norm_grad_of(const wf_node *n, const wf_tensor *const in[],
                                            wf_batch_norm *v, wf_err *err);

/* LRN: x is [batch, channels, inner]; y = x s^-beta, with s = bias + alpha / size times the sum of
 * squares over `size` neighbouring channels. */
typedef struct wf_lrn {
    int64_t channels, inner, size;
    double alpha, beta, bias;
} wf_lrn;

/* Errors: WF_SHAPE, WF_INVALID. */
WF_MUST_USE wf_status wf_lrn_of(const wf_node *n, const wf_tensor *x, wf_lrn *v, wf_err *err);
WF_MUST_USE wf_status wf_lrn_grad_of(const wf_node *n, const wf_tensor *dy, const wf_tensor *x,
                                     wf_lrn *v, wf_err *err);

#endif
