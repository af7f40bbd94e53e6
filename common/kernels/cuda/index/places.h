/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/index/places.h - gathering rows of elements from the places that ids name,
 * and scattering them there. Which row an item names is a type with the members
 *
 *   row(i)           the row of item i; -1: an id of it is wrong
 *   is_wrong, tell   of single ids, as in ids.h
 */
#ifndef WF_KERNELS_CUDA_PLACES_H
#define WF_KERNELS_CUDA_PLACES_H

#include "common/kernels/cuda/index/ids.h"
#include "common/kernels/cuda/index/scatter.h"
#include "common/kernels/cuda/shape/move.h"
extern "C" {
#include "common/kernels/shape/places.h"
}

#include <type_traits>

/* A call with the type of a number's dtype for T; there is none of bool and the halves. */
#define WF_BY_NUMBER(dtype, call)                                                                  \
    [&]() -> wf_status {                                                                           \
        switch (dtype) {                                                                           \
        case WF_F32: {                                                                             \
            using T = float;                                                                       \
            return call;                                                                           \
        }                                                                                          \
        case WF_F64: {                                                                             \
            using T = double;                                                                      \
            return call;                                                                           \
        }                                                                                          \
        case WF_I32: {                                                                             \
            using T = int32_t;                                                                     \
            return call;                                                                           \
        }                                                                                          \
        case WF_I64: {                                                                             \
            using T = int64_t;                                                                     \
            return call;                                                                           \
        }                                                                                          \
        case WF_U8: {                                                                              \
            using T = uint8_t;                                                                     \
            return call;                                                                           \
        }                                                                                          \
        default:                                                                                   \
            return wf_fail(err, WF_UNSUPPORTED, "Cast it first", "there is no reduction of %s",    \
                           wf_dtype_name(dtype));                                                  \
        }                                                                                          \
    }()

/* ---- gathering ---- */

/* out[i] = a row of data, of `inner` elements. */
template <class P, class T>
__global__ void wf_take_rows(P places, const T *data, T *out, int64_t elems, int64_t inner)
{
    for (int64_t e = wf_first(); e < elems; e += wf_all()) {
        const int64_t row = places.row(e / inner);

        if (row >= 0)
            out[e] = data[row * inner + e % inner];
    }
}

/* Looks at n_ids first; the workspace has wf_look_bytes for them. */
template <class P>
wf_status wf_gather_rows(const wf_run *run, const P &places, int64_t n_ids, int64_t inner,
                         const wf_tensor *data, wf_tensor *out, wf_err *err)
{
    int64_t elems = wf_elems(out);

    WF_TRY(wf_look(run, places, n_ids, run->workspace, err));
    if (elems == 0)
        return WF_OK;
    return WF_BY_SIZE(out->dtype,
                      wf_launch(run, run->node->op->name, wf_take_rows<P, T>, wf_blocks(run, elems),
                                err, places, static_cast<const T *>(data->data),
                                static_cast<T *>(out->data), elems, inner));
}

/* ---- scattering ---- */

/* How items of Ts are joined, and what they do with the T that is there. Sums and products of
 * floats are computed in double; those of integers wrap, so they are computed unsigned. */
template <class T> struct wf_puts {
    using A = T;
    static WF_CODE A join(A, A y)
    {
        return y; /* the last one stays */
    }
    static WF_CODE T with(T, A all)
    {
        return all;
    }
};

template <class T>
using wf_computes_in = std::conditional_t<std::is_floating_point_v<T>, double, uint64_t>;

template <class T> struct wf_adds {
    using A = wf_computes_in<T>;
    static WF_CODE A join(A x, A y)
    {
        return x + y;
    }
    static WF_CODE T with(T before, A all)
    {
        return (T)((A)before + all);
    }
};

template <class T> struct wf_multiplies {
    using A = wf_computes_in<T>;
    static WF_CODE A join(A x, A y)
    {
        return x * y;
    }
    static WF_CODE T with(T before, A all)
    {
        return (T)((A)before * all);
    }
};

