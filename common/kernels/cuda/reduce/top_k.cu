/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/reduce/top_k.cu - TopK: all elements are sorted, and then their lanes, so
 * that each lane has its best ones first. Of equals the first is better; NaN counts as larger than
 * any number, as numpy sorts. */
#include "common/kernels/cuda/index/sort.h"
extern "C" {
#include "common/kernels/shape/axes.h"
}

#include <cstring>
#include <type_traits>

namespace
{

struct setting {
    wf_around a; /* of the elements */
    int64_t k;
    bool largest;
};

/* An unsigned number of T's size that is larger where x is. */
template <class T> WF_CODE uint64_t rising(T x)
{
    using U = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
    const U sign = (U)1 << (8 * sizeof(U) - 1);
    U bits = 0;

    if constexpr (std::is_same_v<T, uint8_t>)
        return x;
    if (x != x)
        return ~(U)0;
    x = x + T(0); /* -0 becomes 0, which it equals */
    memcpy(&bits, &x, sizeof x);
    if (std::is_floating_point_v<T> && bits & sign)
        return (U)~bits;
    return bits ^ sign;
}

/* A word of an element's number, which rises from the best on; `shift` is 0 or 32. */
template <class T> struct word_of {
    const T *x;
    bool largest;
    unsigned shift;

    static constexpr uint32_t most = sizeof(T) == 1 ? UINT8_MAX : UINT32_MAX;
    WF_CODE uint32_t operator()(int64_t i) const
    {
        const uint32_t word = (uint32_t)(rising(x[i]) >> shift);

        return largest ? most - word : word;
    }
};

struct lane_of {
    wf_around a;
    WF_CODE uint32_t operator()(int64_t i) const
    {
        return (uint32_t)(i / a.inner / a.axis * a.inner + i % a.inner);
    }
};

/* New keys for places that are sorted already. */
template <class F> __global__ void number_again(wf_sort s, F key_of)
{
    for (int64_t i = wf_first(); i < s.n; i += wf_all())
        s.keys[i] = key_of(s.places[i]);
}

template <class F>
wf_status sort_again(const wf_run *run, wf_sort *s, F key_of, uint32_t most, wf_err *err)
{
    WF_TRY(wf_launch(run, "keys", number_again<F>, wf_blocks(run, s->n), err, *s, key_of));
    return wf_sort_all(run, s, most, err);
}

template <class T>
__global__ void take_best(const T *x, const uint32_t *places, T *values, int64_t *indices,
                          setting s)
{
    const int64_t n = s.a.outer * s.k * s.a.inner;

    for (int64_t e = wf_first(); e < n; e += wf_all()) {
        const int64_t lane = e / s.a.inner / s.k * s.a.inner + e % s.a.inner;
        const int64_t from = places[lane * s.a.axis + e / s.a.inner % s.k];

        if (values)
            values[e] = x[from];
        if (indices)
            indices[e] = from / s.a.inner % s.a.axis;
    }
}

setting setting_of(const wf_node *node, const wf_tensor *x, const wf_tensor *y)
{
    int64_t axis = wf_node_int(node, "axis", -1);

    return {wf_around_axis(x, axis), wf_around_axis(y, axis).axis,
            wf_node_int(node, "largest", 1) != 0};
}

wf_status prepare(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                  wf_err *err)
{
    (void)out;
    prep->workspace_bytes = wf_sort_bytes(wf_elems(in[0]));
    return wf_sort_check(wf_elems(in[0]), 0, err);
}

/* The least of the number's words is sorted first, and lanes last. */
template <class T>
wf_status top_k(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[], wf_err *err)
{
    const T *x = static_cast<const T *>(in[0]->data);
    wf_tensor *y = out[0] ? out[0] : out[1];
    setting s = setting_of(run->node, in[0], y);
    wf_sort order = wf_sort_in(run->workspace, wf_elems(in[0]));
    word_of<T> word = {x, s.largest, 0};

    if (s.k > s.a.axis)
        return wf_fail(err, WF_SHAPE, NULL, "k is %lld, along an axis of %lld", (long long)s.k,
                       (long long)s.a.axis);
    if (wf_elems(y) == 0)
        return WF_OK;
    WF_TRY(wf_launch(run, "keys", wf_sort_number<word_of<T>>, wf_blocks(run, order.n), err, order,
                     word));
    WF_TRY(wf_sort_all(run, &order, word.most, err));
    word.shift = 32;
    if (sizeof(T) == 8)
        WF_TRY(sort_again(run, &order, word, word.most, err));
    WF_TRY(sort_again(run, &order, lane_of{s.a}, (uint32_t)(s.a.outer * s.a.inner - 1), err));
    return wf_launch(run, "TopK", take_best<T>, wf_blocks(run, wf_elems(y)), err, x,
                     static_cast<const uint32_t *>(order.places),
                     out[0] ? static_cast<T *>(out[0]->data) : nullptr,
                     out[1] ? static_cast<int64_t *>(out[1]->data) : nullptr, s);
}

} // namespace

#define ROW(dtype, T)                                                                              \
    {                                                                                              \
        .op = "TopK", .dtypes = WF_TYPE(dtype), .prepare = prepare, .run = top_k<T>                \
    }

WF_CUDA_ROWS(top_k){
    ROW(WF_F32, float),   ROW(WF_F64, double), ROW(WF_I32, int32_t),
    ROW(WF_I64, int64_t), ROW(WF_U8, uint8_t), {},
};
