/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/shape/move.h - elements that are moved and not looked at: by their size. */
#ifndef WF_KERNELS_CUDA_MOVE_H
#define WF_KERNELS_CUDA_MOVE_H

#include "common/kernels/cuda/elementwise/each.h"

/* A call with a type of the size of an element of `dtype` for T. */
#define WF_BY_SIZE(dtype, call)                                                                    \
    [&]() -> wf_status {                                                                           \
        switch (wf_dtype_size(dtype)) {                                                            \
        case 1: {                                                                                  \
            using T = uint8_t;                                                                     \
            return call;                                                                           \
        }                                                                                          \
        case 2: {                                                                                  \
            using T = uint16_t;                                                                    \
            return call;                                                                           \
        }                                                                                          \
        case 4: {                                                                                  \
            using T = uint32_t;                                                                    \
            return call;                                                                           \
        }                                                                                          \
        default: {                                                                                 \
            using T = uint64_t;                                                                    \
            return call;                                                                           \
        }                                                                                          \
        }                                                                                          \
    }()

template <class T> __global__ void wf_gather_walk(const T *x, T *out, wf_walk w)
{
    for (int64_t i = wf_first(); i < w.elems; i += wf_all())
        out[i] = x[wf_at(w, 0, i)];
}

/* out[i] = the element of `in` where the walk is at i, counted from element `first` on. */
static inline wf_status wf_gather_from(const wf_run *run, const wf_walk *w, const wf_tensor *in,
                                       int64_t first, wf_tensor *out, wf_err *err)
{
    if (w->elems == 0)
        return WF_OK;
    return WF_BY_SIZE(out->dtype, wf_launch(run, run->node->op->name, wf_gather_walk<T>,
                                            wf_blocks(run, w->elems), err,
                                            static_cast<const T *>(in->data) + first,
                                            static_cast<T *>(out->data), *w));
}

static inline wf_status wf_gather(const wf_run *run, const wf_walk *w, const wf_tensor *in,
                                  wf_tensor *out, wf_err *err)
{
    return wf_gather_from(run, w, in, 0, out, err);
}

template <class T> __global__ void wf_scatter_walk(const T *x, T *out, wf_walk w)
{
    for (int64_t i = wf_first(); i < w.elems; i += wf_all())
        out[wf_at(w, 0, i)] = x[i];
}

/* The element of `out` where the walk is at i, counted from element `first` on, = in[i]. */
static inline wf_status wf_scatter_from(const wf_run *run, const wf_walk *w, const wf_tensor *in,
                                        int64_t first, wf_tensor *out, wf_err *err)
{
    if (w->elems == 0)
        return WF_OK;
    return WF_BY_SIZE(out->dtype,
                      wf_launch(run, run->node->op->name, wf_scatter_walk<T>,
                                wf_blocks(run, w->elems), err, static_cast<const T *>(in->data),
                                static_cast<T *>(out->data) + first, *w));
}

/* Zeros in all of t. */
static inline wf_status wf_clear(const wf_run *run, wf_tensor *t, wf_err *err)
{
    return wf_stream_fill(run->stream, t->data, 0, wf_tensor_bytes(t), err);
}

/* Of operations whose output has the bytes of input 0: a plan shares the memory and does not run
 * them; where it must, they copy. */
static inline wf_status wf_copy_view(const wf_run *run, const wf_tensor *const in[],
                                     wf_tensor *const out[], wf_err *err)
{
    return in[0]->data == out[0]->data ? WF_OK
                                       : wf_stream_copy(run->stream, WF_COPY_WITHIN, out[0]->data,
                                                        in[0]->data, wf_tensor_bytes(out[0]), err);
}

#define WF_CUDA_VIEW(name)                                                                         \
    {                                                                                              \
        .op = name, .dtypes = WF_TYPES_ALL, .in_place = 1, .is_view = true, .run = wf_copy_view    \
    }

#endif
