/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/dnn/graph.c */
#include "common/kernels/cuda/dnn/graph.h"
#include "common/base/status.h"

enum { RANK = 2 + WF_WINDOW_AXES, ALIGNED = 16 /* the widest that a thread loads */ };

/* What is built, and the first error of doing so: after one nothing more is called. */
typedef struct builder {
    wf_dnn_graph *g;
    const wf_dnn_case *c;
    int error;
} builder;

static wf_cuda_descriptor *make(builder *b, int kind)
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

static void set(builder *b, wf_cuda_descriptor *d, int attribute, int type, int64_t n,
                const void *values)
{
    if (b->error == 0)
        b->error = b->g->calls->dnn_set(d, attribute, type, n, values);
}

static void set_descriptor(builder *b, wf_cuda_descriptor *d, int attribute,
                           wf_cuda_descriptor *value)
{
    set(b, d, attribute, WF_DNN_IS_DESCRIPTOR, 1, &value);
}

static void finish(builder *b, wf_cuda_descriptor *d)
{
    if (b->error == 0)
        b->error = b->g->calls->dnn_finish(d);
}

static int32_t type_of(const wf_dnn_case *c)
{
    return c->dtype == WF_F32 ? WF_DNN_F32 : WF_DNN_F64;
}

/* A tensor [n, channels, spatial...] without gaps; spatial NULL: of ones. */
static wf_cuda_descriptor *add_tensor(builder *b, int part, int64_t n, int64_t channels,
                                      const int64_t spatial[])
{
    wf_cuda_descriptor *d = make(b, WF_DNN_TENSOR);
    const int32_t type = type_of(b->c);
    const int64_t rank = 2 + b->c->axes, id = wf_dnn_id(part), aligned = ALIGNED;
    const bool is_virtual = part == WF_DNN_SUM;
    int64_t dims[RANK] = {n, channels}, strides[RANK], stride = 1;

    for (int64_t i = rank - 1; i >= 0; i--) {
        if (i >= 2)
            dims[i] = spatial ? spatial[i - 2] : 1;
        strides[i] = stride;
        stride *= dims[i];
    }
    set(b, d, WF_DNN_TENSOR_TYPE, WF_DNN_IS_DATA_TYPE, 1, &type);
    set(b, d, WF_DNN_TENSOR_DIMS, WF_DNN_IS_INT64, rank, dims);
    set(b, d, WF_DNN_TENSOR_STRIDES, WF_DNN_IS_INT64, rank, strides);
    set(b, d, WF_DNN_TENSOR_ID, WF_DNN_IS_INT64, 1, &id);
    set(b, d, WF_DNN_TENSOR_ALIGNED, WF_DNN_IS_INT64, 1, &aligned);
    if (is_virtual)
        set(b, d, WF_DNN_TENSOR_VIRTUAL, WF_DNN_IS_BOOL, 1, &is_virtual);
    finish(b, d);
    return d;
}

/* A tensor `as` of the extents of `part`: WF_DNN_SUM is of those of the result. */
static wf_cuda_descriptor *add_part(builder *b, int part, int as)
{
    const wf_dnn_case *c = b->c;

    switch (part) {
    case WF_DNN_X:
        return add_tensor(b, as, c->batch, c->groups * c->c, c->in);
    case WF_DNN_W:
        return add_tensor(b, as, c->groups * c->m, c->c, c->kernel);
    default:
        return add_tensor(b, as, c->batch, c->groups * c->m, c->out);
    }
}

static wf_cuda_descriptor *add_window(builder *b)
{
    wf_cuda_descriptor *d = make(b, WF_DNN_CONVOLUTION);
    const wf_dnn_case *c = b->c;
    const int32_t type = type_of(c), mode = WF_DNN_CORRELATION;

    set(b, d, WF_DNN_CONV_TYPE, WF_DNN_IS_DATA_TYPE, 1, &type);
    set(b, d, WF_DNN_CONV_MODE, WF_DNN_IS_CONV_MODE, 1, &mode);
    set(b, d, WF_DNN_CONV_AXES, WF_DNN_IS_INT64, 1, &c->axes);
    set(b, d, WF_DNN_CONV_DILATIONS, WF_DNN_IS_INT64, c->axes, c->dilation);
    set(b, d, WF_DNN_CONV_STRIDES, WF_DNN_IS_INT64, c->axes, c->stride);
    set(b, d, WF_DNN_CONV_BEFORE, WF_DNN_IS_INT64, c->axes, c->before);
    set(b, d, WF_DNN_CONV_AFTER, WF_DNN_IS_INT64, c->axes, c->after);
    finish(b, d);
    return d;
}

/* The numbers of an operation's attributes. */
typedef struct numbers {
    int kind, alpha, beta, window, parts[3]; /* x, w, y */
    int made;                                /* which of the parts is */
} numbers;

