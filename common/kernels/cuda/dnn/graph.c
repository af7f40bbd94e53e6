/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/dnn/graph.c */
#include "common/kernels/cuda/dnn/graph.h"
#include "common/base/status.h"

enum { ALIGNED = 16 /* the widest that a thread loads */ };

int32_t wf_dnn_type_of(wf_dtype dtype)
{
    switch (dtype) {
    case WF_F64:
        return WF_DNN_F64;
    case WF_F16:
        return WF_DNN_F16;
    case WF_BF16:
        return WF_DNN_BF16;
    default:
        return WF_DNN_F32;
    }
}

wf_dnn_builder wf_dnn_build(const wf_cuda_calls *calls, wf_dnn_graph *g)
{
    *g = (wf_dnn_graph){.calls = calls};
    return (wf_dnn_builder){.g = g};
}

wf_cuda_descriptor *wf_dnn_make(wf_dnn_builder *b, int kind)
{
    wf_cuda_descriptor *d = NULL;

    if (b->error != 0)
        return NULL;
    wf_assert(b->g->n < WF_DNN_MOST_MADE);
    b->error = b->g->calls->dnn_make(kind, &d);
    if (b->error != 0)
        return NULL;
    return b->g->made[b->g->n++] = d;
}

void wf_dnn_set(wf_dnn_builder *b, wf_cuda_descriptor *d, int attribute, int type, int64_t n,
                const void *values)
{
    if (b->error == 0)
        b->error = b->g->calls->dnn_set(d, attribute, type, n, values);
}

void wf_dnn_set_descriptor(wf_dnn_builder *b, wf_cuda_descriptor *d, int attribute,
                           wf_cuda_descriptor *value)
{
    wf_dnn_set(b, d, attribute, WF_DNN_IS_DESCRIPTOR, 1, &value);
}

void wf_dnn_finish(wf_dnn_builder *b, wf_cuda_descriptor *d)
{
    if (b->error == 0)
        b->error = b->g->calls->dnn_finish(d);
}

/* Not finished yet. */
static wf_cuda_descriptor *begin_tensor(wf_dnn_builder *b, int64_t id, int32_t type, int64_t rank,
                                        const int64_t dims[], const int64_t strides[])
{
    wf_cuda_descriptor *d = wf_dnn_make(b, WF_DNN_TENSOR);
    const int64_t aligned = ALIGNED;

    wf_dnn_set(b, d, WF_DNN_TENSOR_TYPE, WF_DNN_IS_DATA_TYPE, 1, &type);
    wf_dnn_set(b, d, WF_DNN_TENSOR_DIMS, WF_DNN_IS_INT64, rank, dims);
    wf_dnn_set(b, d, WF_DNN_TENSOR_STRIDES, WF_DNN_IS_INT64, rank, strides);
    wf_dnn_set(b, d, WF_DNN_TENSOR_ID, WF_DNN_IS_INT64, 1, &id);
    wf_dnn_set(b, d, WF_DNN_TENSOR_ALIGNED, WF_DNN_IS_INT64, 1, &aligned);
    return d;
}

static size_t bytes_of(int32_t type, int64_t rank, const int64_t dims[], const int64_t strides[])
{
    const size_t size = type == WF_DNN_F64 ? sizeof(double) : sizeof(float); /* or less */
    int64_t last = 0;

    for (int64_t i = 0; i < rank; i++)
        last += (dims[i] - 1) * strides[i];
    return (size_t)(last + 1) * size;
}

wf_cuda_descriptor *wf_dnn_tensor(wf_dnn_builder *b, unsigned tensor, int32_t type, int64_t rank,
                                  const int64_t dims[], const int64_t strides[])
{
    wf_cuda_descriptor *d = begin_tensor(b, wf_dnn_id(tensor), type, rank, dims, strides);

    wf_assert(tensor < WF_DNN_MOST_TENSORS);
    b->g->bytes[tensor] = bytes_of(type, rank, dims, strides);
    wf_dnn_finish(b, d);
    return d;
}

wf_cuda_descriptor *wf_dnn_inner(wf_dnn_builder *b, int32_t type, int64_t rank,
                                 const int64_t dims[], const int64_t strides[])
{
    const int64_t id = wf_dnn_id_of_scalar(WF_DNN_MOST_SCALARS) + b->g->n;
    const bool yes = true;
    wf_cuda_descriptor *d = begin_tensor(b, id, type, rank, dims, strides);

    wf_dnn_set(b, d, WF_DNN_TENSOR_VIRTUAL, WF_DNN_IS_BOOL, 1, &yes);
    wf_dnn_finish(b, d);
    return d;
}

wf_cuda_descriptor *wf_dnn_scalar(wf_dnn_builder *b, int64_t rank, float value)
{
    static const int64_t ones[WF_DNN_MOST_RANK] = {1, 1, 1, 1, 1};
    const unsigned i = b->g->n_scalars;
    const bool yes = true;
    wf_cuda_descriptor *d;

    wf_assert(i < WF_DNN_MOST_SCALARS && rank <= WF_DNN_MOST_RANK);
    d = begin_tensor(b, wf_dnn_id_of_scalar(i), WF_DNN_F32, rank, ones, ones);
    wf_dnn_set(b, d, WF_DNN_TENSOR_BY_VALUE, WF_DNN_IS_BOOL, 1, &yes);
    wf_dnn_finish(b, d);
    b->g->scalars[i] = value;
    b->g->n_scalars++;
    return d;
}

int wf_dnn_end(wf_dnn_builder *b, wf_cuda_dnn *dnn, unsigned n_tensors, int64_t n,
               wf_cuda_descriptor *operations[])
{
    wf_assert(n_tensors <= WF_DNN_MOST_TENSORS);
    b->g->n_tensors = n_tensors;
    b->g->graph = wf_dnn_make(b, WF_DNN_GRAPH);
    wf_dnn_set(b, b->g->graph, WF_DNN_GRAPH_HANDLE, WF_DNN_IS_HANDLE, 1, &dnn);
    wf_dnn_set(b, b->g->graph, WF_DNN_GRAPH_OPERATIONS, WF_DNN_IS_DESCRIPTOR, n, operations);
    wf_dnn_finish(b, b->g->graph);
    return b->error;
}

void wf_dnn_graph_free(wf_dnn_graph *g)
{
    while (g->n > 0)
        (void)g->calls->dnn_unmake(g->made[--g->n]);
    g->graph = NULL;
}
