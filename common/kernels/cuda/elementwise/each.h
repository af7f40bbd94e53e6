/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/elementwise/each.h - elementwise kernels of one, two and any number of
 * operands, from one function.
 *
 *     struct negate { template <class T> WF_CODE T operator()(T x) const { return -x; } };
 *     {.op = "Neg", ..., .run = wf_each<float, float, negate>}
 *
 * With wf_narrow for float they take tensors of which some are narrow (narrow.h).
 */
#ifndef WF_KERNELS_CUDA_EACH_H
#define WF_KERNELS_CUDA_EACH_H

#include "common/kernels/cuda/narrow.h"

template <class T, class R, class F>
__global__ void wf_each_element(wf_from<T> x, wf_to<R> out, int64_t n, F f)
{
    for (int64_t i = wf_first(); i < n; i += wf_all())
        out[i] = (wf_number<R>)f(x[i]);
}

/* out[i] = f(x[i]), an R of a T. */
template <class T, class R, class F>
wf_status wf_each(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                  wf_err *err)
{
    int64_t n = wf_elems(out[0]);

    if (n == 0)
        return WF_OK;
    return wf_launch(run, run->node->op->name, wf_each_element<T, R, F>, wf_blocks(run, n), err,
                     wf_read<T>(in[0]), wf_write<R>(out[0]), n, F{});
}

/* How far operand k is at element i of a walk. */
WF_CODE int64_t wf_at(const wf_walk &w, int k, int64_t i)
{
    int64_t at = 0;

    for (unsigned axis = w.rank; axis-- > 1;) {
        at += i % w.dims[axis] * w.strides[k][axis];
        i /= w.dims[axis];
    }
    return at + i * w.strides[k][0];
}

template <class T, class R, class F>
__global__ void wf_each_pair(wf_from<T> x, wf_from<T> y, wf_to<R> out, wf_walk w, F f)
{
    for (int64_t i = wf_first(); i < w.elems; i += wf_all())
        out[i] = (wf_number<R>)f(x[wf_at(w, 0, i)], y[wf_at(w, 1, i)]);
}

/* out[i] = f(x, y), an R of Ts, which are broadcast. */
template <class T, class R, class F>
wf_status wf_both(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                  wf_err *err)
{
    wf_walk w;

    if (wf_elems(out[0]) == 0)
        return WF_OK;
    wf_walk_broadcast(&w, out[0], 2, in);
    return wf_launch(run, run->node->op->name, wf_each_pair<T, R, F>, wf_blocks(run, w.elems), err,
                     wf_read<T>(in[0]), wf_read<T>(in[1]), wf_write<R>(out[0]), w, F{});
}

/* out = f(... f(f(in[0], in[1]), in[2]) ...), broadcast: what is joined so far lies in `out`. */
template <class T, class F>
wf_status wf_fold(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                  wf_err *err)
{
    const wf_tensor *pair[2] = {in[0], nullptr};

    if (run->node->n_in == 1)
        return wf_stream_copy(run->stream, WF_COPY_WITHIN, out[0]->data, in[0]->data,
                              wf_tensor_bytes(in[0]), err);
    for (uint32_t i = 1; i < run->node->n_in; i++) {
        pair[1] = in[i];
        WF_TRY((wf_both<T, T, F>(run, pair, out, err)));
        pair[0] = out[0];
    }
    return WF_OK;
}

#endif