static const numbers of_pass[] = {
    [WF_CONV_FORWARD] = {WF_DNN_DO_FORWARD,
                         WF_DNN_FORWARD_ALPHA,
                         WF_DNN_FORWARD_BETA,
                         WF_DNN_FORWARD_CONV,
                         {WF_DNN_FORWARD_X, WF_DNN_FORWARD_W, WF_DNN_FORWARD_Y},
                         WF_DNN_Y},
    [WF_CONV_DATA] = {WF_DNN_DO_DATA,
                      WF_DNN_DATA_ALPHA,
                      WF_DNN_DATA_BETA,
                      WF_DNN_DATA_CONV,
                      {WF_DNN_DATA_X, WF_DNN_DATA_W, WF_DNN_DATA_Y},
                      WF_DNN_X},
    [WF_CONV_WEIGHTS] = {WF_DNN_DO_WEIGHTS,
                         WF_DNN_WEIGHTS_ALPHA,
                         WF_DNN_WEIGHTS_BETA,
                         WF_DNN_WEIGHTS_CONV,
                         {WF_DNN_WEIGHTS_X, WF_DNN_WEIGHTS_W, WF_DNN_WEIGHTS_Y},
                         WF_DNN_W},
};

static void set_factor(builder *b, wf_cuda_descriptor *d, int attribute, double value)
{
    const float f = (float)value;

    if (b->c->dtype == WF_F32)
        set(b, d, attribute, WF_DNN_IS_FLOAT, 1, &f);
    else
        set(b, d, attribute, WF_DNN_IS_DOUBLE, 1, &value);
}

static wf_cuda_descriptor *add_convolution(builder *b, wf_cuda_descriptor **made)
{
    const numbers *n = &of_pass[b->c->pass];
    wf_cuda_descriptor *parts[3], *window, *d;

    for (int i = 0; i < 3; i++)
        parts[i] = add_part(b, i, b->c->adds_bias && i == n->made ? WF_DNN_SUM : i);
    window = add_window(b);
    d = make(b, n->kind);
    for (int i = 0; i < 3; i++)
        set_descriptor(b, d, n->parts[i], parts[i]);
    set_descriptor(b, d, n->window, window);
    set_factor(b, d, n->alpha, 1);
    set_factor(b, d, n->beta, 0);
    finish(b, d);
    *made = parts[n->made];
    return d;
}

static wf_cuda_descriptor *add_bias(builder *b, wf_cuda_descriptor *sum)
{
    const int part = of_pass[b->c->pass].made;
    const int32_t type = type_of(b->c), mode = WF_DNN_ADD;
    const int64_t channels = b->c->groups * (part == WF_DNN_X ? b->c->c : b->c->m);
    wf_cuda_descriptor *bias = add_tensor(b, WF_DNN_BIAS, 1, channels, NULL);
    wf_cuda_descriptor *made = add_part(b, part, part);
    wf_cuda_descriptor *how = make(b, WF_DNN_POINTWISE), *d;

    set(b, how, WF_DNN_POINTWISE_MODE, WF_DNN_IS_POINTWISE_MODE, 1, &mode);
    set(b, how, WF_DNN_POINTWISE_TYPE, WF_DNN_IS_DATA_TYPE, 1, &type);
    finish(b, how);
    d = make(b, WF_DNN_DO_POINTWISE);
    set_descriptor(b, d, WF_DNN_EACH_POINTWISE, how);
    set_descriptor(b, d, WF_DNN_EACH_X, sum);
    set_descriptor(b, d, WF_DNN_EACH_B, bias);
    set_descriptor(b, d, WF_DNN_EACH_Y, made);
    finish(b, d);
    return d;
}

int wf_dnn_graph_build(const wf_cuda_calls *calls, wf_cuda_dnn *dnn, const wf_dnn_case *c,
                       wf_dnn_graph *g)
{
    builder b = {.g = g, .c = c};
    wf_cuda_descriptor *operations[2], *made;

    *g = (wf_dnn_graph){.calls = calls};
    operations[0] = add_convolution(&b, &made);
    if (c->adds_bias)
        operations[1] = add_bias(&b, made);
    g->graph = make(&b, WF_DNN_GRAPH);
    set(&b, g->graph, WF_DNN_GRAPH_HANDLE, WF_DNN_IS_HANDLE, 1, &dnn);
    set(&b, g->graph, WF_DNN_GRAPH_OPERATIONS, WF_DNN_IS_DESCRIPTOR, 1 + c->adds_bias, operations);
    finish(&b, g->graph);
    return b.error;
}

void wf_dnn_graph_free(wf_dnn_graph *g)
{
    while (g->n > 0)
        (void)g->calls->dnn_unmake(g->made[--g->n]);
    g->graph = NULL;
}
