/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/narrow.h - kernels of float32 that take tensors of a narrow type as they are
 * (wf_kernel.is_narrow).
 *
 * A kernel is a template over T: float, double or wf_narrow. wf_from<T> are the elements that it
 * reads, wf_to<T> those that it writes, and wf_number<T> is the type that it computes in:
 *
 *     template <class T> __global__ void twice(wf_from<T> x, wf_to<T> y, int64_t n)
 *     {
 *         for (int64_t i = wf_first(); i < n; i += wf_all())
 *             y[i] = wf_number<T>(2) * x[i];
 *     }
 *
 * For float and double these are pointers. For wf_narrow they carry the tensor's dtype, float32 or
 * a narrow type, which is looked at for each element: all threads of a kernel take the same branch,
 * and one kernel serves every mixture of types. Kernels of float are not touched by it.
 */
#ifndef WF_KERNELS_CUDA_NARROW_H
#define WF_KERNELS_CUDA_NARROW_H

#include "common/kernels/cuda/fours.h"
extern "C" {
#include "common/graph/narrow.h"
#include "common/tensor/half.h"
}

#include <cstring>
#include <type_traits>

/* float32, of tensors some of which may be narrow. */
struct wf_narrow {
};

/* A narrow element as a float32, and back, rounded to nearest even: on a GPU by one instruction,
 * which makes every NaN the same quiet one. */
WF_CODE float wf_widened(wf_dtype dtype, uint16_t bits)
{
    if (dtype == WF_BF16)
        return wf_bf16_to_f32_inline(bits);
#ifdef __CUDA_ARCH__
    float wide;

    asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(bits));
    return wide;
#else
    return wf_f16_to_f32_inline(bits);
#endif
}

WF_CODE uint16_t wf_narrowed(wf_dtype dtype, float value)
{
#ifdef __CUDA_ARCH__
    uint16_t bits;

    if (dtype == WF_BF16)
        asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    else
        asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
#else
    return dtype == WF_BF16 ? wf_f32_to_bf16_inline(value) : wf_f32_to_f16_inline(value);
#endif
}

/* Elements that are read. */
struct wf_narrow_from {
    const void *at; /* nullptr: the operand is absent */
    wf_dtype dtype;

    WF_CODE float operator[](int64_t i) const
    {
        if (dtype == WF_F32)
            return static_cast<const float *>(at)[i];
        return wf_widened(dtype, static_cast<const uint16_t *>(at)[i]);
    }
    /* From element i on. */
    __host__ WF_CODE wf_narrow_from operator+(int64_t i) const
    {
        return {static_cast<const char *>(at) + i * (dtype == WF_F32 ? 4 : 2), dtype};
    }
    __host__ WF_CODE explicit operator bool() const
    {
        return at != nullptr;
    }
};

/* Where one element is written. */
struct wf_narrow_place {
    void *at;
    wf_dtype dtype;
    int64_t i;

    WF_CODE void operator=(float value) const
    {
        if (dtype == WF_F32)
            static_cast<float *>(at)[i] = value;
        else
            static_cast<uint16_t *>(at)[i] = wf_narrowed(dtype, value);
    }
};

/* Elements that are written. */
struct wf_narrow_to {
    void *at;
    wf_dtype dtype;

    WF_CODE wf_narrow_place operator[](int64_t i) const
    {
        return {at, dtype, i};
    }
    __host__ WF_CODE wf_narrow_to operator+(int64_t i) const
    {
        return {static_cast<char *>(at) + i * (dtype == WF_F32 ? 4 : 2), dtype};
    }
    __host__ WF_CODE explicit operator bool() const
    {
        return at != nullptr;
    }
};

/* ---- four at a time (fours.h) ---- */

/* One element in the two steps of fours.h. */
template <class T> WF_CODE T wf_load_one(const T *x, int64_t i)
{
    return x[i];
}

template <class T> WF_CODE T wf_wide_one(const T *, T raw)
{
    return raw;
}

WF_CODE uint32_t wf_load_one(const wf_narrow_from &x, int64_t i)
{
    return x.dtype == WF_F32 ? wf_half_bits(static_cast<const float *>(x.at)[i])
                             : static_cast<const uint16_t *>(x.at)[i];
}

WF_CODE float wf_wide_one(const wf_narrow_from &x, uint32_t raw)
{
    return x.dtype == WF_F32 ? wf_half_float(raw) : wf_widened(x.dtype, (uint16_t)raw);
}

/* What four elements of either width fill, or begin to. */
struct wf_narrow_four {
    uint32_t words[4];
};

