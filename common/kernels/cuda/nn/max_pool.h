/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/nn/max_pool.h - MaxPool and its gradient over tensors of fewer than 2^31
 * elements, in numbers of 32 bits and without divisions.
 *
 * Backwards a window's slope goes to the first of its elements that equals the result. Where
 * windows do not overlap a thread has a window, and writes all of it. Where they do, a thread for
 * each window looks for that element, and a thread for each element adds up the slopes of the
 * windows that found it.
 */
#ifndef WF_KERNELS_CUDA_MAX_POOL_H
#define WF_KERNELS_CUDA_MAX_POOL_H

#include "common/kernels/cuda/divide.h"
#include "common/kernels/cuda/memory.h"
#include "common/kernels/cuda/narrow.h"
extern "C" {
#include "common/kernels/shape/pooling.h"
}

/* One side of the windows: extents, and how its elements are counted. */
struct wf_pool_side {
    int extent[WF_WINDOW_AXES];
    int size;                     /* of a plane */
    wf_divisor planes, rows, all; /* by size, by the extents of the axes 2 and 1 */
};

struct wf_pool {
    wf_pool_side in, out;
    int kernel[WF_WINDOW_AXES], stride[WF_WINDOW_AXES], dilation[WF_WINDOW_AXES];
    int before[WF_WINDOW_AXES];
    wf_divisor strides[WF_WINDOW_AXES];
    int planes;
    bool fits;  /* 32 bits hold all of it: else nothing here is for it */
    bool apart; /* no two windows have an element in common */
    bool tiles; /* and each element is in one */
};

static inline wf_pool_side wf_pool_side_of(const int64_t extent[], int64_t size)
{
    return {{(int)extent[0], (int)extent[1], (int)extent[2]},
            (int)size,
            wf_divisor_of(size),
            wf_divisor_of(extent[2]),
            wf_divisor_of(extent[1])};
}

static inline wf_pool wf_pool_of(const wf_pooling &v)
{
    const wf_spatial &s = v.s;
    const int64_t most = INT32_MAX / 4; /* of sums of extents, paddings and reaches too */
    wf_pool p = {};

    p.fits = v.planes > 0 && s.in_size > 0 && s.out_size > 0 && v.planes <= INT32_MAX &&
             s.in_size <= INT32_MAX / v.planes && s.out_size <= INT32_MAX / v.planes;
    p.apart = p.tiles = true;
    for (unsigned i = 0; i < WF_WINDOW_AXES; i++)
        p.fits &= s.w.kernel[i] <= most && s.w.stride[i] <= most && s.w.before[i] <= most &&
                  s.w.dilation[i] <= most / s.w.kernel[i] && s.out[i] <= most / s.w.stride[i];
    if (!p.fits)
        return p;
    p.in = wf_pool_side_of(s.in, s.in_size);
    p.out = wf_pool_side_of(s.out, s.out_size);
    p.planes = (int)v.planes;
    for (unsigned i = 0; i < WF_WINDOW_AXES; i++) {
        p.kernel[i] = (int)s.w.kernel[i];
        p.stride[i] = (int)s.w.stride[i];
        p.dilation[i] = (int)s.w.dilation[i];
        p.before[i] = (int)s.w.before[i];
        p.strides[i] = wf_divisor_of(s.w.stride[i]);
        p.apart &= s.out[i] == 1 || (s.w.kernel[i] - 1) * s.w.dilation[i] < s.w.stride[i];
        p.tiles &= s.w.before[i] == 0 && s.w.kernel[i] == s.w.stride[i] &&
                   (s.w.kernel[i] == 1 || s.w.dilation[i] == 1) &&
                   s.out[i] * s.w.stride[i] == s.in[i];
    }
    p.tiles &= p.apart;
    return p;
}

/* An element of a side: its plane, and where it is there. */
struct wf_pool_place {
    int plane, at[WF_WINDOW_AXES];
};

WF_CODE wf_pool_place wf_pool_place_of(const wf_pool_side &s, uint32_t e)
{
    const uint32_t plane = wf_divide(e, s.planes), own = e - plane * (uint32_t)s.size;
    const uint32_t row = wf_divide(own, s.rows), d = wf_divide(row, s.all);

    return {(int)plane,
            {(int)d, (int)row - (int)d * s.extent[1], (int)own - (int)row * s.extent[2]}};
}

/* Whether tap k of output o along axis i lies inside, and where (*x). */
WF_CODE bool wf_pool_reads(const wf_pool &p, int i, int o, int k, int *x)
{
    *x = o * p.stride[i] - p.before[i] + k * p.dilation[i];
    return (unsigned)*x < (unsigned)p.in.extent[i];
}

