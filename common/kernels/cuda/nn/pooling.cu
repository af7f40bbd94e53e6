/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/nn/pooling.cu - MaxPool, AveragePool, LpPool, their global forms, and their
 * gradients. A thread computes an output from its window, and backwards an element from the outputs
 * whose windows hold it; where the window is the whole plane, a block computes it. max_pool.h has
 * what MaxPool does with tensors whose elements 32 bits count, but for its indices. */
#include "common/kernels/cuda/nn/max_pool.h"
#include "common/kernels/cuda/nn/pooling_last.h"
#include "common/kernels/cuda/nn/window.h"
extern "C" {
#include "common/kernels/shape/pooling.h"
}

#include <cmath>

namespace
{

/* A largest element so far, and where it is; -1: none yet. A NaN is larger than all others. */
template <class T> struct top {
    T best;
    int64_t at;

    WF_CODE void look(T x, int64_t i)
    {
        if (at < 0 || x > best || x != x) {
            best = x;
            at = i;
        }
    }
};

/* What no element is smaller than. */
template <class T> __host__ WF_CODE T lowest(void)
{
    return -T(INFINITY);
}
template <> __host__ WF_CODE uint8_t lowest<uint8_t>(void)
{
    return 0;
}

/* For a block's largest: a NaN stays one. */
struct largest {
    template <class T> WF_CODE T operator()(T x, T y) const
    {
        return x > y || x != x ? x : y;
    }
};

/* Element `at` of a plane as MaxPool's indices count. */
WF_CODE int64_t index_of(const wf_pooling &v, int64_t plane, int64_t at)
{
    const int64_t *in = v.s.in;

    if (v.by_columns) {
        int64_t w = at % in[2], h = at / in[2] % in[1], d = at / in[2] / in[1];

        at = d + in[0] * (h + in[1] * w);
    }
    return plane * v.s.in_size + at;
}

template <class T>
__global__ void find_largest(wf_pooling v, wf_from<T> x, wf_to<T> y, int64_t *index)
{
    using N = wf_number<T>;

    for (int64_t e = wf_first(); e < v.planes * v.s.out_size; e += wf_all()) {
        int64_t plane = e / v.s.out_size;
        const wf_from<T> from = x + plane * v.s.in_size;
        top<N> t = {lowest<N>(), -1};

        wf_each_input(v.s, e % v.s.out_size, [&](int64_t at, int64_t) {
            t.look(from[at], at);
            return false;
        });
        if (y)
            y[e] = t.best;
        if (index)
            index[e] = index_of(v, plane, t.at < 0 ? 0 : t.at);
    }
}

template <class T> __global__ void find_largest_of_planes(wf_pooling v, wf_from<T> x, wf_to<T> y)
{
    using N = wf_number<T>;

    for (int64_t p = blockIdx.x; p < v.planes; p += gridDim.x) {
        N all = lowest<N>();

        for (int64_t i = threadIdx.x; i < v.s.in_size; i += blockDim.x)
            all = largest()(all, x[p * v.s.in_size + i]);
        all = wf_join_block(all, lowest<N>(), largest());
        if (threadIdx.x == 0)
            y[p] = all;
    }
}

/* dy goes to the first element of a window that equals y. */
template <class T>
__global__ void give_to_largest(wf_pooling v, wf_from<T> dy, wf_from<T> x, wf_from<T> y,
                                wf_to<T> dx)
{
    using N = wf_number<T>;

    for (int64_t e = wf_first(); e < v.planes * v.s.in_size; e += wf_all()) {
        int64_t plane = e / v.s.in_size, own = e % v.s.in_size;
        const wf_from<T> from = x + plane * v.s.in_size;
        N sum = 0;

        wf_each_output(v.s, own, [&](int64_t o, int64_t) {
            N most = y[plane * v.s.out_size + o];
            int64_t first = -1;

            if (x[e] != most)
                return;
            wf_each_input(v.s, o, [&](int64_t at, int64_t) {
                first = at;
                return from[at] == most;
            });
            if (first == own)
                sum += dy[plane * v.s.out_size + o];
        });
        dx[e] = sum;
    }
}

template <class T>
__global__ void give_to_largest_of_planes(wf_pooling v, wf_from<T> dy, wf_from<T> x, wf_from<T> y,
                                          wf_to<T> dx)
{
    using N = wf_number<T>;

    for (int64_t p = blockIdx.x; p < v.planes; p += gridDim.x) {
        const int64_t n = v.s.in_size;
        int64_t first = n;

        for (int64_t i = threadIdx.x; i < n; i += blockDim.x)
            if (x[p * n + i] == y[p])
                first = wf_lower()(first, i);
        first = wf_join_block(first, n, wf_lower());
        for (int64_t i = threadIdx.x; i < n; i += blockDim.x)
            dx[p * n + i] = i == first ? dy[p] : N(0);
    }
}

/* 1 / elements that count of output o's window: those inside or, with the padding, all. */
WF_CODE double share_of(const wf_pooling &v, int64_t o)
{
    const int64_t where[WF_WINDOW_AXES] = {o / v.s.out[2] / v.s.out[1], o / v.s.out[2] % v.s.out[1],
                                           o % v.s.out[2]};
    double share = 1;

    for (unsigned i = 0; i < WF_WINDOW_AXES; i++) {
        wf_range taps = wf_taps(v.s, i, where[i]);
        int64_t inside = taps.hi > taps.lo ? taps.hi - taps.lo : 1;

        share *= 1.0 / (double)(v.pads ? v.s.w.kernel[i] : inside);
    }
    return share;
}

template <class T> __global__ void average(wf_pooling v, wf_from<T> x, wf_to<T> y)
{
    using N = wf_number<T>;

    for (int64_t e = wf_first(); e < v.planes * v.s.out_size; e += wf_all()) {
        int64_t o = e % v.s.out_size;
        const wf_from<T> from = x + e / v.s.out_size * v.s.in_size;
        N sum = 0;

        wf_each_input(v.s, o, [&](int64_t at, int64_t) {
            sum += from[at];
            return false;
        });
        y[e] = sum * (N)share_of(v, o);
    }
}

template <class T> __global__ void average_planes(wf_pooling v, wf_from<T> x, wf_to<T> y)
{
    using N = wf_number<T>;

    for (int64_t p = blockIdx.x; p < v.planes; p += gridDim.x) {
        double sum = 0;

        for (int64_t i = threadIdx.x; i < v.s.in_size; i += blockDim.x)
            sum += (double)x[p * v.s.in_size + i];
        sum = wf_join_block(sum, 0.0, wf_plus());
        if (threadIdx.x == 0)
            y[p] = (N)(sum / (double)v.s.in_size);
    }
}

template <class T> __global__ void give_shares(wf_pooling v, wf_from<T> dy, wf_to<T> dx)
{
    using N = wf_number<T>;

    for (int64_t e = wf_first(); e < v.planes * v.s.in_size; e += wf_all()) {
        const wf_from<T> from = dy + e / v.s.in_size * v.s.out_size;
        N sum = 0;

        wf_each_output(v.s, e % v.s.in_size,
                       [&](int64_t o, int64_t) { sum += from[o] * (N)share_of(v, o); });
        dx[e] = sum;
    }
}

template <class T> __global__ void find_lengths(wf_pooling v, const T *x, T *y)
{
    for (int64_t e = wf_first(); e < v.planes * v.s.out_size; e += wf_all()) {
        const T *from = x + e / v.s.out_size * v.s.in_size;
        T sum = 0;

        wf_each_input(v.s, e % v.s.out_size, [&](int64_t at, int64_t) {
            sum += std::pow(std::fabs(from[at]), (T)v.p);
            return false;
        });
        y[e] = std::pow(sum, (T)(1.0 / v.p));
    }
}

/* dx = dy sign(x) (|x| / y)^(p - 1); 0 where y is. */
template <class T>
__global__ void length_grads(wf_pooling v, const T *dy, const T *x, const T *y, T *dx)
{
    for (int64_t e = wf_first(); e < v.planes * v.s.in_size; e += wf_all()) {
        int64_t at = e / v.s.in_size * v.s.out_size;
        T sum = 0, own = x[e];

        wf_each_output(v.s, e % v.s.in_size, [&](int64_t o, int64_t) {
            T of_y = y[at + o], of_dy = dy[at + o];

            if (of_y != 0 && own != 0)
                sum += (own < 0 ? -of_dy : of_dy) * std::pow(std::fabs(own) / of_y, (T)(v.p - 1));
        });
        dx[e] = sum;
    }
}

struct plan {
    wf_pooling v;
    wf_pool max; /* of MaxPool and its gradient */
};

wf_status prepare(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                  wf_err *err)
{
    plan *p;

    WF_TRY(wf_new_plan(prep, &p, err));
    WF_TRY(wf_pooling_of(prep->node, in[0], out[0] ? out[0] : out[1], &p->v, err));
    p->max = wf_pool_of(p->v);
    return WF_OK;
}

/* dy, x, (y) -> dx. */
wf_status prepare_grad(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                       wf_err *err)
{
    plan *p;

    (void)out;
    WF_TRY(wf_new_plan(prep, &p, err));
    return wf_pooling_grad_of(prep->node, in, &p->v, err);
}

wf_status prepare_max_grad(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                           wf_err *err)
{
    plan *p;

    WF_TRY(prepare_grad(prep, in, out, err));
    p = static_cast<plan *>(prep->state);
    p->max = wf_pool_of(p->v);
    prep->workspace_bytes = (size_t)wf_pool_firsts(p->max) * sizeof(int);
    return WF_OK;
}

/* Blocks for the elements of all planes, of which each has n. */
unsigned blocks_of(const wf_run *run, const wf_pooling &v, int64_t n)
{
    return wf_blocks(run, v.planes * n);
}

/* Launches a kernel whose blocks compute whole planes. */
template <class... P, class... A>
wf_status by_planes(const wf_run *run, void (*kernel)(wf_pooling, P...), const wf_pooling &v,
                    wf_err *err, A... given)
{
    return wf_launch_meeting(run, run->node->op->name, kernel, blocks_of(run, v, WF_BLOCK),
                             wf_threads(v.s.in_size), err, v, given...);
}

template <class T>
wf_status max_pool(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                   wf_err *err)
{
    const wf_pooling &v = static_cast<const plan *>(run->state)->v;
    const wf_from<T> x = wf_read<T>(in[0]);
    const wf_to<T> y = wf_write<T>(out[0]);

    if (v.whole && y && !out[1])
        return by_planes(run, find_largest_of_planes<T>, v, err, x, y);
    if (y && !out[1] && static_cast<const plan *>(run->state)->max.fits)
        return wf_pool_forward<T>(run, static_cast<const plan *>(run->state)->max, x, y,
                                  lowest<wf_number<T>>(), err);
    return wf_launch(run, run->node->op->name, find_largest<T>, blocks_of(run, v, v.s.out_size),
                     err, v, x, y, wf_out<int64_t>(out[1]));
}

template <class T>
wf_status max_pool_grad(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                        wf_err *err)
{
    const wf_pooling &v = static_cast<const plan *>(run->state)->v;
    const wf_from<T> dy = wf_read<T>(in[0]), x = wf_read<T>(in[1]), y = wf_read<T>(in[2]);
    const wf_to<T> dx = wf_write<T>(out[0]);

    if (v.whole)
        return by_planes(run, give_to_largest_of_planes<T>, v, err, dy, x, y, dx);
    if (static_cast<const plan *>(run->state)->max.fits)
        return wf_pool_backward<T>(run, static_cast<const plan *>(run->state)->max, in,
                                   static_cast<int *>(run->workspace), out[0], err);
    return wf_launch(run, "MaxPoolGrad", give_to_largest<T>, blocks_of(run, v, v.s.in_size), err, v,
                     dy, x, y, dx);
}

template <class T>
wf_status average_pool(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                       wf_err *err)
{
    const wf_pooling &v = static_cast<const plan *>(run->state)->v;
    const wf_from<T> x = wf_read<T>(in[0]);
    const wf_to<T> y = wf_write<T>(out[0]);

    if (v.whole)
        return by_planes(run, average_planes<T>, v, err, x, y);
    return wf_launch(run, run->node->op->name, average<T>, blocks_of(run, v, v.s.out_size), err, v,
                     x, y);
}

template <class T>
wf_status average_pool_grad(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                            wf_err *err)
{
    const wf_pooling &v = static_cast<const plan *>(run->state)->v;

    return wf_launch(run, "AveragePoolGrad", give_shares<T>, blocks_of(run, v, v.s.in_size), err, v,
                     wf_read<T>(in[0]), wf_write<T>(out[0]));
}

template <class T>
wf_status lp_pool(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                  wf_err *err)
{
    const wf_pooling &v = static_cast<const plan *>(run->state)->v;

    return wf_launch(run, "LpPool", find_lengths<T>, blocks_of(run, v, v.s.out_size), err, v,
                     wf_in<T>(in[0]), wf_out<T>(out[0]));
}

template <class T>
wf_status lp_pool_grad(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                       wf_err *err)
{
    const wf_pooling &v = static_cast<const plan *>(run->state)->v;

    return wf_launch(run, "LpPoolGrad", length_grads<T>, blocks_of(run, v, v.s.in_size), err, v,
                     wf_in<T>(in[0]), wf_in<T>(in[1]), wf_in<T>(in[2]), wf_out<T>(out[0]));
}

} // namespace

