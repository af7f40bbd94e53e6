/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/code.h - for files of kernels: what they include, and how they are launched.
 *
 * A file is called as the cpu's of the same operations, is compiled by nvcc for GPUs and by g++ for
 * tests on the host, and ends with its rows:
 *
 *     template <class T, class F> __global__ void each(const T *x, T *out, int64_t n, F f) {...}
 *
 *     return wf_launch(run, "Neg", each<float, negate>, wf_blocks(run, n), err, x, out, n, f);
 *
 *     WF_CUDA_ROWS(unary){{.op = "Neg", ...}, {}};
 *
 * Arguments go by value, so functions of an operation are types without members, or numbers.
 */
#ifndef WF_KERNELS_CUDA_CODE_H
#define WF_KERNELS_CUDA_CODE_H

extern "C" {
#include "common/base/size.h"
#include "common/graph/op.h"
#include "common/kernels/cuda/device.h"
#include "common/kernels/kernel.h"
#include "common/kernels/shape/walk.h"
}

#ifdef __CUDACC__
#define WF_SHARED(T, name, n) __shared__ T name[n]
/* Before a loop whose arrays are to stay in registers. */
#define WF_UNROLL _Pragma("unroll")
/* Before a loop that mostly ends at once. */
#define WF_ROLLED _Pragma("unroll 1")
#else
#include "common/kernels/cuda/on_host.h"
#define WF_UNROLL
#define WF_ROLLED
#endif

#include <tuple>
#include <utility>

/* The list of a file's rows, which an empty one ends. */
#define WF_CUDA_ROWS(name)                                                                         \
    extern "C" const wf_kernel wf_cuda_kernels_##name[];                                           \
    const wf_kernel wf_cuda_kernels_##name[] =

/* A run-time function's code, of the host and of the device. */
#define WF_CODE __device__ __forceinline__

/* Threads that run together; those of a block, at most; warps of such a block. Kernels that say so
 * (__launch_bounds__) have blocks of up to WF_LARGE_BLOCK threads. */
enum { WF_WARP = 32, WF_BLOCK = 256, WF_WARPS = 8, WF_LARGE_BLOCK = 1024, WF_LARGE_WARPS = 32 };
/* Bytes to which the tensors of a plan are aligned. */
enum { WF_ALIGNED = 64 };