/* Calls f(element of the plane, its number) for what the window of an output holds of `from`, in
 * order, until it says true. */
template <class X, class F>
WF_CODE void wf_pool_each_until(const wf_pool &p, const wf_pool_place &o, const X &from, F f)
{
    int d, h, w;

    for (int kd = 0; kd < p.kernel[0]; kd++) {
        if (!wf_pool_reads(p, 0, o.at[0], kd, &d))
            continue;
        for (int kh = 0; kh < p.kernel[1]; kh++) {
            if (!wf_pool_reads(p, 1, o.at[1], kh, &h))
                continue;
            for (int kw = 0; kw < p.kernel[2]; kw++) {
                const bool inside = wf_pool_reads(p, 2, o.at[2], kw, &w);
                const int at = (d * p.in.extent[1] + h) * p.in.extent[2] + w;

                if (inside && f(at, from[at]))
                    return;
            }
        }
    }
}

/* The same of windows of 1 x K x K elements, which are loaded before the first call; f is called
 * for all of them. */
template <int K, class X, class F>
WF_CODE void wf_pool_each_loaded(const wf_pool &p, const wf_pool_place &o, const X &from, F f)
{
    decltype(wf_load_one(from, 0)) raw[K * K] = {};
    int at[K * K], d, h, w;

    WF_UNROLL
    for (int k = 0; k < K * K; k++) {
        bool inside = wf_pool_reads(p, 0, o.at[0], 0, &d);

        inside &= wf_pool_reads(p, 1, o.at[1], k / K, &h);
        inside &= wf_pool_reads(p, 2, o.at[2], k % K, &w);
        at[k] = inside ? (d * p.in.extent[1] + h) * p.in.extent[2] + w : -1;
        if (inside)
            raw[k] = wf_load_one(from, at[k]);
    }
    WF_UNROLL
    for (int k = 0; k < K * K; k++)
        if (at[k] >= 0)
            f(at[k], wf_wide_one(from, raw[k]));
}

template <int K, class X, class F>
WF_CODE void wf_pool_each(const wf_pool &p, const wf_pool_place &o, const X &from, F f)
{
    if constexpr (K > 0)
        wf_pool_each_loaded<K>(p, o, from, f);
    else
        wf_pool_each_until(p, o, from, f);
}

/* A NaN is larger than all others; nothing is `lowest`. */
template <class T, int K>
__global__ void wf_pool_largest(wf_pool p, wf_from<T> x, wf_to<T> y, wf_number<T> lowest)
{
    using N = wf_number<T>;

    for (int64_t e = wf_first(); e < (int64_t)p.planes * p.out.size; e += wf_all()) {
        const wf_pool_place o = wf_pool_place_of(p.out, (uint32_t)e);
        N best = lowest;

        wf_pool_each<K>(p, o, x + (int64_t)o.plane * p.in.size, [&](int, N own) {
            best = own > best || own != own ? own : best;
            return false;
        });
        y[e] = best;
    }
}

/* The first element of an output's window that equals y; -1: none does. */
template <class T, int K>
WF_CODE int wf_pool_first(const wf_pool &p, const wf_pool_place &o, const wf_from<T> &from,
                          wf_number<T> y)
{
    int first = -1;

    wf_pool_each<K>(p, o, from, [&](int at, wf_number<T> own) {
        first = first < 0 && own == y ? at : first;
        return first >= 0;
    });
    return first;
}

/* Of windows that are apart; dx of elements in none is 0 already. */
template <class T, int K>
__global__ void wf_pool_give_apart(wf_pool p, wf_from<T> dy, wf_from<T> x, wf_from<T> y,
                                   wf_to<T> dx)
{
    using N = wf_number<T>;

    for (int64_t e = wf_first(); e < (int64_t)p.planes * p.out.size; e += wf_all()) {
        const wf_pool_place o = wf_pool_place_of(p.out, (uint32_t)e);
        const int64_t plane = (int64_t)o.plane * p.in.size;
        const wf_to<T> to = dx + plane;
        const N most = y[e], slope = dy[e];
        bool found = false;

        wf_pool_each<K>(p, o, x + plane, [&](int at, N own) {
            const bool is = !found && own == most;

            to[at] = is ? slope : N(0);
            found |= is;
            return false;
        });
    }
}

template <class T, int K>
__global__ void wf_pool_find_firsts(wf_pool p, wf_from<T> x, wf_from<T> y, int *firsts)
{
    for (int64_t e = wf_first(); e < (int64_t)p.planes * p.out.size; e += wf_all()) {
        const wf_pool_place o = wf_pool_place_of(p.out, (uint32_t)e);

        firsts[e] = wf_pool_first<T, K>(p, o, x + (int64_t)o.plane * p.in.size, y[e]);
    }
}

