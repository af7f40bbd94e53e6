/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/device.h - a GPU as a device (common/tensor/device.h), over a table of CUDA's
 * functions.
 *
 * A failure of queued work stays with the device: each later call gives it again, as CUDA's do.
 */
#ifndef WF_KERNELS_CUDA_DEVICE_H
#define WF_KERNELS_CUDA_DEVICE_H

#include "common/kernels/cuda/calls.h"
#include "common/kernels/cuda/compile/compile.h"
#include "common/kernels/cuda/fault.h"
#include "common/kernels/cuda/tune/tune.h"
#include "common/kernels/kernel.h"

typedef struct wf_dnn wf_dnn; /* dnn/way.h */

typedef struct wf_cuda_gpu {
    wf_device base; /* first */
    char name[32];  /* "cuda:0" */
    char about[320];
    const wf_cuda_calls *calls;
    int index;
    wf_cuda_properties has;
    wf_cuda_lt *lt;             /* for products: it serves many threads */
    wf_dnn *dnn;                /* for convolutions: the same */
    wf_cuda_compiled *compiled; /* kernels of sources that plans have generated */
    wf_tuned *tuned;            /* algorithms of these libraries */
    wf_device_rows rows;        /* its kernels, for wf_device_add */
} wf_cuda_gpu;

/* Number `index` of this host's GPUs, under the name `kind`:`index`. The caller owns *out, which
 * lives as long as anything of the device; `calls` is borrowed. Errors: WF_UNSUPPORTED without a
 * driver or without that GPU, for one of a compute capability below 8.0, or a driver
 * that is too old; WF_IO, what CUDA says; each says what to do. */
WF_MUST_USE wf_status wf_cuda_open(const wf_cuda_calls *calls, const char *kind, int index,
                                   wf_cuda_gpu **out, wf_err *err);
/* Frees *g and sets it to NULL; NULL is fine. */
void wf_cuda_close(wf_cuda_gpu **g);

static inline const wf_cuda_gpu *wf_cuda_gpu_of(const wf_device *d)
{
    return (const wf_cuda_gpu *)d;
}

/* The status and sentence of an error number that is not 0. */
wf_status wf_cuda_fail(const wf_cuda_gpu *g, int error, wf_err *err);

/* A stream of a GPU. One that is made by hand, over a stream of CUDA's that is being measured, has
 * no place for faults: it is for kernels that find none. */
typedef struct wf_cuda_lane {
    wf_stream base; /* first */
    wf_cuda_stream *of;
    wf_cuda_fault *fault;
    bool lent; /* the fault is that of the stream which this one was made beside */
} wf_cuda_lane;

/* CUDA's stream of one of weft's, and where its kernels write what they find. */
wf_cuda_stream *wf_cuda_stream_of(const wf_stream *s);
wf_cuda_fault *wf_cuda_fault_of(const wf_stream *s);

#endif