#define ROW(name, dtype, fn)                                                                       \
    {                                                                                              \
        .op = name, .dtypes = WF_TYPE(dtype), .prepare = prepare, .run = fn                        \
    }
#define GRAD(name, dtype, fn)                                                                      \
    {                                                                                              \
        .op = name, .domain = WF_DOMAIN_WEFT, .dtypes = WF_TYPE(dtype), .prepare = prepare_grad,   \
        .run = fn                                                                                  \
    }
#define NARROW(name, domain_, prepare_, fn)                                                        \
    {                                                                                              \
        .op = name, .domain = domain_, .dtypes = WF_TYPE(WF_F32), .is_narrow = true,               \
        .prepare = prepare_, .run = wf_wide_or_narrow<fn<float>, fn<wf_narrow>>                    \
    }
/* The same of an operation whose images may have their channels last. */
#define ORDERED(name, domain_, prepare_, prepare_last, fn)                                         \
    {                                                                                              \
        .op = name, .domain = domain_, .dtypes = WF_TYPE(WF_F32), .is_narrow = true,               \
        .prepare = wf_prepare_by_order<prepare_, prepare_last>,                                    \
        .run = wf_run_by_order<wf_wide_or_narrow<fn<float>, fn<wf_narrow>>, fn##_last>             \
    }
