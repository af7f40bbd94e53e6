/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/on_host.h - what code.h takes from CUDA, for g++: kernels that are compiled
 * with it run on the host (tests/cuda/host.h). */
#ifndef WF_KERNELS_CUDA_ON_HOST_H
#define WF_KERNELS_CUDA_ON_HOST_H

extern "C" {
#include "common/kernels/cuda/on_host_thread.h"
}

#include <bit>
#include <cmath>

#define __global__
#define __host__
#define __device__
#define __forceinline__ inline
#define __grid_constant__
#define __launch_bounds__(...)
#define threadIdx (wf_host_self()->thread)
#define blockIdx (wf_host_self()->block)
#define blockDim (wf_host_self()->block_dim)
#define gridDim (wf_host_self()->grid_dim)
#define __syncthreads() wf_host_meet()

template <class T> inline T atomicExch(T *at, T value)
{
    T before = *at;

    *at = value;
    return before;
}

inline long long __double_as_longlong(double x)
{
    return std::bit_cast<long long>(x);
}

inline unsigned __float_as_uint(float x)
{
    return std::bit_cast<unsigned>(x);
}

inline float __uint_as_float(unsigned x)
{
    return std::bit_cast<float>(x);
}

/* This host's compiler does not join a product with a sum. */
inline float __fadd_rn(float x, float y)
{
    return x + y;
}

inline double __dadd_rn(double x, double y)
{
    return x + y;
}

inline float __fmul_rn(float x, float y)
{
    return x * y;
}

inline double __dmul_rn(double x, double y)
{
    return x * y;
}

inline float __fsub_rn(float x, float y)
{
    return x - y;
}

inline double __dsub_rn(double x, double y)
{
    return x - y;
}

inline float __expf(float x)
{
    return std::exp(x);
}

inline float __fdividef(float x, float y)
{
    return x / y;
}

/* An element of an array that the threads of a block share. */
template <class T> class wf_host_cell
{
    wf_host_shared *of;
    size_t i;

  public:
    wf_host_cell(wf_host_shared *s, size_t at) : of(s), i(at)
    {
    }
    operator T() const
    {
        return *static_cast<T *>(wf_host_shared_at(of, i, 0));
    }
    T operator=(T value) const
    {
        return *static_cast<T *>(wf_host_shared_at(of, i, 1)) = value;
    }
    T operator=(const wf_host_cell &from) const
    {
        return *this = static_cast<T>(from);
    }
};

template <class T> class wf_host_array
{
    wf_host_shared *of;

  public:
    wf_host_array(const void *key, const char *name, size_t n)
        : of(wf_host_share(key, name, sizeof(T), n))
    {
    }
    wf_host_cell<T> operator[](size_t i) const
    {
        return {of, i};
    }
};

/* __shared__ T name[n] */
#define WF_SHARED(T, name, n)                                                                      \
    static const char name##_key = 0;                                                              \
    const wf_host_array<T> name(&name##_key, #name, n)

template <class T> inline T __shfl_xor_sync(unsigned, T value, unsigned mask)
{
    T theirs;

    wf_host_exchange(&value, &theirs, sizeof value, mask);
    return theirs;
}

#endif
