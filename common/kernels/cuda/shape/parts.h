/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/shape/parts.h - a tensor and its parts along one axis: Concat and Split. */
#ifndef WF_KERNELS_CUDA_PARTS_H
#define WF_KERNELS_CUDA_PARTS_H

#include "common/kernels/cuda/shape/move.h"
extern "C" {
#include "common/kernels/shape/axes.h"
}

/* Parts that one launch copies: a struct of them goes by value. */
enum { WF_PARTS = 16 };

/* The whole is `outer` rows of `row` elements; those of a launch's parts begin at `first` in each.
 */
template <class T> struct wf_parts {
    int64_t outer, row, first, n;
    T *of[WF_PARTS];
    int64_t ends[WF_PARTS]; /* in a row, from `first` on */
};

/* SPLITS: from the whole to its parts, and else back. */
template <class T, bool SPLITS> __global__ void wf_copy_parts(T *whole, wf_parts<T> p)
{
    const int64_t width = p.ends[p.n - 1];

    for (int64_t e = wf_first(); e < p.outer * width; e += wf_all()) {
        const int64_t o = e / width, k = e % width;
        int64_t i = 0, begin = 0;
        T *a = whole + o * p.row + p.first + k, *b;

        for (; k >= p.ends[i]; i++)
            begin = p.ends[i];
        b = p.of[i] + o * (p.ends[i] - begin) + k - begin;
        if (SPLITS)
            *b = *a;
        else
            *a = *b;
    }
}

/* Copies n parts along the axis of the node, each of which is there. */
template <class T, bool SPLITS>
wf_status wf_copy_all_parts(const wf_run *run, const wf_tensor *whole, uint32_t n,
                            const wf_tensor *const parts[], wf_err *err)
{
    int64_t axis = wf_node_int(run->node, "axis", 0);
    wf_around a = wf_around_axis(whole, axis);
    wf_parts<T> p = {};

    p.outer = a.outer;
    p.row = a.axis * a.inner;
    for (uint32_t i = 0; i < n; i++) {
        int64_t from = p.n ? p.ends[p.n - 1] : 0;

        p.of[p.n] = static_cast<T *>(parts[i]->data);
        p.ends[p.n++] = from + wf_around_axis(parts[i], axis).axis * a.inner;
        if (p.n < WF_PARTS && i + 1 < n)
            continue;
        from = p.ends[p.n - 1];
        if (p.outer > 0 && from > 0)
            WF_TRY(wf_launch(run, run->node->op->name, wf_copy_parts<T, SPLITS>,
                             wf_blocks(run, p.outer * from), err, static_cast<T *>(whole->data),
                             p));
        p.first += from;
        p.n = 0;
    }
    return WF_OK;
}

#endif
