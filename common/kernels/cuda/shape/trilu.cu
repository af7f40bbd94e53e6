/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/shape/trilu.cu - Trilu: a triangle of the last two axes, zeros in the other.
 */
#include "common/kernels/cuda/index/ids.h"
#include "common/kernels/cuda/shape/move.h"

namespace
{

/* Matrices of rows and columns. Diagonal `k` is known to the device alone; NULL: it is 0. */
struct triangle {
    int64_t elems, rows, columns;
    wf_ids k;
    bool upper;
};

template <class T> __global__ void keep(const T *x, T *out, triangle t)
{
    const int64_t k = t.k.data ? wf_id_at(t.k, 0) : 0;

    for (int64_t i = wf_first(); i < t.elems; i += wf_all()) {
        const int64_t diagonal = i % t.columns - i / t.columns % t.rows;

        out[i] = (t.upper ? diagonal >= k : diagonal <= k) ? x[i] : T(0);
    }
}

wf_status trilu(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[], wf_err *err)
{
    triangle t = {wf_elems(in[0]), wf_dim(in[0], -2), wf_dim(in[0], -1), {}, false};

    if (in[1] && wf_elems(in[1]) != 1)
        return wf_fail(err, WF_SHAPE, NULL, "k must be one number");
    if (t.elems == 0)
        return WF_OK;
    if (in[1])
        t.k = wf_ids_of(in[1]);
    t.upper = wf_node_int(run->node, "upper", 1) != 0;
    return WF_BY_SIZE(out[0]->dtype, wf_launch(run, "Trilu", keep<T>, wf_blocks(run, t.elems), err,
                                               static_cast<const T *>(in[0]->data),
                                               static_cast<T *>(out[0]->data), t));
}

} // namespace

WF_CUDA_ROWS(trilu){{.op = "Trilu", .dtypes = WF_TYPES_ALL, .in_place = 1, .run = trilu}, {}};