#define ROWS(name, fn) ROW(name, WF_F32, fn<float>), ROW(name, WF_F64, fn<double>)
#define GRADS(name, fn) GRAD(name, WF_F32, fn<float>), GRAD(name, WF_F64, fn<double>)

WF_CUDA_ROWS(pooling){
    ORDERED("AveragePool", nullptr, prepare, prepare_last, average_pool),
    ROW("AveragePool", WF_F64, average_pool<double>),
    ORDERED("GlobalAveragePool", nullptr, prepare, prepare_last, average_pool),
    ROW("GlobalAveragePool", WF_F64, average_pool<double>),
    NARROW("GlobalMaxPool", nullptr, prepare, max_pool),
    ROW("GlobalMaxPool", WF_F64, max_pool<double>),
    ROWS("LpPool", lp_pool),
    ORDERED("MaxPool", nullptr, prepare, prepare_last, max_pool),
    ROW("MaxPool", WF_F64, max_pool<double>),
    ROW("MaxPool", WF_U8, max_pool<uint8_t>),
    ORDERED("AveragePoolGrad", WF_DOMAIN_WEFT, prepare_grad, prepare_grad_last, average_pool_grad),
    GRAD("AveragePoolGrad", WF_F64, average_pool_grad<double>),
    GRADS("LpPoolGrad", lp_pool_grad),
    ORDERED("MaxPoolGrad", WF_DOMAIN_WEFT, prepare_max_grad, prepare_grad_last, max_pool_grad),
    {.op = "MaxPoolGrad",
     .domain = WF_DOMAIN_WEFT,
     .dtypes = WF_TYPE(WF_F64),
     .prepare = prepare_max_grad,
     .run = max_pool_grad<double>},
    {},
};
