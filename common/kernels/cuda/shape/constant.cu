/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/shape/constant.cu - ConstantOfShape: one value (attribute `value`, a tensor
 * of one element on the host; 0.0f by default) in every place. */
#include "common/kernels/cuda/shape/move.h"

#include <cstring>

namespace
{

template <class T> __global__ void fill(T *out, int64_t n, T value)
{
    for (int64_t i = wf_first(); i < n; i += wf_all())
        out[i] = value;
}

template <class T>
wf_status fill_with(const wf_run *run, const void *value, wf_tensor *out, wf_err *err)
{
    int64_t n = wf_elems(out);
    T v;

    if (n == 0)
        return WF_OK;
    std::memcpy(&v, value, sizeof v);
    return wf_launch(run, "ConstantOfShape", fill<T>, wf_blocks(run, n), err,
                     static_cast<T *>(out->data), n, v);
}

wf_status constant_of_shape(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                            wf_err *err)
{
    const wf_attr *value = wf_node_attr(run->node, "value");

    (void)in;
    if (!value)
        return wf_clear(run, out[0], err);
    return WF_BY_SIZE(out[0]->dtype, fill_with<T>(run, value->t->data, out[0], err));
}

} // namespace

WF_CUDA_ROWS(constant){
    {.op = "ConstantOfShape",
     .typed_by = WF_TYPED_BY_OUTPUT,
     .dtypes = WF_TYPES_ALL,
     .run = constant_of_shape},
    {},
};