/* This thread's number of all, and their number: it computes elements first, first + all, ... */
WF_CODE int64_t wf_first(void)
{
    return (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
}

WF_CODE int64_t wf_all(void)
{
    return (int64_t)gridDim.x * blockDim.x;
}

/* Blocks for n elements: at most as many as run at a time. */
static inline unsigned wf_blocks(const wf_run *run, int64_t n)
{
    int64_t most = (int64_t)wf_cuda_gpu_of(run->device)->has.processors * 8;
    int64_t blocks = WF_MAX((n + WF_BLOCK - 1) / WF_BLOCK, (int64_t)1);

    return (unsigned)WF_MIN(blocks, most);
}

#ifdef __CUDACC__
template <class... P> inline wf_cuda_function wf_function_of(const char *name, void (*kernel)(P...))
{
    return {(const void *)kernel, name, nullptr, nullptr, sizeof...(P), false};
}
#else
template <class... P, std::size_t... I>
inline void wf_call_with(const void *kernel, void *const args[], std::index_sequence<I...>)
{
    reinterpret_cast<void (*)(P...)>(const_cast<void *>(kernel))(*static_cast<P *>(args[I])...);
}

template <class... P> inline void wf_call(const void *kernel, void *const args[])
{
    wf_call_with<P...>(kernel, args, std::index_sequence_for<P...>{});
}

template <class... P> inline wf_cuda_function wf_function_of(const char *name, void (*kernel)(P...))
{
    static const std::size_t bytes[] = {sizeof(P)...};

    return {
        reinterpret_cast<const void *>(kernel), name, wf_call<P...>, bytes, sizeof...(P), false};
}
#endif

template <class... P, class... A>
wf_status wf_launch_as(bool meets, const wf_run *run, const char *name, void (*kernel)(P...),
                       unsigned blocks, unsigned threads, wf_err *err, A... given)
{
    const wf_cuda_gpu *g = wf_cuda_gpu_of(run->device);
    wf_cuda_function f = wf_function_of(name, kernel);
    std::tuple<P...> values(given...);
    int error = g->calls->use(g->index);

    f.meets = meets;
    if (error == 0)
        error = std::apply(
            [&](P &...value) {
                void *args[] = {const_cast<void *>(static_cast<const void *>(&value))...};

                return g->calls->launch(&f, {blocks, 1, 1}, {threads, 1, 1}, args, 0,
                                        wf_cuda_stream_of(run->stream));
            },
            values);
    return error == 0 ? WF_OK : wf_cuda_fail(g, error, err);
}

/* Queues a kernel on the run's stream, in blocks of WF_BLOCK threads. */
template <class... P, class... A>
wf_status wf_launch(const wf_run *run, const char *name, void (*kernel)(P...), unsigned blocks,
                    wf_err *err, A... given)
{
    return wf_launch_as(false, run, name, kernel, blocks, WF_BLOCK, err, given...);
}

/* The same of a kernel whose threads meet: it shares memory, or uses wf_join_block. `threads` of a
 * block are a multiple of WF_WARP. */
template <class... P, class... A>
wf_status wf_launch_meeting(const wf_run *run, const char *name, void (*kernel)(P...),
                            unsigned blocks, unsigned threads, wf_err *err, A... given)
{
    return wf_launch_as(true, run, name, kernel, blocks, threads, err, given...);
}

/* Threads for a block of up to WF_LARGE_BLOCK whose threads share n elements, several each. */
static inline unsigned wf_large_threads(int64_t n)
{
    return (unsigned)WF_MIN(wf_ceil_div(WF_MAX(n, (int64_t)1), 16 * WF_WARP) * WF_WARP,
                            (int64_t)WF_LARGE_BLOCK);
}

/* Threads for a block whose threads share n elements. */
static inline unsigned wf_threads(int64_t n)
{
    return (unsigned)WF_MIN((WF_MAX(n, (int64_t)1) + WF_WARP - 1) / WF_WARP * WF_WARP,
                            (int64_t)WF_BLOCK);
}

/* ---- threads of a block together ---- */

/* The values of all threads of a block, joined by f, which may take them in any order: each thread
 * gets the same bits. `nothing` is what f leaves a value with. */
template <class T, class F> WF_CODE T wf_join_block(T value, T nothing, F f)
{
    WF_SHARED(T, joined, WF_LARGE_WARPS);
    T all = nothing;

    for (unsigned mask = WF_WARP / 2; mask > 0; mask /= 2)
        value = f(value, static_cast<T>(__shfl_xor_sync(~0u, value, mask)));
    if (threadIdx.x % WF_WARP == 0)
        joined[threadIdx.x / WF_WARP] = value;
    __syncthreads();
    for (unsigned i = 0; i < blockDim.x / WF_WARP; i++)
        all = f(all, static_cast<T>(joined[i]));
    __syncthreads(); /* before the next join writes */
    return all;
}

/* The values of the block's threads before this one, added up; *all: those of all its threads. */
template <class T> WF_CODE T wf_sum_before(T value, T *all)
{
    WF_SHARED(T, sums, WF_WARPS);
    T before = 0, total = value;

    /* Groups of threads that become twice as large: the upper half of each has the lower one before
     * it. */
    for (unsigned mask = 1; mask < WF_WARP; mask *= 2) {
        T theirs = __shfl_xor_sync(~0u, total, mask);

        if (threadIdx.x & mask)
            before += theirs;
        total += theirs;
    }
    if (threadIdx.x % WF_WARP == 0)
        sums[threadIdx.x / WF_WARP] = total;
    __syncthreads();
    *all = 0;
    for (unsigned i = 0; i < blockDim.x / WF_WARP; i++) {
        if (i < threadIdx.x / WF_WARP)
            before += static_cast<T>(sums[i]);
        *all += static_cast<T>(sums[i]);
    }
    __syncthreads(); /* before the next sum writes */
    return before;
}

struct wf_plus {
    template <class T> WF_CODE T operator()(T x, T y) const
    {
        return x + y;
    }
};

struct wf_greater {
    template <class T> WF_CODE T operator()(T x, T y) const
    {
        return x > y ? x : y;
    }
};

/* For those that look for the first of something. */
struct wf_lower {
    WF_CODE int64_t operator()(int64_t x, int64_t y) const
    {
        return x < y ? x : y;
    }
};

/* ---- what kernels find ---- */

/* Where a kernel says what is wrong with its operands (fault.h). */
typedef struct wf_complaints {
    wf_cuda_fault *fault;
    const void *node;
} wf_complaints;

static inline wf_complaints wf_complaints_of(const wf_run *run)
{
    return {wf_cuda_fault_of(run->stream), run->node};
}

WF_CODE void wf_complain(wf_complaints c, wf_cuda_fault_kind kind, int64_t a, int64_t b, int64_t of)
{
    if (atomicExch(&c.fault->taken, 1) != 0)
        return; /* another was first */
    c.fault->kind = kind;
    c.fault->node = c.node;
    c.fault->values[0] = a;
    c.fault->values[1] = b;
    c.fault->values[2] = of;
}

#endif
