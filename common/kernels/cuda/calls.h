/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/calls.h - what weft calls of CUDA: one table of functions.
 *
 * Nothing else in this folder calls CUDA, so that all of it runs over another table:
 *
 *   wf_cuda_real    the runtime's functions (calls.c; only where the toolkit is)
 *   wf_cuda_host    the same on the host, for tests (tests/cuda/host.h)
 *
 * Functions have the arguments and meaning of CUDA's (CUDA Runtime API 13.0), and give its error
 * numbers: 0 is success.
 */
#ifndef WF_KERNELS_CUDA_CALLS_H
#define WF_KERNELS_CUDA_CALLS_H

#include "common/kernels/cuda/calls_dnn.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* CUDA's own, and never looked into. */
typedef struct CUstream_st wf_cuda_stream;
typedef struct CUevent_st wf_cuda_event;
typedef struct CUgraph_st wf_cuda_graph;        /* cudaGraph_t */
typedef struct CUgraphExec_st wf_cuda_replayed; /* cudaGraphExec_t */

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

/* ---- cuBLASLt: its objects and numbers (cuBLAS 13.0, "Using the cuBLASLt API") ---- */

typedef struct wf_cuda_lt wf_cuda_lt;           /* cublasLtHandle_t */
typedef struct wf_cuda_product wf_cuda_product; /* cublasLtMatmulDesc_t */
typedef struct wf_cuda_layout wf_cuda_layout;   /* cublasLtMatrixLayout_t */

enum {
    WF_CUDA_OF_BLAS = 10000,                     /* its errors are these and its own number */
    WF_CUDA_NO_ALGORITHM = WF_CUDA_OF_BLAS + 15, /* CUBLAS_STATUS_NOT_SUPPORTED */
    /* types, of elements and of what is computed in */
    WF_CUDA_F32 = 0,
    WF_CUDA_F64 = 1,
    WF_CUDA_F16 = 2,
    WF_CUDA_BF16 = 14,
    WF_CUDA_COMPUTE_F32 = 68,
    WF_CUDA_COMPUTE_F64 = 70,
    WF_CUDA_COMPUTE_F32_OF_F16 = 74,  /* in f32, of factors that may be rounded to float16 */
    WF_CUDA_COMPUTE_F32_OF_BF16 = 75, /* or to bfloat16 */
    WF_CUDA_COMPUTE_F32_OF_TF32 = 77, /* or to TF32 */
    /* attributes of a product, and their values */
    WF_CUDA_TRANSPOSE_A = 3,
    WF_CUDA_TRANSPOSE_B = 4,
    WF_CUDA_EPILOGUE = 7,
    WF_CUDA_BIAS = 8, /* read by THEN_BIAS, written by THEN_SUMS */
    WF_CUDA_TRANSPOSED = 1,
    WF_CUDA_THEN_NOTHING = 1,
    WF_CUDA_THEN_RELU = 2,
    WF_CUDA_THEN_BIAS = 4,
    WF_CUDA_THEN_SUMS_OF_A = 256, /* CUBLASLT_EPILOGUE_BGRADA */
    WF_CUDA_THEN_SUMS_OF_B = 512, /* CUBLASLT_EPILOGUE_BGRADB */
    /* attributes of a layout */
    WF_CUDA_BATCH = 5,
    WF_CUDA_BATCH_STRIDE = 6
};

/* A chosen algorithm, and the workspace that it takes. */
typedef struct wf_cuda_algorithm {
    unsigned char of[64];
    size_t workspace;
} wf_cuda_algorithm;

/* ---- NVRTC (its documentation, 13.0) and the libraries of kernels that it compiles ---- */

typedef struct wf_cuda_program wf_cuda_program; /* nvrtcProgram */
typedef struct wf_cuda_library wf_cuda_library; /* cudaLibrary_t */

enum {
    WF_CUDA_OF_NVRTC = 30000, /* its errors are these and its own number */
    WF_CUDA_NO_NVRTC = 29999  /* weft's own: the library is not found, or lacks a function */
};

/* ---- NCCL (its documentation, 2.28) ---- */

typedef struct wf_cuda_comm wf_cuda_comm; /* ncclComm_t: one GPU's part in a group */

enum {
    WF_CUDA_OF_NCCL = 40000, /* its errors are these and its own number */
    WF_CUDA_NO_NCCL = WF_CUDA_OF_NCCL
};

