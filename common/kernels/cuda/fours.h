/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/fours.h - four neighbouring elements at a time, since one access of 16 bytes
 * moves memory faster than four of 4.
 *
 * A load gives what memory holds, and wf_wide_four the numbers that a kernel computes in
 * (narrow.h): between the two a kernel queues further loads, so that several are on their way.
 *
 *     auto raw = wf_load_four(x, i);              x: a wf_from, i: the first element
 *     wf_four<float> v = wf_wide_four(x, raw);
 *     wf_store_four(y, i, v);                     y: a wf_to
 *
 * Elements begin where wf_fours_at says.
 */
#ifndef WF_KERNELS_CUDA_FOURS_H
#define WF_KERNELS_CUDA_FOURS_H

#include "common/kernels/cuda/code.h"

/* Fours that a thread has on their way at a time. */
enum { WF_FOURS_AHEAD = 4 };

template <class T> struct alignas(sizeof(T) < 4 ? 4 * sizeof(T) : 16) wf_four {
    T v[4];
};

template <class T> WF_CODE wf_four<T> wf_load_four(const T *x, int64_t i)
{
    return *reinterpret_cast<const wf_four<T> *>(x + i);
}

template <class T> WF_CODE wf_four<T> wf_wide_four(const T *, wf_four<T> raw)
{
    return raw;
}

/* By an instruction that is spelled out where the elements fill one, since nvcc takes an assignment
 * apart in some kernels. */
template <class T> WF_CODE void wf_store_four(T *y, int64_t i, wf_four<T> all)
{
#ifdef __CUDA_ARCH__
    const size_t to = __cvta_generic_to_global(y + i);

    if constexpr (sizeof all == sizeof(uint4)) {
        const uint4 w = __builtin_bit_cast(uint4, all);

        asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(w.x), "r"(w.y),
                     "r"(w.z), "r"(w.w)
                     : "memory");
    } else if constexpr (sizeof all == sizeof(uint2)) {
        const uint2 w = __builtin_bit_cast(uint2, all);

        asm volatile("st.global.v2.b32 [%0], {%1, %2};" ::"l"(to), "r"(w.x), "r"(w.y) : "memory");
    } else {
        *reinterpret_cast<wf_four<T> *>(y + i) = all;
    }
#else
    *reinterpret_cast<wf_four<T> *>(y + i) = all;
#endif
}

template <class N> WF_CODE wf_four<N> wf_same_four(N x)
{
    return {{x, x, x, x}};
}

/* Calls use(i, load(i)) for i = first, first + step, ... below n. Loads come WF_FOURS_AHEAD at a
 * time, and read nothing that `use` writes for another i. */
template <class L, class U>
WF_CODE void wf_each_ahead(int64_t first, int64_t step, int64_t n, L load, U use)
{
    for (; first < n; first += WF_FOURS_AHEAD * step) {
        decltype(load(first)) loaded[WF_FOURS_AHEAD] = {};

        WF_UNROLL
        for (int u = 0; u < WF_FOURS_AHEAD; u++)
            if (first + u * step < n)
                loaded[u] = load(first + u * step);
        WF_UNROLL
        for (int u = 0; u < WF_FOURS_AHEAD; u++)
            if (first + u * step < n)
                use(first + u * step, loaded[u]);
    }
}

/* Whether elements of `size` bytes at an address may be accessed in fours; of an absent operand
 * true. */
static inline bool wf_fours_at(const void *data, size_t size)
{
    return reinterpret_cast<uintptr_t>(data) % WF_MIN(4 * size, (size_t)16) == 0;
}

/* The same of a tensor. */
static inline bool wf_has_fours(const wf_tensor *t)
{
    return !t || wf_fours_at(t->data, wf_dtype_size(t->dtype));
}

/* How a stretch of n elements, whose first one is number `at` of a tensor that has fours, is gone
 * through: `head` elements, fours, and the rest. */
struct wf_stretch {
    int64_t head, fours;
};

WF_CODE wf_stretch wf_stretch_of(int64_t at, int64_t n)
{
    int64_t head = -at & 3;

    head = head < n ? head : n;
    return {head, (n - head) / 4};
}

#endif
