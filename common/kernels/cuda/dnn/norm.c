/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/dnn/norm.c */
#include "common/kernels/cuda/dnn/norm.h"
#include "common/base/cc.h"

/* Axes are [batch, channels, inner, 1]. */
enum { RANK = 4 };

_Static_assert((int)WF_DNN_BN_GRAD_TENSORS <= (int)WF_DNN_MOST_TENSORS &&
                   (int)WF_DNN_BN_TENSORS <= (int)WF_DNN_MOST_TENSORS &&
                   sizeof(wf_dnn_norm) <= WF_DNN_CASE_BYTES,
               "a graph has room for a normalisation");

/* What an operation has of a tensor. */
typedef struct operand {
    int attribute;
    unsigned tensor;
    bool is_whole; /* an element for each input; else for each channel */
} operand;

enum { EPSILON = WF_DNN_MOST_TENSORS /* the number of what is no tensor of the caller's */ };

static const operand forward[] = {
    {WF_DNN_NORM_X, WF_DNN_BN_X, true},        {WF_DNN_NORM_SCALE, WF_DNN_BN_SCALE, false},
    {WF_DNN_NORM_BIAS, WF_DNN_BN_BIAS, false}, {WF_DNN_NORM_EPSILON, EPSILON, false},
    {WF_DNN_NORM_MEAN, WF_DNN_BN_MEAN, false}, {WF_DNN_NORM_INVERSE, WF_DNN_BN_INVERSE, false},
    {WF_DNN_NORM_Y, WF_DNN_BN_Y, true}};

static const operand backward[] = {{WF_DNN_NORM_GRAD_X, WF_DNN_BN_X, true},
                                   {WF_DNN_NORM_GRAD_DY, WF_DNN_BN_DY, true},
                                   {WF_DNN_NORM_GRAD_SCALE, WF_DNN_BN_SCALE, false},
                                   {WF_DNN_NORM_GRAD_MEAN, WF_DNN_BN_MEAN, false},
                                   {WF_DNN_NORM_GRAD_INVERSE, WF_DNN_BN_INVERSE, false},
                                   {WF_DNN_NORM_GRAD_DSCALE, WF_DNN_BN_DSCALE, false},
                                   {WF_DNN_NORM_GRAD_DBIAS, WF_DNN_BN_DBIAS, false},
                                   {WF_DNN_NORM_GRAD_DX, WF_DNN_BN_DX, true}};

enum { MOST_OPERANDS = WF_COUNT(backward) };
_Static_assert(WF_COUNT(forward) <= MOST_OPERANDS, "there is room for each");

static wf_cuda_descriptor *make(wf_dnn_builder *b, const wf_dnn_norm *n, const operand *o)
{
    const int64_t batch = o->is_whole ? n->batch : 1, inner = o->is_whole ? n->inner : 1;
    const int64_t dims[] = {batch, n->channels, inner, 1};
    const int64_t strides[] = {n->channels * inner, inner, 1, 1};
    const int32_t type = o->is_whole ? wf_dnn_type_of((wf_dtype)n->dtype) : WF_DNN_F32;

    return o->tensor == EPSILON ? wf_dnn_scalar(b, RANK, (float)n->epsilon)
                                : wf_dnn_tensor(b, o->tensor, type, RANK, dims, strides);
}

/* Made behind its operands: a graph is given back from its end, and what refers to others before
 * them. */
static wf_cuda_descriptor *operation(wf_dnn_builder *b, const wf_dnn_norm *n, int kind, int mode_is,
                                     size_t n_operands, const operand operands[])
{
    const int32_t mode = WF_DNN_OF_BATCH;
    wf_cuda_descriptor *made[MOST_OPERANDS], *d;

    for (size_t i = 0; i < n_operands; i++)
        made[i] = make(b, n, &operands[i]);
    d = wf_dnn_make(b, kind);
    wf_dnn_set(b, d, mode_is, WF_DNN_IS_NORM_MODE, 1, &mode);
    for (size_t i = 0; i < n_operands; i++)
        wf_dnn_set_descriptor(b, d, operands[i].attribute, made[i]);
    return d;
}

static wf_cuda_descriptor *forward_of(wf_dnn_builder *b, const wf_dnn_norm *n)
{
    const int32_t phase = WF_DNN_TRAINS;
    wf_cuda_descriptor *d =
        operation(b, n, WF_DNN_DO_NORM, WF_DNN_NORM_MODE, WF_COUNT(forward), forward);

    wf_dnn_set(b, d, WF_DNN_NORM_PHASE, WF_DNN_IS_NORM_PHASE, 1, &phase);
    return d;
}

static wf_cuda_descriptor *backward_of(wf_dnn_builder *b, const wf_dnn_norm *n)
{
    return operation(b, n, WF_DNN_DO_NORM_GRAD, WF_DNN_NORM_GRAD_MODE, WF_COUNT(backward),
                     backward);
}

static int build(const wf_cuda_calls *calls, wf_cuda_dnn *dnn, const void *of, wf_dnn_graph *g)
{
    const wf_dnn_norm *n = of;
    wf_dnn_builder b = wf_dnn_build(calls, g);
    wf_cuda_descriptor *d = n->is_grad ? backward_of(&b, n) : forward_of(&b, n);

    wf_dnn_finish(&b, d);
    return wf_dnn_end(&b, dnn, n->is_grad ? WF_DNN_BN_GRAD_TENSORS : WF_DNN_BN_TENSORS, 1, &d);
}

/* cuDNN 9.19 compiles each of its engines, which takes 0.4 s of a processor (tests/cuda/cudnn.c),
 * and a network has dozens of cases, all of them as fast as memory is: one is built of each.
 *
 * It has sums, and no products whose factors might be rounded: but of float32, engines that say so
 * are passed over. */
wf_dnn_asked wf_dnn_ask_norm(const wf_dnn_norm *n)
{
    const wf_compute compute = n->dtype == WF_BF16  ? WF_COMPUTE_BF16
                               : n->dtype == WF_F16 ? WF_COMPUTE_F16
                                                    : WF_COMPUTE_F32;

    return (wf_dnn_asked){.kind = "cuDNN normalisation",
                          .of = n,
                          .bytes = sizeof *n,
                          .build = build,
                          .rounding = {true, compute},
                          .most_compiled = 1};
}
