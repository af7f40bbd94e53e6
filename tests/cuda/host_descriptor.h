/* SPDX-License-Identifier: Apache-2.0 */
/* tests/cuda/host_descriptor.h - descriptors of host_dnn.c, for those that compute what they
 * describe. */
#ifndef TESTS_CUDA_HOST_DESCRIPTOR_H
#define TESTS_CUDA_HOST_DESCRIPTOR_H

#include "tests/cuda/host_dnn.h"

/* Values of an attribute, and attributes of a descriptor, at most. */
enum { HOST_DNN_VALUES = 24, HOST_DNN_ATTRIBUTES = 12 };

typedef struct host_dnn_value {
    int attribute, type;
    int64_t n;
    union {
        int64_t ints[HOST_DNN_VALUES];
        int32_t numbers[HOST_DNN_VALUES]; /* data types and modes */
        float floats[HOST_DNN_VALUES];
        double doubles[HOST_DNN_VALUES];
        void *pointers[HOST_DNN_VALUES];
        wf_cuda_descriptor *descriptors[HOST_DNN_VALUES];
    } of;
} host_dnn_value;

struct wf_cuda_dnn {
    wf_cuda_stream *stream;
};

struct wf_cuda_descriptor {
    int kind;
    bool finished;
    unsigned users; /* descriptors that refer to it */
    host_dnn_value values[HOST_DNN_ATTRIBUTES];
    unsigned n_values;
    /* of a configuration; the notes of an engine too */
    wf_cuda_descriptor *graph;
    int engine, note, n_notes;
    bool compiles;
    int64_t workspace; /* of a plan */
};

/* The program ends unless it holds: cuDNN was given `what`. */
void host_dnn_need(bool holds, const char *what);
/* NULL: it was not set. The others read one that was. */
const host_dnn_value *host_dnn_find(const wf_cuda_descriptor *d, int attribute);
const int64_t *host_dnn_ints(const wf_cuda_descriptor *d, int attribute);
int host_dnn_number(const wf_cuda_descriptor *d, int attribute);
wf_cuda_descriptor *host_dnn_of(const wf_cuda_descriptor *d, int attribute);
double host_dnn_factor(const wf_cuda_descriptor *d, int attribute);

/* The memory of a tensor of so many elements, which must be there. */
void *host_dnn_memory(const wf_cuda_descriptor *pack, const wf_cuda_descriptor *tensor, size_t n);

struct host_execution {
    void (*act)(const host_execution *e);
};

/* host_element.c: of WF_DNN_F16, WF_DNN_BF16, WF_DNN_F32, or eight bytes of WF_DNN_F64; the bytes
 * of one, and element i of memory, to which a number is rounded. */
size_t host_element_size(int type);
double host_element(int type, const void *at, size_t i);
void host_element_put(int type, void *at, size_t i, double value);

/* host_convolution.c: that the extents of an operation fit each other; what a plan does with a pack
 * (NULL: there is no memory). */
void host_dnn_check_convolution(const wf_cuda_descriptor *d);
host_execution *host_convolution_new(const wf_cuda_descriptor *config,
                                     const wf_cuda_descriptor *pack);

/* host_fused.c: the same of graphs of products, reductions and what stands between them. */
void host_dnn_check_fused(const wf_cuda_descriptor *d);
host_execution *host_fused_new(const wf_cuda_descriptor *config, const wf_cuda_descriptor *pack);

/* host_norm.c: of batch normalisations. */
void host_dnn_check_norm(const wf_cuda_descriptor *d);
host_execution *host_norm_new(const wf_cuda_descriptor *config, const wf_cuda_descriptor *pack);

#endif