WF_CODE wf_narrow_four wf_load_four(const wf_narrow_from &x, int64_t i)
{
    wf_narrow_four raw = {};

#ifdef __CUDA_ARCH__
    if (x.dtype == WF_F32) {
        const uint4 all = *reinterpret_cast<const uint4 *>(static_cast<const float *>(x.at) + i);

        raw = {{all.x, all.y, all.z, all.w}};
    } else {
        const uint2 all = *reinterpret_cast<const uint2 *>(static_cast<const uint16_t *>(x.at) + i);

        raw.words[0] = all.x;
        raw.words[1] = all.y;
    }
#else
    if (x.dtype == WF_F32)
        std::memcpy(raw.words, static_cast<const float *>(x.at) + i, 16);
    else
        std::memcpy(raw.words, static_cast<const uint16_t *>(x.at) + i, 8);
#endif
    return raw;
}

WF_CODE wf_four<float> wf_wide_four(const wf_narrow_from &x, wf_narrow_four raw)
{
    wf_four<float> all;

    WF_UNROLL
    for (int k = 0; k < 4; k++)
        all.v[k] = x.dtype == WF_F32
                       ? wf_half_float(raw.words[k])
                       : wf_widened(x.dtype, (uint16_t)(raw.words[k / 2] >> 16 * (k % 2)));
    return all;
}

WF_CODE void wf_store_four(const wf_narrow_to &y, int64_t i, wf_four<float> all)
{
    wf_four<uint16_t> bits;

    if (y.dtype == WF_F32) {
        wf_store_four(static_cast<float *>(y.at), i, all);
        return;
    }
    WF_UNROLL
    for (int k = 0; k < 4; k++)
        bits.v[k] = wf_narrowed(y.dtype, all.v[k]);
    wf_store_four(static_cast<uint16_t *>(y.at), i, bits);
}

template <class T> struct wf_typed {
    using number = T;
    using from = const T *;
    using to = T *;
};
template <> struct wf_typed<wf_narrow> {
    using number = float;
    using from = wf_narrow_from;
    using to = wf_narrow_to;
};

/* What a kernel of T computes in; the elements that it reads; those that it writes. */
template <class T> using wf_number = typename wf_typed<T>::number;
template <class T> using wf_from = typename wf_typed<T>::from;
template <class T> using wf_to = typename wf_typed<T>::to;

/* The elements of an operand, and of a result; of an absent one nullptr. */
template <class T> inline wf_from<T> wf_read(const wf_tensor *t)
{
    if constexpr (std::is_same_v<T, wf_narrow>)
        return {t ? t->data : nullptr, t ? t->dtype : WF_F32};
    else
        return t ? static_cast<const T *>(t->data) : nullptr;
}

template <class T> inline wf_to<T> wf_write(const wf_tensor *t)
{
    if constexpr (std::is_same_v<T, wf_narrow>)
        return {t ? t->data : nullptr, t ? t->dtype : WF_F32};
    else
        return t ? static_cast<T *>(t->data) : nullptr;
}

/* The narrow type of a node's tensors; WF_NONE: none of them is narrow. */
static inline wf_dtype wf_narrow_of(const wf_node *node, const wf_tensor *const in[],
                                    const wf_tensor *const out[])
{
    for (uint32_t i = 0; i < node->n_in; i++)
        if (in[i] && wf_dtype_is_narrow(in[i]->dtype))
            return in[i]->dtype;
    for (uint32_t i = 0; i < node->n_out; i++)
        if (out[i] && wf_dtype_is_narrow(out[i]->dtype))
            return out[i]->dtype;
    return WF_NONE;
}

static inline bool wf_is_narrow(const wf_tensor *t)
{
    return t && wf_dtype_is_narrow(t->dtype);
}

/* Runs NARROW if a tensor of the node is, and else WIDE, which has float32 alone. */
template <wf_run_fn *WIDE, wf_run_fn *NARROW>
wf_status wf_wide_or_narrow(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                            wf_err *err)
{
    return wf_narrow_of(run->node, in, out) == WF_NONE ? WIDE(run, in, out, err)
                                                       : NARROW(run, in, out, err);
}

/* A copy of n elements in another type, of float32 and a narrow one, either way; the first fours of
 * them at a time. */
static __global__ void wf_convert_elements(wf_narrow_from x, wf_narrow_to y, int64_t n,
                                           int64_t fours)
{
    wf_each_ahead(
        wf_first(), wf_all(), fours, [&](int64_t i) { return wf_load_four(x, 4 * i); },
        [&](int64_t i, wf_narrow_four raw) { wf_store_four(y, 4 * i, wf_wide_four(x, raw)); });
    for (int64_t i = 4 * fours + wf_first(); i < n; i += wf_all())
        y[i] = x[i];
}

/* Queues it; a wf_convert_fn. */
static inline wf_status wf_convert(const wf_run *run, wf_dtype from, const void *x, wf_dtype to,
                                   void *y, int64_t n, wf_err *err)
{
    int64_t fours =
        wf_fours_at(x, wf_dtype_size(from)) && wf_fours_at(y, wf_dtype_size(to)) ? n / 4 : 0;

    if (n == 0)
        return WF_OK;
    return wf_launch(run, "convert", wf_convert_elements, wf_blocks(run, fours ? fours : n), err,
                     wf_narrow_from{x, from}, wf_narrow_to{y, to}, n, fours);
}

#endif
