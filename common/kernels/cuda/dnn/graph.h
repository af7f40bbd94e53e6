/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/dnn/graph.h - cuDNN's graph of a case: the convolution, and the bias behind
 * it. */
#ifndef WF_KERNELS_CUDA_DNN_GRAPH_H
#define WF_KERNELS_CUDA_DNN_GRAPH_H

#include "common/kernels/cuda/calls.h"
#include "common/kernels/cuda/dnn/case.h"

/* The tensors of a graph. Those before WF_DNN_TENSORS are memory of the caller's; the sum that a
 * bias is added to is not stored. */
enum { WF_DNN_X, WF_DNN_W, WF_DNN_Y, WF_DNN_BIAS, WF_DNN_TENSORS, WF_DNN_SUM = WF_DNN_TENSORS };

/* The number by which cuDNN knows a tensor. */
static inline int64_t wf_dnn_id(int tensor)
{
    return 1 + tensor;
}

enum { WF_DNN_MOST_MADE = 12 };

typedef struct wf_dnn_graph {
    const wf_cuda_calls *calls;
    wf_cuda_descriptor *graph; /* one of those below */
    wf_cuda_descriptor *made[WF_DNN_MOST_MADE];
    unsigned n;
} wf_dnn_graph;

/* Gives the error of the first call that failed, or 0. Call wf_dnn_graph_free in either case. */
int wf_dnn_graph_build(const wf_cuda_calls *calls, wf_cuda_dnn *dnn, const wf_dnn_case *c,
                       wf_dnn_graph *g);
void wf_dnn_graph_free(wf_dnn_graph *g);

#endif
