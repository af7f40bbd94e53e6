/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/shape/places.c */
#include "common/kernels/shape/places.h"
#include "common/kernels/shape/axes.h"

#include <string.h>

wf_scatter_way wf_scatter_way_of(const wf_node *node)
{
    const char *name = wf_node_string(node, "reduction", "none");

    return strcmp(name, "add") == 0   ? WF_SCATTER_ADD
           : strcmp(name, "mul") == 0 ? WF_SCATTER_MULTIPLY
           : strcmp(name, "max") == 0 ? WF_SCATTER_LARGEST
           : strcmp(name, "min") == 0 ? WF_SCATTER_SMALLEST
                                      : WF_SCATTER_PUT;
}

wf_elements wf_elements_of(const wf_node *node, const wf_tensor *data, const wf_tensor *ids)
{
    uint32_t axis = wf_axis_at(wf_node_int(node, "axis", 0), data->rank);
    int64_t strides[1][WF_MAX_RANK];
    wf_elements e;

    wf_strides(data->rank, data->dims, strides[0]);
    e.size = data->dims[axis];
    e.stride = strides[0][axis];
    strides[0][axis] = 0;
    wf_walk_strided(&e.walk, ids->rank, ids->dims, 1, (const int64_t(*)[WF_MAX_RANK])strides);
    return e;
}

wf_slices wf_slices_of(const wf_node *node, const wf_tensor *data, const wf_tensor *ids)
{
    uint32_t batch = (uint32_t)wf_node_int(node, "batch_dims", 0);
    wf_slices s = {.n = 1, .inner = 1, .batch_elems = 1};
    int64_t strides[WF_MAX_RANK], parts = 1;

    s.depth = (uint32_t)ids->dims[ids->rank - 1];
    wf_strides(data->rank, data->dims, strides);
    for (uint32_t i = 0; i + 1 < ids->rank; i++) {
        s.n *= ids->dims[i];
        parts *= i < batch ? ids->dims[i] : 1;
    }
    s.per_batch = parts ? s.n / parts : 0;
    for (uint32_t i = 0; i < data->rank; i++) {
        s.batch_elems *= i >= batch ? data->dims[i] : 1;
        s.inner *= i >= batch + s.depth ? data->dims[i] : 1;
    }
    for (uint32_t i = 0; i < s.depth; i++) {
        s.sizes[i] = data->dims[batch + i];
        s.strides[i] = strides[batch + i];
    }
    return s;
}
