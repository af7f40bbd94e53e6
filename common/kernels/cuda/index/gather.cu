/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/index/gather.cu - Gather(data, ids) along one axis. Negative ids count from
 * the end. One block looks at all ids first: of those that are not in the axis the first is told of
 * by the wait that follows, and none of them is read. */
#include "common/kernels/cuda/shape/move.h"
extern "C" {
#include "common/kernels/shape/axes.h"
}

namespace
{

/* Slices of data along an axis [outer, axis, inner], and one for each id [outer, n, inner]. */
struct rows {
    wf_around a;
    int64_t n;
    const void *ids;
    bool wide; /* ids are i64, and not i32 */
};

WF_CODE int64_t id_at(const rows &r, int64_t i)
{
    return r.wide ? static_cast<const int64_t *>(r.ids)[i] : static_cast<const int32_t *>(r.ids)[i];
}

/* The row of id number i; -1: it is not in the axis. */
WF_CODE int64_t row_at(const rows &r, int64_t i)
{
    int64_t id = id_at(r, i), row = id < 0 ? id + r.a.axis : id;

    return row < 0 || row >= r.a.axis ? -1 : row;
}

__global__ void look_at_ids(rows r, wf_complaints c)
{
    int64_t bad = r.n;

    for (int64_t i = threadIdx.x; i < r.n; i += blockDim.x)
        if (row_at(r, i) < 0)
            bad = wf_lower()(bad, i);
    bad = wf_join_block(bad, r.n, wf_lower());
    if (threadIdx.x == 0 && bad < r.n)
        wf_complain(c, WF_CUDA_BAD_INDEX, id_at(r, bad), bad, r.a.axis);
}

template <class T> __global__ void take_rows(rows r, const T *data, T *out, int64_t elems)
{
    for (int64_t e = wf_first(); e < elems; e += wf_all()) {
        int64_t k = e % r.a.inner, i = e / r.a.inner % r.n, o = e / r.a.inner / r.n;
        int64_t row = row_at(r, i);

        if (row >= 0)
            out[e] = data[(o * r.a.axis + row) * r.a.inner + k];
    }
}

wf_status gather(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                 wf_err *err)
{
    int64_t elems = wf_elems(out[0]);
    rows r = {};

    r.a = wf_around_axis(in[0], wf_node_int(run->node, "axis", 0));
    r.n = wf_elems(in[1]);
    r.ids = in[1]->data;
    r.wide = in[1]->dtype == WF_I64;
    if (r.n == 0)
        return WF_OK;
    WF_TRY(wf_launch_meeting(run, "ids", look_at_ids, 1, wf_threads(r.n), err, r,
                             wf_complaints_of(run)));
    if (elems == 0)
        return WF_OK;
    return WF_BY_SIZE(out[0]->dtype, wf_launch(run, "Gather", take_rows<T>, wf_blocks(run, elems),
                                               err, r, static_cast<const T *>(in[0]->data),
                                               static_cast<T *>(out[0]->data), elems));
}

} // namespace

WF_CUDA_ROWS(gather){{.op = "Gather", .dtypes = WF_TYPES_ALL, .run = gather}, {}};
