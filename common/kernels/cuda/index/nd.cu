/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/index/nd.cu - GatherND(data, ids), ScatterND(data, ids, updates) and
 * GatherNDGrad(dy, ids, data): the last axis of the ids holds a tuple of places, which names a
 * slice of data. Equal slices are joined in the order of the tuples. */
#include "common/kernels/cuda/index/places.h"

namespace
{

struct slices {
    wf_slices of;
    wf_ids ids;

    WF_CODE bool is_wrong(int64_t i) const
    {
        return wf_place_at(ids, i, of.sizes[i % of.depth]) < 0;
    }
    WF_CODE void tell(int64_t i, wf_complaints c) const
    {
        wf_complain(c, WF_CUDA_BAD_TUPLE, wf_id_at(ids, i),
                    i / of.depth * WF_MAX_RANK + i % of.depth, of.sizes[i % of.depth]);
    }
    /* Slices are rows of data. */
    WF_CODE int64_t row(int64_t i) const
    {
        int64_t at = i / of.per_batch * of.batch_elems;

        for (uint32_t k = 0; k < of.depth; k++) {
            int64_t place = wf_place_at(ids, i * of.depth + k, of.sizes[k]);

            if (place < 0)
                return -1;
            at += place * of.strides[k];
        }
        return at / of.inner;
    }
};

slices slices_of(const wf_node *node, const wf_tensor *data, const wf_tensor *ids)
{
    return {wf_slices_of(node, data, ids), wf_ids_of(ids)};
}

wf_scattered scattered_of(const slices &s, const wf_tensor *data)
{
    return wf_scattered_of(s.of.n * s.of.depth, s.of.n, s.of.inner, data);
}

wf_status prepare_gather(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
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

    return wf_gather_rows(run, s, wf_elems(in[1]), s.of.inner, in[0], out[0], err);
}

/* The gradient is scattered to what it is the gradient of. */
wf_status prepare_scatter(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                          wf_err *err)
{
    return wf_scatter_prepare(prep, scattered_of(slices_of(prep->node, out[0], in[1]), out[0]),
                              err);
}

wf_status scatter(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                  wf_err *err)
{
    slices s = slices_of(run->node, in[0], in[1]);

    WF_TRY(wf_copy_view(run, in, out, err));
    return wf_scatter_rows(run, wf_scatter_way_of(run->node), s, scattered_of(s, in[0]), in[2],
                           out[0], err);
}

template <class T>
wf_status grad(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[], wf_err *err)
{
    slices s = slices_of(run->node, out[0], in[1]);
    wf_scattered n = scattered_of(s, out[0]);

    WF_TRY(wf_clear(run, out[0], err));
    WF_TRY(wf_look(run, s, n.n_ids, run->workspace, err));
    return wf_scatter_as<wf_adds<T>, T>(run, s, n, in[0], out[0], err);
}

} // namespace

#define GRAD(dtype, T)                                                                             \
    {                                                                                              \
        .op = "GatherNDGrad", .domain = WF_DOMAIN_WEFT, .dtypes = WF_TYPE(dtype),                  \
        .prepare = prepare_scatter, .run = grad<T>                                                 \
    }

WF_CUDA_ROWS(nd){
    {.op = "GatherND", .dtypes = WF_TYPES_ALL, .prepare = prepare_gather, .run = gather},
    GRAD(WF_F32, float),
    GRAD(WF_F64, double),
    {.op = "ScatterND",
     .dtypes = WF_TYPES_ALL,
     .in_place = 1,
     .prepare = prepare_scatter,
     .run = scatter},
    {},
};