/* The outputs [*lo, *hi] along axis i whose windows may hold input x. */
WF_CODE void wf_pool_outputs(const wf_pool &p, int i, int x, int *lo, int *hi)
{
    const int at = x + p.before[i], behind = at - (p.kernel[i] - 1) * p.dilation[i];
    const int last = (int)wf_divide((uint32_t)at, p.strides[i]);

    *lo = behind > 0 ? (int)wf_divide((uint32_t)(behind + p.stride[i] - 1), p.strides[i]) : 0;
    *hi = last < p.out.extent[i] ? last : p.out.extent[i] - 1;
}

template <class T>
__global__ void wf_pool_give_found(wf_pool p, wf_from<T> dy, const int *firsts, wf_to<T> dx)
{
    for (int64_t e = wf_first(); e < (int64_t)p.planes * p.in.size; e += wf_all()) {
        const wf_pool_place x = wf_pool_place_of(p.in, (uint32_t)e);
        const int own = (int)e - x.plane * p.in.size;
        const int64_t plane = (int64_t)x.plane * p.out.size;
        int lo[WF_WINDOW_AXES], hi[WF_WINDOW_AXES];
        wf_number<T> sum = 0;

        WF_UNROLL
        for (int i = 0; i < WF_WINDOW_AXES; i++)
            wf_pool_outputs(p, i, x.at[i], &lo[i], &hi[i]);
        for (int d = lo[0]; d <= hi[0]; d++)
            for (int h = lo[1]; h <= hi[1]; h++)
                for (int w = lo[2]; w <= hi[2]; w++) {
                    const int64_t o = plane + (d * p.out.extent[1] + h) * p.out.extent[2] + w;

                    if (firsts[o] == own)
                        sum += dy[o];
                }
        dx[e] = sum;
    }
}

/* f<K>() for the windows of T's: of double and of bytes none has a kernel of its own. */
template <class T, class F> wf_status wf_pool_with_window(const wf_pool &p, F f)
{
    if constexpr (std::is_same_v<wf_number<T>, float>) {
        const bool flat = p.kernel[0] == 1 && p.kernel[1] == p.kernel[2];

        if (flat && p.kernel[1] == 2)
            return f.template operator()<2>();
        if (flat && p.kernel[1] == 3)
            return f.template operator()<3>();
    }
    return f.template operator()<0>();
}

/* Workspace of the gradient. */
static inline int64_t wf_pool_firsts(const wf_pool &p)
{
    return p.fits && !p.apart ? (int64_t)p.planes * p.out.size : 0;
}

template <class T>
wf_status wf_pool_forward(const wf_run *run, const wf_pool &p, wf_from<T> x, wf_to<T> y,
                          wf_number<T> lowest, wf_err *err)
{
    return wf_pool_with_window<T>(p, [&]<int K>() {
        return wf_launch(run, run->node->op->name, wf_pool_largest<T, K>,
                         wf_blocks(run, (int64_t)p.planes * p.out.size), err, p, x, y, lowest);
    });
}

/* in: dy, x, y. firsts: wf_pool_firsts of them. */
template <class T>
wf_status wf_pool_backward(const wf_run *run, const wf_pool &p, const wf_tensor *const in[],
                           int *firsts, wf_tensor *dx, wf_err *err)
{
    const wf_from<T> dy = wf_read<T>(in[0]), x = wf_read<T>(in[1]), y = wf_read<T>(in[2]);
    const unsigned outputs = wf_blocks(run, (int64_t)p.planes * p.out.size);

    if (p.apart && !p.tiles)
        WF_TRY(wf_stream_fill(run->stream, dx->data, 0, wf_tensor_bytes(dx), err));
    if (p.apart)
        return wf_pool_with_window<T>(p, [&]<int K>() {
            return wf_launch(run, "MaxPoolGrad", wf_pool_give_apart<T, K>, outputs, err, p, dy, x,
                             y, wf_write<T>(dx));
        });
    WF_TRY(wf_pool_with_window<T>(p, [&]<int K>() {
        return wf_launch(run, "firsts", wf_pool_find_firsts<T, K>, outputs, err, p, x, y, firsts);
    }));
    return wf_launch(run, "MaxPoolGrad", wf_pool_give_found<T>,
                     wf_blocks(run, (int64_t)p.planes * p.in.size), err, p, dy,
                     static_cast<const int *>(firsts), wf_write<T>(dx));
}

#endif
