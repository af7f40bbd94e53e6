/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/calls.h - what weft calls of CUDA: one table of functions.
 *
 * Nothing else in this folder calls CUDA, so that all of it runs over another table:
 *
 *   wf_cuda_real    the runtime's functions (calls.c; only where the toolkit is)
 *   wf_cuda_host    the same on the host, for tests (tests/cuda/host.h)
 *
 * Functions are called as CUDA's are, have their arguments and meaning (CUDA Runtime API 13.0), and
 * give its error numbers: 0 is success.
 */
#ifndef WF_KERNELS_CUDA_CALLS_H
#define WF_KERNELS_CUDA_CALLS_H

#include <stdbool.h>
#include <stddef.h>

/* CUDA's own, and never looked into. */
typedef struct CUstream_st wf_cuda_stream;
typedef struct CUevent_st wf_cuda_event;

enum {
    WF_CUDA_NO_MEMORY = 2,
    WF_CUDA_OLD_DRIVER = 35,
    WF_CUDA_NO_DEVICE = 100,
    WF_CUDA_NOT_READY = 600
};

typedef enum wf_cuda_way {
    WF_CUDA_TO_DEVICE = 1,
    WF_CUDA_TO_HOST = 2,
    WF_CUDA_WITHIN = 3
} wf_cuda_way;

typedef struct wf_cuda_properties {
    char name[256];
    int major, minor; /* compute capability */
    int processors;   /* streaming multiprocessors */
    size_t memory;    /* bytes */
} wf_cuda_properties;

/* A kernel, as it is launched. */
typedef struct wf_cuda_function {
    const void *kernel;
    const char *name;
    /* On the host: calls the kernel for one thread with the arguments at args[n], of bytes[n]. */
    void (*call)(const void *kernel, void *const args[]);
    const size_t *bytes;
    unsigned n;
    bool meets; /* threads of a block wait for each other */
} wf_cuda_function;

typedef struct wf_cuda_dim {
    unsigned x, y, z;
} wf_cuda_dim;

typedef struct wf_cuda_calls {
    int (*count)(int *n);
    int (*properties)(int device, wf_cuda_properties *out);
    int (*use)(int device); /* by the calling thread, from now on */
    const char *(*error_string)(int error);
    int (*alloc)(void **out, size_t bytes);
    int (*free)(void *data);
    int (*stream_new)(wf_cuda_stream **out); /* does not wait for the default stream */
    int (*stream_free)(wf_cuda_stream *s);
    int (*stream_wait)(wf_cuda_stream *s);
    int (*stream_after)(wf_cuda_stream *s, wf_cuda_event *e);
    int (*copy)(void *to, const void *from, size_t bytes, wf_cuda_way way, wf_cuda_stream *s);
    int (*fill)(void *to, int byte, size_t bytes, wf_cuda_stream *s);
    int (*event_new)(wf_cuda_event **out); /* without a time */
    int (*event_free)(wf_cuda_event *e);
    int (*event_record)(wf_cuda_event *e, wf_cuda_stream *s);
    int (*event_wait)(wf_cuda_event *e);
    int (*event_query)(wf_cuda_event *e);
    int (*launch)(const wf_cuda_function *f, wf_cuda_dim grid, wf_cuda_dim block, void **args,
                  size_t shared, wf_cuda_stream *s);
} wf_cuda_calls;

extern const wf_cuda_calls wf_cuda_real;

#endif
