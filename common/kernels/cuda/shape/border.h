/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/shape/border.h - elements of a tensor with a border around it, each of which
 * is one of the tensor's or a filler. */
#ifndef WF_KERNELS_CUDA_BORDER_H
#define WF_KERNELS_CUDA_BORDER_H

#include "common/kernels/cuda/shape/move.h"
extern "C" {
#include "common/kernels/shape/border.h"
}

/* The tensor, of dims[], and what it is with the border. */
typedef struct wf_bordered {
    wf_border border;
    uint32_t rank;
    int64_t dims[WF_MAX_RANK], with[WF_MAX_RANK], elems; /* elems: with the border */
} wf_bordered;

static inline wf_bordered wf_bordered_of(const wf_border &b, const wf_tensor *inner,
                                         const wf_tensor *with)
{
    wf_bordered t = {};

    t.border = b;
    t.rank = inner->rank;
    for (uint32_t i = 0; i < inner->rank; i++) {
        t.dims[i] = inner->dims[i];
        t.with[i] = with->dims[i];
    }
    t.elems = wf_elems(with);
    return t;
}

template <class T>
__global__ void wf_border_fill(const T *x, const T *filler, T *out, wf_bordered t)
{
    const T otherwise = filler ? *filler : T(0);

    for (int64_t e = wf_first(); e < t.elems; e += wf_all()) {
        int64_t from = 0, step = 1, rest = e;

        for (uint32_t axis = t.rank; axis-- > 0 && from >= 0;) {
            const int64_t at = wf_border_place(&t.border, axis, rest % t.with[axis], t.dims[axis]);

            from = at < 0 ? -1 : from + at * step;
            step *= t.dims[axis];
            rest /= t.with[axis];
        }
        out[e] = from < 0 ? otherwise : x[from];
    }
}

/* out = in with a border; `filler` is one element, or NULL for 0. */
static inline wf_status wf_border_around(const wf_run *run, const wf_border &b, const wf_tensor *in,
                                         const wf_tensor *filler, wf_tensor *out, wf_err *err)
{
    wf_bordered t = wf_bordered_of(b, in, out);

    if (t.elems == 0)
        return WF_OK;
    return WF_BY_SIZE(
        out->dtype,
        wf_launch(run, run->node->op->name, wf_border_fill<T>, wf_blocks(run, t.elems), err,
                  static_cast<const T *>(in->data),
                  filler && wf_elems(filler) ? static_cast<const T *>(filler->data) : nullptr,
                  static_cast<T *>(out->data), t));
}

#endif
