/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/nn/pooling_last.h - MaxPool, AveragePool, the global one and their gradients
 * over narrow images whose channels are last in memory: a thread computes eight channels of a
 * place. The side of the outputs may be float32. For pooling.cu.
 *
 * Such an image has less than 2^31 elements (common/exec/layout.c), so places are counted in 32
 * bits. */
#ifndef WF_KERNELS_CUDA_POOLING_LAST_H
#define WF_KERNELS_CUDA_POOLING_LAST_H

#include "common/kernels/cuda/eights.h"
#include "common/kernels/cuda/memory.h"
extern "C" {
#include "common/kernels/shape/pooling.h"
}

#include <cmath>

namespace
{

/* Along one axis. */
struct last_axis {
    int in, out, kernel, stride, dilation, before;

    /* Where output o reads by a tap; negative: in the padding. */
    WF_CODE int reads(int o, int tap) const
    {
        const int at = o * stride + tap * dilation - before;

        return at < in ? at : -1;
    }
    /* The first output whose window may hold input i; the last one is that of tap 0. */
    WF_CODE int first_of(int i) const
    {
        const int least = i + before - (kernel - 1) * dilation;

        return least <= 0 ? 0 : (least + stride - 1) / stride;
    }
    /* The tap by which output o reads input i; -1: none. */
    WF_CODE int tap_of(int o, int i) const
    {
        const int at = i + before - o * stride;

        return at >= 0 && at % dilation == 0 && at / dilation < kernel ? at / dilation : -1;
    }
    /* Taps of output o that lie inside. */
    WF_CODE int inside(int o) const
    {
        int n = 0;

        for (int k = 0; k < kernel; k++)
            n += reads(o, k) >= 0;
        return n;
    }
};

struct pool_last {
    last_axis h, w;
    unsigned images, eights; /* eights: of a place */
    bool pads;               /* AveragePool counts the padding */
    wf_dtype type;
};

/* The eight channels of a place that a thread computes. */
struct last_place {
    unsigned image, eight;
    int h, w;
};

/* Number e of those of images of h by w places. */
WF_CODE last_place place_of(const pool_last &p, unsigned e, unsigned h, unsigned w)
{
    const unsigned place = e / p.eights;

    return {place / w / h, e % p.eights, (int)(place / w % h), (int)(place % w)};
}

WF_CODE unsigned in_at(const pool_last &p, const last_place &at, int h, int w)
{
    return ((at.image * (unsigned)p.h.in + (unsigned)h) * (unsigned)p.w.in + (unsigned)w) *
               p.eights +
           at.eight;
}

WF_CODE unsigned out_at(const pool_last &p, const last_place &at, int h, int w)
{
    return ((at.image * (unsigned)p.h.out + (unsigned)h) * (unsigned)p.w.out + (unsigned)w) *
               p.eights +
           at.eight;
}

WF_CODE unsigned first_eight(void)
{
    return blockIdx.x * blockDim.x + threadIdx.x;
}

WF_CODE unsigned n_in(const pool_last &p)
{
    return p.images * (unsigned)p.h.in * (unsigned)p.w.in * p.eights;
}

WF_CODE unsigned n_out(const pool_last &p)
{
    return p.images * (unsigned)p.h.out * (unsigned)p.w.out * p.eights;
}

/* Calls f(place in x) for what output (oh, ow) reads, in order, until f says true. */
template <class F>
WF_CODE void each_input_last(const pool_last &p, const last_place &at, int oh, int ow, F f)
{
    for (int kh = 0; kh < p.h.kernel; kh++) {
        const int h = p.h.reads(oh, kh);

        for (int kw = 0; h >= 0 && kw < p.w.kernel; kw++) {
            const int w = p.w.reads(ow, kw);

            if (w >= 0 && f(in_at(p, at, h, w)))
                return;
        }
    }
}

/* Calls f(oh, ow) for the outputs whose windows hold the input of the place, in order. */
template <class F> WF_CODE void each_output_last(const pool_last &p, const last_place &at, F f)
{
    for (int oh = p.h.first_of(at.h); oh < p.h.out && oh * p.h.stride <= at.h + p.h.before; oh++)
        for (int ow = p.w.first_of(at.w); ow < p.w.out && ow * p.w.stride <= at.w + p.w.before;
             ow++)
            if (p.h.tap_of(oh, at.h) >= 0 && p.w.tap_of(ow, at.w) >= 0)
                f(oh, ow);
}

/* A NaN is larger than all others. */
template <wf_dtype TYPE>
__global__ void find_largest_last(pool_last p, const wf_eight *x, wf_narrow_to y)
{
    for (unsigned e = first_eight(); e < n_out(p); e += gridDim.x * blockDim.x) {
        const last_place at = place_of(p, e, (unsigned)p.h.out, (unsigned)p.w.out);
        wf_wide_eight most;

        for (int j = 0; j < WF_EIGHT; j++)
            most.v[j] = -INFINITY;
        each_input_last(p, at, at.h, at.w, [&](unsigned i) {
            const wf_wide_eight of = wf_widen_eight<TYPE>(x[i]);

            for (int j = 0; j < WF_EIGHT; j++)
                most.v[j] = of.v[j] > most.v[j] || of.v[j] != of.v[j] ? of.v[j] : most.v[j];
            return false;
        });
        wf_store_eight<TYPE>(y, e, most);
    }
}

/* Of the channels in `set`, those in which no input before `own` in the window of (oh, ow) is the
 * largest. */
template <wf_dtype TYPE>
WF_CODE unsigned first_of_equals(const pool_last &p, const last_place &at, int oh, int ow,
                                 const wf_eight *x, unsigned own, const wf_wide_eight &most,
                                 unsigned set)
{
    each_input_last(p, at, oh, ow, [&](unsigned i) {
        if (i == own || set == 0)
            return true;
        const wf_wide_eight of = wf_widen_eight<TYPE>(x[i]);

        for (int j = 0; j < WF_EIGHT; j++)
            if (of.v[j] == most.v[j])
                set &= ~(1u << j);
        return false;
    });
    return set;
}

/* dy goes to the first element of a window that equals y. */
template <wf_dtype TYPE>
__global__ void give_to_largest_last(pool_last p, wf_narrow_from dy, const wf_eight *x,
                                     wf_narrow_from y, wf_eight *dx)
{
    for (unsigned e = first_eight(); e < n_in(p); e += gridDim.x * blockDim.x) {
        const last_place at = place_of(p, e, (unsigned)p.h.in, (unsigned)p.w.in);
        const wf_wide_eight own = wf_widen_eight<TYPE>(x[e]);
        wf_wide_eight sum = {};

        each_output_last(p, at, [&](int oh, int ow) {
            const unsigned o = out_at(p, at, oh, ow);
            const wf_wide_eight most = wf_load_eight<TYPE>(y, o);
            unsigned set = 0;

            for (int j = 0; j < WF_EIGHT; j++)
                set |= (unsigned)(own.v[j] == most.v[j]) << j;
            if (set)
                set = first_of_equals<TYPE>(p, at, oh, ow, x, e, most, set);
            if (set == 0)
                return;
            const wf_wide_eight given = wf_load_eight<TYPE>(dy, o);

            for (int j = 0; j < WF_EIGHT; j++)
                sum.v[j] += set >> j & 1u ? given.v[j] : 0;
        });
        dx[e] = wf_narrow_eight<TYPE>(sum);
    }
}

/* 1 / elements that count of the window of (oh, ow): those inside or, with the padding, all. */
WF_CODE float share_last(const pool_last &p, int oh, int ow)
{
    const int n = p.pads ? p.h.kernel * p.w.kernel : p.h.inside(oh) * p.w.inside(ow);

    return 1.0f / (float)(n > 0 ? n : 1);
}

template <wf_dtype TYPE>
__global__ void average_last(pool_last p, const wf_eight *x, wf_narrow_to y)
{
    for (unsigned e = first_eight(); e < n_out(p); e += gridDim.x * blockDim.x) {
        const last_place at = place_of(p, e, (unsigned)p.h.out, (unsigned)p.w.out);
        const float share = share_last(p, at.h, at.w);
        wf_wide_eight sum = {};

        each_input_last(p, at, at.h, at.w, [&](unsigned i) {
            const wf_wide_eight of = wf_widen_eight<TYPE>(x[i]);

            for (int j = 0; j < WF_EIGHT; j++)
                sum.v[j] += of.v[j];
            return false;
        });
        for (int j = 0; j < WF_EIGHT; j++)
            sum.v[j] *= share;
        wf_store_eight<TYPE>(y, e, sum);
    }
}

template <wf_dtype TYPE>
__global__ void give_shares_last(pool_last p, wf_narrow_from dy, wf_eight *dx)
{
    for (unsigned e = first_eight(); e < n_in(p); e += gridDim.x * blockDim.x) {
        const last_place at = place_of(p, e, (unsigned)p.h.in, (unsigned)p.w.in);
        wf_wide_eight sum = {};

        each_output_last(p, at, [&](int oh, int ow) {
            const wf_wide_eight given = wf_load_eight<TYPE>(dy, out_at(p, at, oh, ow));
            const float share = share_last(p, oh, ow);

            for (int j = 0; j < WF_EIGHT; j++)
                sum.v[j] += given.v[j] * share;
        });
        dx[e] = wf_narrow_eight<TYPE>(sum);
    }
}

last_axis axis_of(const wf_spatial &s, unsigned i)
{
    return {(int)s.in[i],       (int)s.out[i],        (int)s.w.kernel[i],
            (int)s.w.stride[i], (int)s.w.dilation[i], (int)s.w.before[i]};
}

/* A tensor's extents as the geometry wants them. */
wf_tensor in_order(const wf_tensor *t, bool last)
{
    return last ? wf_channels_second(t) : *t;
}

/* From the geometry of x and y, of which y may be a single place, which is the same in both orders.
 */
wf_status plan_last(wf_prep *prep, const wf_tensor &x, const wf_tensor &y, wf_err *err)
{
    wf_pooling v;
    pool_last *p;

    WF_TRY(wf_new_plan(prep, &p, err));
    WF_TRY(wf_pooling_of(prep->node, &x, &y, &v, err));
    *p = {axis_of(v.s, 1), axis_of(v.s, 2), (unsigned)x.dims[0], (unsigned)(x.dims[1] / WF_EIGHT),
          v.pads,          x.dtype};
    return WF_OK;
}

wf_status prepare_last(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                       wf_err *err)
{
    return plan_last(prep, in_order(in[0], true),
                     in_order(out[0], wf_out_is_channels_last(prep->node, 0)), err);
}

/* dy, x, (y) -> dx. */
wf_status prepare_grad_last(wf_prep *prep, const wf_tensor *const in[],
                            const wf_tensor *const out[], wf_err *err)
{
    (void)out;
    return plan_last(prep, in_order(in[1], true),
                     in_order(in[0], wf_in_is_channels_last(prep->node, 0)), err);
}

/* Launches one of two kernels, by the type, with a thread for each eight of `of`. */
template <class... K, class... A>
wf_status by_type(const wf_run *run, void (*bf16)(pool_last, K...), void (*f16)(pool_last, K...),
                  const wf_tensor *of, wf_err *err, A... given)
{
    const pool_last &p = *static_cast<const pool_last *>(run->state);

    return wf_launch(run, run->node->op->name, p.type == WF_BF16 ? bf16 : f16,
                     wf_blocks(run, wf_elems(of) / WF_EIGHT), err, p, given...);
}

wf_status max_pool_last(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                        wf_err *err)
{
    return by_type(run, find_largest_last<WF_BF16>, find_largest_last<WF_F16>, out[0], err,
                   wf_eights_in(in[0]), wf_write<wf_narrow>(out[0]));
}

wf_status max_pool_grad_last(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                             wf_err *err)
{
    return by_type(run, give_to_largest_last<WF_BF16>, give_to_largest_last<WF_F16>, out[0], err,
                   wf_read<wf_narrow>(in[0]), wf_eights_in(in[1]), wf_read<wf_narrow>(in[2]),
                   wf_eights_out(out[0]));
}

wf_status average_pool_last(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                            wf_err *err)
{
    return by_type(run, average_last<WF_BF16>, average_last<WF_F16>, out[0], err,
                   wf_eights_in(in[0]), wf_write<wf_narrow>(out[0]));
}

wf_status average_pool_grad_last(const wf_run *run, const wf_tensor *const in[],
                                 wf_tensor *const out[], wf_err *err)
{
    return by_type(run, give_shares_last<WF_BF16>, give_shares_last<WF_F16>, out[0], err,
                   wf_read<wf_narrow>(in[0]), wf_eights_out(out[0]));
}

} // namespace

#endif
