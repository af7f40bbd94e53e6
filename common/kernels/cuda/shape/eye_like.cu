/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/shape/eye_like.cu - EyeLike: ones on a diagonal. */
#include "common/kernels/cuda/shape/move.h"
extern "C" {
#include "common/kernels/shape/numbers.h"
}

namespace
{

template <class T> __global__ void fill(T *out, int64_t elems, int64_t columns, int64_t k, T one)
{
    for (int64_t i = wf_first(); i < elems; i += wf_all())
        out[i] = i % columns - i / columns == k ? one : T(0);
}

template <class T> wf_status fill_eye(const wf_run *run, wf_tensor *out, wf_err *err)
{
    int64_t elems = wf_elems(out);
    T one;

    if (elems == 0)
        return WF_OK;
    wf_one_of(out->dtype, &one);
    return wf_launch(run, "EyeLike", fill<T>, wf_blocks(run, elems), err,
                     static_cast<T *>(out->data), elems, out->dims[1],
                     wf_node_int(run->node, "k", 0), one);
}

wf_status eye_like(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                   wf_err *err)
{
    (void)in;
    return WF_BY_SIZE(out[0]->dtype, fill_eye<T>(run, out[0], err));
}

} // namespace

WF_CUDA_ROWS(eye_like){
    {.op = "EyeLike", .typed_by = WF_TYPED_BY_OUTPUT, .dtypes = WF_TYPES_ALL, .run = eye_like},
    {},
};
