/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/index/gather.cu - Gather(data, ids) along one axis, and GatherGrad(dy, ids,
 * data), which adds dy's slices where they came from, in the order of the ids. Negative ids count
 * from the end; one that is not in the axis is told of, and neither read nor written. */
#include "common/kernels/cuda/index/places.h"
extern "C" {
#include "common/kernels/shape/axes.h"
}

namespace
{

/* Slices of data along an axis [outer, axis, inner], and one for each id [outer, n, inner]. */
struct slices : wf_ids_in_axis {
    wf_around a;
    int64_t n;

    /* Of slice i, counted over `outer` too. */
    WF_CODE int64_t row(int64_t i) const
    {
        int64_t place = wf_place_at(ids, i % n, axis);

        return place < 0 ? -1 : i / n * axis + place;
    }
};

slices slices_of(const wf_node *node, const wf_tensor *data, const wf_tensor *ids)
{
    slices s = {};

    s.a = wf_around_axis(data, wf_node_int(node, "axis", 0));
    s.n = wf_elems(ids);
    s.ids = wf_ids_of(ids);
    s.axis = s.a.axis;
    return s;
}

/* ---- Gather ---- */

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
    slices s = slices_of(run->node, in[0], in[1]);

    return wf_gather_rows(run, s, s.n, s.a.inner, in[0], out[0], err);
}

/* ---- GatherGrad ---- */

/* An item is an id, whose slices in all of `outer` are sorted as one: a column is an element of
 * `outer` and one of `inner`. */
struct slice_keys {
    slices s;

    WF_CODE uint32_t operator()(int64_t i) const
    {
        int64_t row = wf_place_at(s.ids, i, s.axis);

        return (uint32_t)(row < 0 ? s.axis : row);
    }
};

template <class T> struct add_slices {
    using A = double;
    slices s;
    const T *dy;
    T *dx;

    WF_CODE double take(int64_t i, int64_t column) const
    {
        return dy[(column / s.a.inner * s.n + i) * s.a.inner + column % s.a.inner];
    }
    WF_CODE double join(double x, double y) const
    {
        return x + y;
    }
    WF_CODE void put(int64_t row, int64_t column, double all) const
    {
        dx[(column / s.a.inner * s.axis + row) * s.a.inner + column % s.a.inner] = (T)all;
    }
};

wf_scatter scatter_of(const slices &s)
{
    return {s.n, s.axis, s.a.outer * s.a.inner};
}

/* The room for looking at ids comes first. */
wf_status prepare_grad(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                       wf_err *err)
{
    slices s = slices_of(prep->node, out[0], in[1]);
    wf_scatter n = scatter_of(s);

    prep->workspace_bytes = wf_look_bytes(s.n) + wf_scatter_bytes(&n, sizeof(double));
    return wf_sort_check(s.n, s.axis, err);
}

template <class T>
wf_status gather_grad(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                      wf_err *err)
{
    slices s = slices_of(run->node, out[0], in[1]);
    wf_scatter n = scatter_of(s);

    WF_TRY(wf_look(run, s, s.n, run->workspace, err));
    WF_TRY(wf_clear(run, out[0], err));
    return wf_scatter_all(
        run, slice_keys{s},
        add_slices<T>{s, static_cast<const T *>(in[0]->data), static_cast<T *>(out[0]->data)}, &n,
        static_cast<char *>(run->workspace) + wf_look_bytes(s.n), err);
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
