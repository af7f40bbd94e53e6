/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/nn/spatial.h - what the operations over spatial axes share: convolutions and
 * poolings, [batch, channels, ...]. */
#ifndef WF_GRAPH_OPS_SPATIAL_H
#define WF_GRAPH_OPS_SPATIAL_H

#include "common/graph/emit.h"
#include "common/graph/op.h"
#include "common/graph/window.h"

/* Attributes of Conv and its gradients, of ConvTranspose and its, of the poolings (the union of
 * theirs), and of none but those of the window. */
extern const wf_attr_row wf_conv_rows[], wf_conv_transpose_rows[];

/* The taps of weights [m, c, ...], -1 where they are not known. */
void wf_kernel_of(const wf_value *weights, int64_t kernel[WF_WINDOW_AXES]);
/* Output 0 of a pooling of input 0, as attributes say; whole windows without kernel_shape. */
WF_MUST_USE wf_status wf_infer_pool(wf_node *n, wf_err *err);
/* dX, dW and dB of a convolution: the nodes `by_data` with dy, W and X, and `by_weights` with dy, X
 * and W. */
wf_status wf_grad_conv(wf_grads *g, const wf_node *n, const char *by_data, const char *by_weights);
/* d bias = dy summed over everything but the channels; nothing when nobody wants it. */
wf_status wf_grad_channel_bias(wf_grads *g, const wf_node *n, uint32_t i);

#endif
