/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/norm/lrn.cu - LRN and LRNGrad; shape/norm.h has the formula. A thread
 * computes an element from those of the neighbouring channels. */
#include "common/kernels/cuda/memory.h"
extern "C" {
#include "common/kernels/shape/norm.h"
}

#include <cmath>

namespace
{

struct plan {
    wf_lrn v;
    int64_t elems;
    size_t powers, shares; /* in the workspace: s^-beta; dy x s^(-beta - 1) */
};

/* Channels [from, to) that lie up to `before` in front of element i's, and `after` behind it. */
struct span {
    int64_t channel, from, to;
};

WF_CODE span span_of(const wf_lrn &v, int64_t i, int64_t before, int64_t after)
{
    int64_t c = i / v.inner % v.channels;

    return {c, c > before ? c - before : 0, c + after < v.channels ? c + after + 1 : v.channels};
}

/* s of element i. */
template <class T> WF_CODE T sum_at(const wf_lrn &v, const T *x, int64_t i)
{
    span s = span_of(v, i, (v.size - 1) / 2, v.size / 2);
    T sum = 0;

    for (int64_t k = s.from; k < s.to; k++) {
        T one = x[i + (k - s.channel) * v.inner];

        sum += one * one;
    }
    return (T)v.bias + (T)(v.alpha / (double)v.size) * sum;
}

template <class T> __global__ void respond(plan p, const T *x, T *y)
{
    for (int64_t i = wf_first(); i < p.elems; i += wf_all())
        y[i] = x[i] * std::pow(sum_at(p.v, x, i), (T)-p.v.beta);
}

template <class T>
__global__ void find_shares(plan p, const T *dy, const T *x, T *powers, T *shares)
{
    for (int64_t i = wf_first(); i < p.elems; i += wf_all()) {
        T s = sum_at(p.v, x, i), y = std::pow(s, (T)-p.v.beta);

        powers[i] = y;
        shares[i] = dy[i] * x[i] * y / s;
    }
}

/* Channel c lies in the windows of those from c - size / 2 on. */
template <class T>
__global__ void grads(plan p, const T *dy, const T *x, const T *powers, const T *shares, T *dx)
{
    const T factor = (T)(2 * p.v.alpha * p.v.beta / (double)p.v.size);

    for (int64_t i = wf_first(); i < p.elems; i += wf_all()) {
        span s = span_of(p.v, i, p.v.size / 2, (p.v.size - 1) / 2);
        T sum = 0;

        for (int64_t k = s.from; k < s.to; k++)
            sum += shares[i + (k - s.channel) * p.v.inner];
        dx[i] = dy[i] * powers[i] - factor * x[i] * sum;
    }
}

wf_status prepare(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                  wf_err *err)
{
    plan *p;

    (void)out;
    WF_TRY(wf_new_plan(prep, &p, err));
    p->elems = wf_elems(in[0]);
    return wf_lrn_of(prep->node, in[0], &p->v, err);
}

wf_status prepare_grad(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                       wf_err *err)
{
    const size_t size = wf_dtype_size(in[0]->dtype);
    plan *p;

    (void)out;
    WF_TRY(wf_new_plan(prep, &p, err));
    p->elems = wf_elems(in[0]);
    WF_TRY(wf_lrn_grad_of(prep->node, in[0], in[1], &p->v, err));
    WF_TRY(wf_take_room(prep, p->elems, size, &p->powers, err));
    return wf_take_room(prep, p->elems, size, &p->shares, err);
}

template <class T>
wf_status lrn(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[], wf_err *err)
{
    const plan *p = static_cast<const plan *>(run->state);

    return wf_launch(run, "LRN", respond<T>, wf_blocks(run, p->elems), err, *p, wf_in<T>(in[0]),
                     wf_out<T>(out[0]));
}

template <class T>
wf_status lrn_grad(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                   wf_err *err)
{
    const plan *p = static_cast<const plan *>(run->state);
    const T *dy = wf_in<T>(in[0]), *x = wf_in<T>(in[1]);
    T *powers = wf_room<T>(run, p->powers), *shares = wf_room<T>(run, p->shares);

    WF_TRY(wf_launch(run, "shares", find_shares<T>, wf_blocks(run, p->elems), err, *p, dy, x,
                     powers, shares));
    return wf_launch(run, "LRNGrad", grads<T>, wf_blocks(run, p->elems), err, *p, dy, x,
                     static_cast<const T *>(powers), static_cast<const T *>(shares),
                     wf_out<T>(out[0]));
}

} // namespace

WF_CUDA_ROWS(lrn){
    {.op = "LRN", .dtypes = WF_TYPE(WF_F32), .prepare = prepare, .run = lrn<float>},
    {.op = "LRN", .dtypes = WF_TYPE(WF_F64), .prepare = prepare, .run = lrn<double>},
    {.op = "LRNGrad",
     .domain = WF_DOMAIN_WEFT,
     .dtypes = WF_TYPE(WF_F32),
     .prepare = prepare_grad,
     .run = lrn_grad<float>},
    {.op = "LRNGrad",
     .domain = WF_DOMAIN_WEFT,
     .dtypes = WF_TYPE(WF_F64),
     .prepare = prepare_grad,
     .run = lrn_grad<double>},
    {},
};
