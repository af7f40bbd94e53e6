/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/elementwise/where.cu - Where: condition ? x : y, all three broadcast. */
#include "common/kernels/cuda/shape/move.h"

namespace
{

template <class T>
__global__ void choose(const uint8_t *condition, const T *x, const T *y, T *out, wf_walk w)
{
    for (int64_t i = wf_first(); i < w.elems; i += wf_all())
        out[i] = condition[wf_at(w, 0, i)] ? x[wf_at(w, 1, i)] : y[wf_at(w, 2, i)];
}

wf_status where(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[], wf_err *err)
{
    wf_walk w;

    wf_walk_broadcast(&w, out[0], 3, in);
    if (w.elems == 0)
        return WF_OK;
    return WF_BY_SIZE(out[0]->dtype, wf_launch(run, "Where", choose<T>, wf_blocks(run, w.elems),
                                               err, static_cast<const uint8_t *>(in[0]->data),
                                               static_cast<const T *>(in[1]->data),
                                               static_cast<const T *>(in[2]->data),
                                               static_cast<T *>(out[0]->data), w));
}

} // namespace

WF_CUDA_ROWS(where){{.op = "Where", .typed_by = 1, .dtypes = WF_TYPES_ALL, .run = where}, {}};
