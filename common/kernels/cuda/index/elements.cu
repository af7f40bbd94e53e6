/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/index/elements.cu - GatherElements(data, ids), and ScatterElements(data, ids,
 * updates): element i of the ids names a place along one axis of data; the other places are i's
 * own. Equal places are joined in the order of the ids. */
#include "common/kernels/cuda/index/places.h"

namespace
{

struct elements : wf_ids_in_axis {
    wf_elements of;

    WF_CODE int64_t row(int64_t i) const
    {
        int64_t place = wf_place_at(ids, i, axis);

        return place < 0 ? -1 : wf_at(of.walk, 0, i) + place * of.stride;
    }
};

elements elements_of(const wf_node *node, const wf_tensor *data, const wf_tensor *ids)
{
    elements e = {};

    e.of = wf_elements_of(node, data, ids);
    e.ids = wf_ids_of(ids);
    e.axis = e.of.size;
    return e;
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
    return wf_gather_rows(run, elements_of(run->node, in[0], in[1]), wf_elems(in[1]), 1, in[0],
                          out[0], err);
}

wf_scattered scattered_of(const wf_tensor *data, const wf_tensor *ids)
{
    return wf_scattered_of(wf_elems(ids), wf_elems(ids), 1, data);
}

wf_status prepare_scatter(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                          wf_err *err)
{
    (void)out;
    return wf_scatter_prepare(prep, scattered_of(in[0], in[1]), err);
}

wf_status scatter(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                  wf_err *err)
{
    WF_TRY(wf_copy_view(run, in, out, err));
    return wf_scatter_rows(run, wf_scatter_way_of(run->node), elements_of(run->node, in[0], in[1]),
                           scattered_of(in[0], in[1]), in[2], out[0], err);
}

} // namespace

WF_CUDA_ROWS(elements){
    {.op = "GatherElements", .dtypes = WF_TYPES_ALL, .prepare = prepare_gather, .run = gather},
    {.op = "ScatterElements",
     .dtypes = WF_TYPES_ALL,
     .in_place = 1,
     .prepare = prepare_scatter,
     .run = scatter},
    {},
};