typedef struct wf_cuda_calls {
    int (*count)(int *n);
    int (*properties)(int device, wf_cuda_properties *out);
    int (*use)(int device); /* by the calling thread, from now on */
    int (*memory_left)(size_t *left, size_t *all);
    const char *(*error_string)(int error);
    int (*alloc)(void **out, size_t bytes);
    int (*free)(void *data);
    /* Memory of the host that kernels see at the same address, and copies reach without the host's
     * help, from each of its GPUs; of whole pages. */
    int (*alloc_seen)(void **out, size_t bytes);
    int (*free_seen)(void *data);
    /* The same for memory that the host has, as long as it has it; a page belongs to one such. */
    int (*pin)(void *at, size_t bytes);
    int (*unpin)(void *at);
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
    /* Events with a time, recorded and waited for as the others; between two of them that are done.
     * NULL: this table has none. */
    int (*timer_new)(wf_cuda_event **out);
    int (*timer_ms)(float *ms, wf_cuda_event *from, wf_cuda_event *to);
    int (*launch)(const wf_cuda_function *f, wf_cuda_dim grid, wf_cuda_dim block, void **args,
                  size_t shared, wf_cuda_stream *s);

    int (*lt_new)(wf_cuda_lt **out);
    int (*lt_free)(wf_cuda_lt *lt);
    int (*product_new)(wf_cuda_product **out, int compute, int scale);
    int (*product_set)(wf_cuda_product *p, int attribute, const void *value, size_t bytes);
    int (*product_free)(wf_cuda_product *p);
    int (*layout_new)(wf_cuda_layout **out, int type, uint64_t rows, uint64_t columns, int64_t ld);
    int (*layout_set)(wf_cuda_layout *l, int attribute, const void *value, size_t bytes);
    int (*layout_free)(wf_cuda_layout *l);
    uint64_t (*lt_version)(void);
    /* The first that its heuristic names, best first, for memory that is aligned to so many bytes:
     * *n of them, 1 to `most`. */
    int (*choose)(wf_cuda_lt *lt, wf_cuda_product *p, wf_cuda_layout *a, wf_cuda_layout *b,
                  wf_cuda_layout *c, size_t workspace, uint32_t aligned, int most,
                  wf_cuda_algorithm out[], int *n);
    /* C = alpha A B + beta C */
    int (*multiply)(wf_cuda_lt *lt, wf_cuda_product *p, const void *alpha, const void *a,
                    wf_cuda_layout *of_a, const void *b, wf_cuda_layout *of_b, const void *beta,
                    void *c, wf_cuda_layout *of_c, const wf_cuda_algorithm *algorithm,
                    void *workspace, wf_cuda_stream *s);

    /* A handle is of one thread at a time. WF_CUDA_NO_DNN: there is no cuDNN, or none of that
     * version. */
    int (*dnn_new)(wf_cuda_dnn **out);
    int (*dnn_free)(wf_cuda_dnn *dnn);
    uint64_t (*dnn_version)(void);                          /* when there is a handle */
    int (*dnn_stream)(wf_cuda_dnn *dnn, wf_cuda_stream *s); /* where dnn_execute queues */
    int (*dnn_make)(int kind, wf_cuda_descriptor **out);
    int (*dnn_unmake)(wf_cuda_descriptor *d);
    int (*dnn_set)(wf_cuda_descriptor *d, int attribute, int type, int64_t n, const void *values);
    /* most 0: *n is how many there are. Descriptors are made by the caller, and filled here. */
    int (*dnn_get)(wf_cuda_descriptor *d, int attribute, int type, int64_t most, int64_t *n,
                   void *values);
    int (*dnn_finish)(wf_cuda_descriptor *d);
    int (*dnn_execute)(wf_cuda_dnn *dnn, wf_cuda_descriptor *plan, wf_cuda_descriptor *pack);

    /* Opens NVRTC at the first call; before any other of a program. NULL: this table compiles
     * nothing. */
    int (*compiler_version)(int *major, int *minor);
    int (*program_new)(wf_cuda_program **out, const char *source, const char *name);
    int (*program_compile)(wf_cuda_program *p, int n, const char *const options[]);
    int (*program_log_size)(wf_cuda_program *p, size_t *bytes); /* with the zero at its end */
    int (*program_log)(wf_cuda_program *p, char *out);
    int (*program_code_size)(wf_cuda_program *p, size_t *bytes);
    int (*program_code)(wf_cuda_program *p, char *out); /* for the architecture asked for */
    int (*program_free)(wf_cuda_program *p);
    int (*library_load)(wf_cuda_library **out, const void *code);
    /* What wf_cuda_function.kernel may be, until the library is freed. */
    int (*library_kernel)(const void **out, wf_cuda_library *l, const char *name);
    int (*library_free)(wf_cuda_library *l);

    /* Graphs. What the calling thread queues on s from the first call to the second is recorded and
     * not done; other threads use the runtime meanwhile (cudaStreamCaptureModeThreadLocal). */
    int (*capture_begin)(wf_cuda_stream *s);
    int (*capture_end)(wf_cuda_stream *s, wf_cuda_graph **out); /* ends it also if it fails */
    int (*graph_free)(wf_cuda_graph *g);
    int (*replay_new)(wf_cuda_replayed **out, wf_cuda_graph *g);
    int (*replay_free)(wf_cuda_replayed *r);
    int (*replay)(wf_cuda_replayed *r, wf_cuda_stream *s);

    /* Groups of GPUs, all driven by one thread (ncclCommInitAll). NULL: this table joins none.
     * WF_CUDA_NO_NCCL: there is no NCCL. */
    int (*nccl_new)(wf_cuda_comm *out[], int n, const int devices[]);
    int (*nccl_free)(wf_cuda_comm *comm);
    int (*nccl_begin)(void); /* ncclGroupStart */
    int (*nccl_end)(void);   /* ncclGroupEnd */
    /* ncclAllReduce of float32; `to` may be `from`. */
    int (*nccl_sum)(const float *from, float *to, size_t n, wf_cuda_comm *comm, wf_cuda_stream *s);
} wf_cuda_calls;

extern const wf_cuda_calls wf_cuda_real;

#endif
