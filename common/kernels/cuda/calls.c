/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/calls.c - the table over CUDA's runtime. */
#include "common/kernels/cuda/calls.h"

#include <cuda_runtime_api.h>
#include <stdio.h>

#define SAME(ours, cudas) _Static_assert((int)(ours) == (int)(cudas), "calls.h has CUDA's number")
SAME(WF_CUDA_NO_MEMORY, cudaErrorMemoryAllocation);
SAME(WF_CUDA_OLD_DRIVER, cudaErrorInsufficientDriver);
SAME(WF_CUDA_NO_DEVICE, cudaErrorNoDevice);
SAME(WF_CUDA_NOT_READY, cudaErrorNotReady);
SAME(WF_CUDA_TO_DEVICE, cudaMemcpyHostToDevice);
SAME(WF_CUDA_TO_HOST, cudaMemcpyDeviceToHost);
SAME(WF_CUDA_WITHIN, cudaMemcpyDeviceToDevice);

static int real_count(int *n)
{
    return (int)cudaGetDeviceCount(n);
}

static int real_properties(int device, wf_cuda_properties *out)
{
    struct cudaDeviceProp p;
    int error = (int)cudaGetDeviceProperties(&p, device);

    if (error != 0)
        return error;
    *out = (wf_cuda_properties){.major = p.major,
                                .minor = p.minor,
                                .processors = p.multiProcessorCount,
                                .memory = p.totalGlobalMem};
    snprintf(out->name, sizeof out->name, "%s", p.name);
    return 0;
}

static int real_use(int device)
{
    return (int)cudaSetDevice(device);
}

static const char *real_error_string(int error)
{
    return cudaGetErrorString((cudaError_t)error);
}

static int real_alloc(void **out, size_t bytes)
{
    return (int)cudaMalloc(out, bytes);
}

static int real_free(void *data)
{
    return (int)cudaFree(data);
}

static int real_stream_new(wf_cuda_stream **out)
{
    return (int)cudaStreamCreateWithFlags(out, cudaStreamNonBlocking);
}

static int real_stream_free(wf_cuda_stream *s)
{
    return (int)cudaStreamDestroy(s);
}

static int real_stream_wait(wf_cuda_stream *s)
{
    return (int)cudaStreamSynchronize(s);
}

static int real_stream_after(wf_cuda_stream *s, wf_cuda_event *e)
{
    return (int)cudaStreamWaitEvent(s, e, 0);
}

static int real_copy(void *to, const void *from, size_t bytes, wf_cuda_way way, wf_cuda_stream *s)
{
    return (int)cudaMemcpyAsync(to, from, bytes, (enum cudaMemcpyKind)way, s);
}

static int real_fill(void *to, int byte, size_t bytes, wf_cuda_stream *s)
{
    return (int)cudaMemsetAsync(to, byte, bytes, s);
}

static int real_event_new(wf_cuda_event **out)
{
    return (int)cudaEventCreateWithFlags(out, cudaEventDisableTiming);
}

static int real_event_free(wf_cuda_event *e)
{
    return (int)cudaEventDestroy(e);
}

static int real_event_record(wf_cuda_event *e, wf_cuda_stream *s)
{
    return (int)cudaEventRecord(e, s);
}

static int real_event_wait(wf_cuda_event *e)
{
    return (int)cudaEventSynchronize(e);
}

static int real_event_query(wf_cuda_event *e)
{
    return (int)cudaEventQuery(e);
}

static int real_launch(const wf_cuda_function *f, wf_cuda_dim grid, wf_cuda_dim block, void **args,
                       size_t shared, wf_cuda_stream *s)
{
    dim3 of_grid = {grid.x, grid.y, grid.z}, of_block = {block.x, block.y, block.z};

    return (int)cudaLaunchKernel(f->kernel, of_grid, of_block, args, shared, s);
}

const wf_cuda_calls wf_cuda_real = {
    .count = real_count,
    .properties = real_properties,
    .use = real_use,
    .error_string = real_error_string,
    .alloc = real_alloc,
    .free = real_free,
    .stream_new = real_stream_new,
    .stream_free = real_stream_free,
    .stream_wait = real_stream_wait,
    .stream_after = real_stream_after,
    .copy = real_copy,
    .fill = real_fill,
    .event_new = real_event_new,
    .event_free = real_event_free,
    .event_record = real_event_record,
    .event_wait = real_event_wait,
    .event_query = real_event_query,
    .launch = real_launch,
};
