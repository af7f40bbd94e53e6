/* SPDX-License-Identifier: Apache-2.0 */
/* tests/cuda/host_norm.c - what plans of host_dnn.c compute whose graph is a batch normalisation in
 * training, or its gradient: by the definitions (Ioffe and Szegedy, "Batch Normalization", 2015,
 * algorithm 1 and section 3), in double. Of types cuDNN wants one for the input, the result and
 * their gradients, and float32 for what has a number a channel. */
#include "tests/cuda/host_descriptor.h"

#include <math.h>
#include <stdlib.h>

enum { RANK = 4, X, SCALE, BIAS, MEAN, INVERSE, Y, DY, DX, DSCALE, DBIAS, TENSORS };

typedef struct norm {
    host_execution base; /* first */
    bool is_grad;
    int64_t batch, channels, inner;
    double epsilon;
    int type; /* of what is as large as the input */
    void *at[TENSORS];
} norm;

/* Which attribute an operation has a tensor in; 0: in none. */
static const int of_forward[TENSORS] = {
    [X] = WF_DNN_NORM_X,       [SCALE] = WF_DNN_NORM_SCALE,     [BIAS] = WF_DNN_NORM_BIAS,
    [MEAN] = WF_DNN_NORM_MEAN, [INVERSE] = WF_DNN_NORM_INVERSE, [Y] = WF_DNN_NORM_Y};
static const int of_backward[TENSORS] = {
    [X] = WF_DNN_NORM_GRAD_X,           [SCALE] = WF_DNN_NORM_GRAD_SCALE,
    [MEAN] = WF_DNN_NORM_GRAD_MEAN,     [INVERSE] = WF_DNN_NORM_GRAD_INVERSE,
    [DY] = WF_DNN_NORM_GRAD_DY,         [DX] = WF_DNN_NORM_GRAD_DX,
    [DSCALE] = WF_DNN_NORM_GRAD_DSCALE, [DBIAS] = WF_DNN_NORM_GRAD_DBIAS};

#define need host_dnn_need

static const int *attributes_of(const wf_cuda_descriptor *d)
{
    return d->kind == WF_DNN_DO_NORM ? of_forward : of_backward;
}

static bool is_of_channels(int tensor)
{
    return tensor == SCALE || tensor == BIAS || tensor == MEAN || tensor == INVERSE ||
           tensor == DSCALE || tensor == DBIAS;
}

void host_dnn_check_norm(const wf_cuda_descriptor *d)
{
    const int *attributes = attributes_of(d);
    const int64_t *x = host_dnn_ints(host_dnn_of(d, attributes[X]), WF_DNN_TENSOR_DIMS);
    const int type = host_dnn_number(host_dnn_of(d, attributes[X]), WF_DNN_TENSOR_TYPE);

    need(type == WF_DNN_F32 || type == WF_DNN_F16 || type == WF_DNN_BF16,
         "an input of another type than normalisations have");
    need(host_dnn_number(d, d->kind == WF_DNN_DO_NORM ? WF_DNN_NORM_MODE : WF_DNN_NORM_GRAD_MODE) ==
             WF_DNN_OF_BATCH,
         "a normalisation that weft does not use");
    for (int i = X; i < TENSORS; i++) {
        const wf_cuda_descriptor *t = attributes[i] ? host_dnn_of(d, attributes[i]) : NULL;
        const int64_t *dims = t ? host_dnn_ints(t, WF_DNN_TENSOR_DIMS) : NULL;

        if (!t)
            continue;
        need(host_dnn_find(t, WF_DNN_TENSOR_DIMS)->n == RANK, "a tensor of other axes");
        need(host_dnn_number(t, WF_DNN_TENSOR_TYPE) == (is_of_channels(i) ? WF_DNN_F32 : type),
             "a tensor of another type");
        for (int k = 0; k < RANK; k++)
            need(dims[k] == (is_of_channels(i) && k != 1 ? 1 : x[k]),
                 "a tensor of other extents than the input's, or of other channels");
    }
}

