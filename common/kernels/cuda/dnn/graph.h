/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/dnn/graph.h - what cuDNN is asked to compute: a graph of operations, of which
 * each file that describes one (convolution.h) builds its own, and what a choice of an engine
 * depends on.
 */
#ifndef WF_KERNELS_CUDA_DNN_GRAPH_H
#define WF_KERNELS_CUDA_DNN_GRAPH_H

#include "common/kernels/cuda/calls.h"
#include "common/tensor/compute.h"
#include <stdbool.h>

enum {
    WF_DNN_MOST_MADE = 112,
    WF_DNN_MOST_TENSORS = 11, /* whose memory is the caller's */
    WF_DNN_MOST_SCALARS = 3,
    WF_DNN_MOST_RANK = 5
};

typedef struct wf_dnn_graph {
    const wf_cuda_calls *calls;
    wf_cuda_descriptor *graph; /* one of those below */
    wf_cuda_descriptor *made[WF_DNN_MOST_MADE];
    unsigned n, n_tensors, n_scalars;
    size_t bytes[WF_DNN_MOST_TENSORS];  /* of each tensor */
    float scalars[WF_DNN_MOST_SCALARS]; /* operands that an execution is given with the addresses */
} wf_dnn_graph;

/* The number by which cuDNN knows tensor or scalar i. */
static inline int64_t wf_dnn_id(unsigned tensor)
{
    return 1 + (int64_t)tensor;
}

static inline int64_t wf_dnn_id_of_scalar(unsigned i)
{
    return wf_dnn_id(WF_DNN_MOST_TENSORS + i);
}

/* What an engine may do with the numbers. */
typedef struct wf_dnn_rounding {
    bool f32; /* the factors are float32, or narrow: those of float64 stay as they are */
    wf_compute compute;
} wf_dnn_rounding;

/* cuDNN's number of float32, float64, float16 or bfloat16. */
int32_t wf_dnn_type_of(wf_dtype dtype);

enum { WF_DNN_CASE_BYTES = 384 };

/* What is asked for. Cases of one kind that are equal in their bytes have equal graphs, and one
 * choice. */
typedef struct wf_dnn_asked {
    const char *kind; /* for files with choices, like "cuDNN convolution" */
    const void *of;   /* the case, without gaps; borrowed */
    size_t bytes;     /* at most WF_DNN_CASE_BYTES */
    /* Gives the error of the first call that failed, or 0. Call wf_dnn_graph_free in either case.
     */
    int (*build)(const wf_cuda_calls *calls, wf_cuda_dnn *dnn, const void *of, wf_dnn_graph *g);
    wf_dnn_rounding rounding;
    unsigned most_compiled; /* candidates that cuDNN compiles for the case; 0: any number */
} wf_dnn_asked;

void wf_dnn_graph_free(wf_dnn_graph *g);

/* ---- building ---- */

/* What is built, and the first error of doing so: after one nothing more is called, and descriptors
 * are NULL. */
typedef struct wf_dnn_builder {
    wf_dnn_graph *g;
    int error;
} wf_dnn_builder;

wf_dnn_builder wf_dnn_build(const wf_cuda_calls *calls, wf_dnn_graph *g);
/* A descriptor of that kind, which is then set and finished. */
wf_cuda_descriptor *wf_dnn_make(wf_dnn_builder *b, int kind);
void wf_dnn_set(wf_dnn_builder *b, wf_cuda_descriptor *d, int attribute, int type, int64_t n,
                const void *values);
void wf_dnn_set_descriptor(wf_dnn_builder *b, wf_cuda_descriptor *d, int attribute,
                           wf_cuda_descriptor *value);
void wf_dnn_finish(wf_dnn_builder *b, wf_cuda_descriptor *d);
/* A tensor in memory of the caller's, who knows it by its number; type: WF_DNN_F32 ... */
wf_cuda_descriptor *wf_dnn_tensor(wf_dnn_builder *b, unsigned tensor, int32_t type, int64_t rank,
                                  const int64_t dims[], const int64_t strides[]);
/* One that an operation hands to another, and that is not stored. */
wf_cuda_descriptor *wf_dnn_inner(wf_dnn_builder *b, int32_t type, int64_t rank,
                                 const int64_t dims[], const int64_t strides[]);
/* A float32 for all elements of an operand of that rank. */
wf_cuda_descriptor *wf_dnn_scalar(wf_dnn_builder *b, int64_t rank, float value);
/* Ends with the graph of `n` operations, and gives the error. */
int wf_dnn_end(wf_dnn_builder *b, wf_cuda_dnn *dnn, unsigned n_tensors, int64_t n,
               wf_cuda_descriptor *operations[]);

#endif
