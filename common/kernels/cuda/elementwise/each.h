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

/* The first fours of n elements, and then the others. */
template <class T, class R, class F>
__global__ void wf_each_element(wf_from<T> x, wf_to<R> out, int64_t n, int64_t fours, F f)
{
    wf_each_ahead(
        wf_first(), wf_all(), fours, [&](int64_t i) { return wf_load_four(x, 4 * i); },
        [&](int64_t i, auto raw) {
            wf_four<wf_number<T>> v = wf_wide_four(x, raw);
            wf_four<wf_number<R>> all;

            WF_UNROLL
            for (int k = 0; k < 4; k++)
                all.v[k] = (wf_number<R>)f(v.v[k]);
            wf_store_four(out, 4 * i, all);
        });
    for (int64_t i = 4 * fours + wf_first(); i < n; i += wf_all())
        out[i] = (wf_number<R>)f(x[i]);
}

/* out[i] = f(x[i]), an R of a T. */
template <class T, class R, class F>
wf_status wf_each(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                  wf_err *err)
{
    int64_t n = wf_elems(out[0]), fours = wf_has_fours(in[0]) && wf_has_fours(out[0]) ? n / 4 : 0;

    if (n == 0)
        return WF_OK;
    return wf_launch(run, run->node->op->name, wf_each_element<T, R, F>,
                     wf_blocks(run, fours ? fours : n), err, wf_read<T>(in[0]), wf_write<R>(out[0]),
                     n, fours, F{});
}

/* How far operands 0, ..., K - 1 are at element i of a walk. Numbers of 32 bits are divided in a
 * fraction of the time that 64 take. */
template <int K> struct wf_places_at {
    int64_t at[K];
};

template <int K> WF_CODE wf_places_at<K> wf_at_all(const wf_walk &w, int64_t i)
{
    wf_places_at<K> all = {};

    WF_ROLLED
    for (unsigned axis = w.rank; axis-- > 1;) {
        const int64_t before =
            w.elems <= UINT32_MAX ? (uint32_t)i / (uint32_t)w.dims[axis] : i / w.dims[axis];

        WF_UNROLL
        for (int k = 0; k < K; k++)
            all.at[k] += (i - before * w.dims[axis]) * w.strides[k][axis];
        i = before;
    }
    WF_UNROLL
    for (int k = 0; k < K; k++)
        all.at[k] += i * w.strides[k][0];
    return all;
}

/* How far operand k is at element i of a walk. */
WF_CODE int64_t wf_at(const wf_walk &w, int k, int64_t i)
{
    int64_t at = 0;

    WF_ROLLED
    for (unsigned axis = w.rank; axis-- > 1;) {
        const int64_t before =
            w.elems <= UINT32_MAX ? (uint32_t)i / (uint32_t)w.dims[axis] : i / w.dims[axis];

        at += (i - before * w.dims[axis]) * w.strides[k][axis];
        i = before;
    }
    return at + i * w.strides[k][0];
}

/* A walk of two operands in fours along its inner axis, where `four` says whether an operand has
 * four elements for them, or one. `elems` of it is 0 where that is not possible. */
struct wf_pair_of_fours {
    wf_walk w;
    bool four[2];
};

static inline wf_pair_of_fours wf_pair_fours(const wf_walk &w, const wf_tensor *const in[],
                                             const wf_tensor *out)
{
    wf_pair_of_fours p = {w, {false, false}};
    const unsigned inner = w.rank - 1;
    bool fits = wf_has_fours(out) && w.rank > 0 && (inner == 0 || w.dims[inner] % 4 == 0);

    for (int k = 0; k < 2; k++) {
        p.four[k] = w.strides[k][inner] == 1;
        fits &= p.four[k] ? wf_has_fours(in[k]) : w.strides[k][inner] == 0;
        for (unsigned axis = 0; axis < inner; axis++)
            fits &= !p.four[k] || w.strides[k][axis] % 4 == 0;
        p.w.strides[k][inner] *= 4;
    }
    p.w.dims[inner] /= 4;
    p.w.elems = fits ? w.elems / 4 : 0;
    return p;
}

template <class T> struct wf_loaded_pair {
    decltype(wf_load_four(wf_from<T>{}, 0)) fours[2];
    wf_number<T> ones[2];
};

/* The elements that `fours` has, and then the others. */
template <class T, class R, class F>
__global__ void wf_each_pair(wf_from<T> x, wf_from<T> y, wf_to<R> out, wf_walk w,
                             wf_pair_of_fours fours, F f)
{
    using N = wf_number<T>;

    wf_each_ahead(
        wf_first(), wf_all(), fours.w.elems,
        [&](int64_t i) {
            const wf_places_at<2> p = wf_at_all<2>(fours.w, i);
            wf_loaded_pair<T> all = {};

            if (fours.four[0])
                all.fours[0] = wf_load_four(x, p.at[0]);
            else
                all.ones[0] = x[p.at[0]];
            if (fours.four[1])
                all.fours[1] = wf_load_four(y, p.at[1]);
            else
                all.ones[1] = y[p.at[1]];
            return all;
        },
        [&](int64_t i, const wf_loaded_pair<T> &all) {
            const wf_four<N> a =
                fours.four[0] ? wf_wide_four(x, all.fours[0]) : wf_same_four(all.ones[0]);
            const wf_four<N> b =
                fours.four[1] ? wf_wide_four(y, all.fours[1]) : wf_same_four(all.ones[1]);
            wf_four<wf_number<R>> made;

            WF_UNROLL
            for (int k = 0; k < 4; k++)
                made.v[k] = (wf_number<R>)f(a.v[k], b.v[k]);
            wf_store_four(out, 4 * i, made);
        });
    for (int64_t i = 4 * fours.w.elems + wf_first(); i < w.elems; i += wf_all()) {
        const wf_places_at<2> p = wf_at_all<2>(w, i);

        out[i] = (wf_number<R>)f(x[p.at[0]], y[p.at[1]]);
    }
}

/* out[i] = f(x, y), an R of Ts, which are broadcast. */
template <class T, class R, class F>
wf_status wf_both(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                  wf_err *err)
{
    wf_pair_of_fours fours;
    wf_walk w;

    if (wf_elems(out[0]) == 0)
        return WF_OK;
    wf_walk_broadcast(&w, out[0], 2, in);
    fours = wf_pair_fours(w, in, out[0]);
    return wf_launch(run, run->node->op->name, wf_each_pair<T, R, F>,
                     wf_blocks(run, fours.w.elems ? fours.w.elems : w.elems), err,
                     wf_read<T>(in[0]), wf_read<T>(in[1]), wf_write<R>(out[0]), w, fours, F{});
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