/* ---- computing ---- */

static size_t place(const norm *n, size_t channel, int64_t i)
{
    return (size_t)((i / n->inner * n->channels + (int64_t)channel) * n->inner + i % n->inner);
}

/* Element i of what is as large as the input, and a channel's of the others. */
static double get(const norm *n, int tensor, size_t i)
{
    return host_element(is_of_channels(tensor) ? WF_DNN_F32 : n->type, n->at[tensor], i);
}

static void put(const norm *n, int tensor, size_t i, double value)
{
    host_element_put(is_of_channels(tensor) ? WF_DNN_F32 : n->type, n->at[tensor], i, value);
}

static void forward(const norm *n, size_t c)
{
    const int64_t count = n->batch * n->inner;
    double mean = 0, variance = 0, inverse;

    for (int64_t i = 0; i < count; i++)
        mean += get(n, X, place(n, c, i)) / (double)count;
    for (int64_t i = 0; i < count; i++)
        variance += pow(get(n, X, place(n, c, i)) - mean, 2) / (double)count;
    inverse = 1 / sqrt(variance + n->epsilon);
    for (int64_t i = 0; i < count; i++)
        put(n, Y, place(n, c, i),
            get(n, SCALE, c) * (get(n, X, place(n, c, i)) - mean) * inverse + get(n, BIAS, c));
    put(n, MEAN, c, mean);
    put(n, INVERSE, c, inverse);
}

static void backward(const norm *n, size_t c)
{
    const int64_t count = n->batch * n->inner;
    const double mean = get(n, MEAN, c), inverse = get(n, INVERSE, c);
    double dbias = 0, dscale = 0;

    for (int64_t i = 0; i < count; i++) {
        const size_t at = place(n, c, i);

        dbias += get(n, DY, at);
        dscale += get(n, DY, at) * (get(n, X, at) - mean) * inverse;
    }
    for (int64_t i = 0; i < count; i++) {
        const size_t at = place(n, c, i);
        const double x = (get(n, X, at) - mean) * inverse;

        put(n, DX, at,
            get(n, SCALE, c) * inverse * (get(n, DY, at) - (dbias + x * dscale) / (double)count));
    }
    put(n, DSCALE, c, dscale);
    put(n, DBIAS, c, dbias);
}

static void compute(const host_execution *e)
{
    const norm *n = (const norm *)e;

    for (size_t c = 0; c < (size_t)n->channels; c++)
        if (n->is_grad)
            backward(n, c);
        else
            forward(n, c);
}

host_execution *host_norm_new(const wf_cuda_descriptor *config, const wf_cuda_descriptor *pack)
{
    const wf_cuda_descriptor *d =
        host_dnn_find(config->graph, WF_DNN_GRAPH_OPERATIONS)->of.descriptors[0];
    const int *attributes = attributes_of(d);
    const int64_t *x = host_dnn_ints(host_dnn_of(d, attributes[X]), WF_DNN_TENSOR_DIMS);
    norm *n = calloc(1, sizeof *n);

    if (!n)
        return NULL;
    n->base.act = compute;
    n->is_grad = d->kind == WF_DNN_DO_NORM_GRAD;
    n->batch = x[0];
    n->channels = x[1];
    n->inner = x[2] * x[3];
    n->type = host_dnn_number(host_dnn_of(d, attributes[X]), WF_DNN_TENSOR_TYPE);
    if (!n->is_grad) /* cuDNN reads it while it queues */
        n->epsilon =
            (double)*(float *)host_dnn_memory(pack, host_dnn_of(d, WF_DNN_NORM_EPSILON), 1);
    for (int i = X; i < TENSORS; i++)
        if (attributes[i])
            n->at[i] = host_dnn_memory(
                pack, host_dnn_of(d, attributes[i]),
                (size_t)(is_of_channels(i) ? n->channels : n->batch * n->channels * n->inner));
    return &n->base;
}