/* NaN stays: it is neither larger nor smaller. */
template <class T> struct wf_raises {
    using A = T;
    static WF_CODE T join(T x, T y)
    {
        return y > x || y != y ? y : x;
    }
    static WF_CODE T with(T before, T all)
    {
        return join(before, all);
    }
};

template <class T> struct wf_lowers {
    using A = T;
    static WF_CODE T join(T x, T y)
    {
        return y < x || y != y ? y : x;
    }
    static WF_CODE T with(T before, T all)
    {
        return join(before, all);
    }
};

/* The rows that items name, for wf_scatter_all. */
template <class P> struct wf_place_keys {
    P places;
    int64_t rows;

    WF_CODE uint32_t operator()(int64_t i) const
    {
        int64_t row = places.row(i);

        return (uint32_t)(row < 0 ? rows : row);
    }
};

/* Items to these. */
template <class T, class W> struct wf_to_places {
    using A = typename W::A;
    int64_t inner;
    const T *from;
    T *to;

    WF_CODE A take(int64_t i, int64_t column) const
    {
        return (A)from[i * inner + column];
    }
    WF_CODE A join(A x, A y) const
    {
        return W::join(x, y);
    }
    WF_CODE void put(int64_t row, int64_t column, A all) const
    {
        T *at = to + row * inner + column;

        *at = W::with(*at, all);
    }
};

/* The ids that are looked at, and the items of `inner` elements that they name. */
typedef struct wf_scattered {
    int64_t n_ids;
    wf_scatter items;
} wf_scattered;

static inline wf_scattered wf_scattered_of(int64_t n_ids, int64_t n, int64_t inner,
                                           const wf_tensor *to)
{
    return {n_ids, {n, inner ? wf_elems(to) / inner : 0, inner}};
}

/* Workspace, and whether there are too many. */
static inline wf_status wf_scatter_prepare(wf_prep *prep, const wf_scattered &s, wf_err *err)
{
    prep->workspace_bytes = wf_look_bytes(s.n_ids) + wf_scatter_bytes(&s.items, sizeof(double));
    return wf_sort_check(s.items.items, s.items.rows, err);
}

template <class W, class T, class P>
wf_status wf_scatter_as(const wf_run *run, const P &places, const wf_scattered &s,
                        const wf_tensor *from, wf_tensor *to, wf_err *err)
{
    wf_to_places<T, W> f = {s.items.columns, static_cast<const T *>(from->data),
                            static_cast<T *>(to->data)};

    return wf_scatter_all(run, wf_place_keys<P>{places, s.items.rows}, f, &s.items,
                          static_cast<char *>(run->workspace) + wf_look_bytes(s.n_ids), err);
}

/* Rows of `from` to the places in `to`, which holds what was there before. */
template <class P>
wf_status wf_scatter_rows(const wf_run *run, wf_scatter_way way, const P &places,
                          const wf_scattered &s, const wf_tensor *from, wf_tensor *to, wf_err *err)
{
    WF_TRY(wf_look(run, places, s.n_ids, run->workspace, err));
    switch (way) {
    case WF_SCATTER_ADD:
        return WF_BY_NUMBER(to->dtype,
                            (wf_scatter_as<wf_adds<T>, T>(run, places, s, from, to, err)));
    case WF_SCATTER_MULTIPLY:
        return WF_BY_NUMBER(to->dtype,
                            (wf_scatter_as<wf_multiplies<T>, T>(run, places, s, from, to, err)));
    case WF_SCATTER_LARGEST:
        return WF_BY_NUMBER(to->dtype,
                            (wf_scatter_as<wf_raises<T>, T>(run, places, s, from, to, err)));
    case WF_SCATTER_SMALLEST:
        return WF_BY_NUMBER(to->dtype,
                            (wf_scatter_as<wf_lowers<T>, T>(run, places, s, from, to, err)));
    case WF_SCATTER_PUT:
        break;
    }
    return WF_BY_SIZE(to->dtype, (wf_scatter_as<wf_puts<T>, T>(run, places, s, from, to, err)));
}

#endif
