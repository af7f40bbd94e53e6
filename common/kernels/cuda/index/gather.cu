/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/index/gather.cu - Gather(data, ids) along one axis, and GatherGrad(dy, ids,
 * data), which adds dy's slices where they came from, in the order of the ids. Negative ids count
 * from the end; one that is not in the axis is told of, and neither read nor written. */
#include "common/kernels/cuda/index/ids.h"
#include "common/kernels/cuda/index/scatter.h"
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
    wf_ids ids;
};

rows rows_of(const wf_node *node, const wf_tensor *data, const wf_tensor *ids)
{
    return {wf_around_axis(data, wf_node_int(node, "axis", 0)), wf_elems(ids), wf_ids_of(ids)};
}

wf_status look(const wf_run *run, const rows &r, void *workspace, wf_err *err)
{
    return wf_look(run, wf_ids_in_axis{r.ids, r.a.axis}, r.n, workspace, err);
}

/* ---- Gather ---- */

template <class T> __global__ void take_rows(rows r, const T *data, T *out, int64_t elems)
{
    for (int64_t e = wf_first(); e < elems; e += wf_all()) {
        int64_t k = e % r.a.inner, i = e / r.a.inner % r.n, o = e / r.a.inner / r.n;
        int64_t row = wf_place_at(r.ids, i, r.a.axis);

        if (row >= 0)
            out[e] = data[(o * r.a.axis + row) * r.a.inner + k];
    }
}

wf_status prepare(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                  wf_err *err)
{
    (void)out, (void)err;
    prep->workspace_bytes = wf_look_bytes(wf_elems(in[1]));
    return WF_OK;
}

wf_status gather(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                 wf_err *err)
{
    int64_t elems = wf_elems(out[0]);
    rows r = rows_of(run->node, in[0], in[1]);

    WF_TRY(look(run, r, run->workspace, err));
    if (elems == 0)
        return WF_OK;
    return WF_BY_SIZE(out[0]->dtype, wf_launch(run, "Gather", take_rows<T>, wf_blocks(run, elems),
                                               err, r, static_cast<const T *>(in[0]->data),
                                               static_cast<T *>(out[0]->data), elems));
}

/* ---- GatherGrad ---- */

/* A column is an element of `outer` and one of `inner`. */
template <class T> struct add_rows {
    using A = double;
    rows r;
    const T *dy;
    T *dx;

    WF_CODE uint32_t key(int64_t i) const
    {
        int64_t row = wf_place_at(r.ids, i, r.a.axis);

        return (uint32_t)(row < 0 ? r.a.axis : row);
    }
    WF_CODE double take(int64_t i, int64_t column) const
    {
        return dy[(column / r.a.inner * r.n + i) * r.a.inner + column % r.a.inner];
    }
    WF_CODE double join(double x, double y) const
    {
        return x + y;
    }
    WF_CODE void put(int64_t row, int64_t column, double all) const
    {
        dx[(column / r.a.inner * r.a.axis + row) * r.a.inner + column % r.a.inner] = (T)all;
    }
};

wf_scatter scatter_of(const rows &r)
{
    return {r.n, r.a.axis, r.a.outer * r.a.inner};
}

/* The room for looking at ids comes first. */
wf_status prepare_grad(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                       wf_err *err)
{
    rows r = rows_of(prep->node, out[0], in[1]);
    wf_scatter s = scatter_of(r);

    prep->workspace_bytes = wf_look_bytes(r.n) + wf_scatter_bytes(&s, sizeof(double));
    return wf_sort_check(r.n, r.a.axis, err);
}

template <class T>
wf_status gather_grad(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                      wf_err *err)
{
    rows r = rows_of(run->node, out[0], in[1]);
    wf_scatter s = scatter_of(r);

    WF_TRY(look(run, r, run->workspace, err));
    WF_TRY(wf_clear(run, out[0], err));
    return wf_scatter_all(
        run, add_rows<T>{r, static_cast<const T *>(in[0]->data), static_cast<T *>(out[0]->data)},
        &s, static_cast<char *>(run->workspace) + wf_look_bytes(r.n), err);
}

} // namespace

#define GRAD(dtype, T)                                                                             \
    {                                                                                              \
        .op = "GatherGrad", .domain = WF_DOMAIN_WEFT, .dtypes = WF_TYPE(dtype),                    \
        .prepare = prepare_grad, .run = gather_grad<T>                                             \
    }

WF_CUDA_ROWS(gather){
    {.op = "Gather", .dtypes = WF_TYPES_ALL, .prepare = prepare, .run = gather},
    GRAD(WF_F32, float),
    GRAD(WF_F64, double),
    {},
};
