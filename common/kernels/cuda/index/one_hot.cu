/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/index/one_hot.cu - OneHot(indices, depth, values): values[1] at the index
 * along a new axis, values[0] elsewhere. Negative indices count from the end; one that is nowhere
 * has values[0] everywhere. */
#include "common/kernels/cuda/shape/move.h"
extern "C" {
#include "common/kernels/shape/axes.h"
}

#include <type_traits>

namespace
{

/* Floats are cut, as numpy does. */
template <class I> WF_CODE int64_t place_of(I index, int64_t depth)
{
    int64_t id;

    if constexpr (std::is_floating_point_v<I>)
        if (!(index > I(-0x1p62) && index < I(0x1p62)))
            return -1;
    id = (int64_t)index;
    id = id < 0 ? id + depth : id;
    return id >= 0 && id < depth ? id : -1;
}

template <class T, class I>
__global__ void choose(const I *indices, const T *values, T *out, wf_around a)
{
    const T off = values[0], on = values[1];

    for (int64_t e = wf_first(); e < a.outer * a.axis * a.inner; e += wf_all()) {
        const int64_t k = e / a.inner % a.axis;
        const I index = indices[e / a.inner / a.axis * a.inner + e % a.inner];

        out[e] = place_of(index, a.axis) == k ? on : off;
    }
}

template <class I>
wf_status one_hot_of(const wf_run *run, const wf_tensor *const in[], wf_tensor *out, wf_err *err)
{
    int64_t elems = wf_elems(out);

    if (elems == 0)
        return WF_OK;
    return WF_BY_SIZE(out->dtype,
                      (wf_launch(run, "OneHot", choose<T, I>, wf_blocks(run, elems), err,
                                 static_cast<const I *>(in[0]->data),
                                 static_cast<const T *>(in[2]->data), static_cast<T *>(out->data),
                                 wf_around_axis(out, wf_node_int(run->node, "axis", -1)))));
}

wf_status one_hot(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                  wf_err *err)
{
    switch (in[0]->dtype) {
    case WF_I64:
        return one_hot_of<int64_t>(run, in, out[0], err);
    case WF_I32:
        return one_hot_of<int32_t>(run, in, out[0], err);
    case WF_F32:
        return one_hot_of<float>(run, in, out[0], err);
    case WF_F64:
        return one_hot_of<double>(run, in, out[0], err);
    case WF_U8:
    case WF_BOOL:
        return one_hot_of<uint8_t>(run, in, out[0], err);
    default:
        return wf_fail(err, WF_UNSUPPORTED, "Cast them first", "indices are %s",
                       wf_dtype_name(in[0]->dtype));
    }
}

} // namespace

WF_CUDA_ROWS(one_hot){{.op = "OneHot", .typed_by = 2, .dtypes = WF_TYPES_ALL, .run = one_hot}, {}};
