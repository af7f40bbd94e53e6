/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/index/gather.c - Gather and GatherGrad. */
#include "common/graph/emit.h"
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

#include <string.h>

/* Gather: y = the slices of data along attr axis that ids name; negative ids count from the end. */

static wf_status carry(wf_graph *g, wf_node *n, wf_err *err)
{
    wf_elem data[WF_MAX_CARRIED], ids[WF_MAX_CARRIED], out[WF_MAX_CARRIED];
    uint32_t n_data, n_ids;

    if (n->in[0]->rank != 1 || !wf_value_elems(n->in[0], data, &n_data) ||
        !wf_value_elems(n->in[1], ids, &n_ids))
        return WF_OK;
    for (uint32_t i = 0; i < n_ids; i++) {
        int64_t at = ids[i].value < 0 ? ids[i].value + n_data : ids[i].value;

        if (ids[i].is_known && (at < 0 || at >= n_data))
            return wf_fail(err, WF_SHAPE, NULL, "index %lld is not in an axis of %u",
                           (long long)ids[i].value, n_data);
        out[i] = ids[i].is_known ? data[at] : wf_elem_unknown();
    }
    return wf_out_carry(g, n, 0, n_ids, out, err);
}

static wf_status infer_gather(wf_graph *g, wf_node *n, wf_err *err)
{
    const wf_value *data = n->in[0], *ids = n->in[1];
    wf_axis axes[2 * WF_MAX_RANK];
    uint32_t axis, rank = 0;

    WF_TRY(wf_need_int(n, 1, "indices", err));
    wf_out_unknown(n, 0, data->dtype);
    if (data->rank < 0 || ids->rank < 0)
        return WF_OK;
    WF_TRY(wf_axis_number(wf_node_int(n, "axis", 0), (uint32_t)data->rank, &axis, err));
    WF_TRY(wf_need_rank(data->rank + ids->rank - 1, err));
    for (uint32_t i = 0; i < axis; i++)
        axes[rank++] = data->axes[i];
    for (int32_t i = 0; i < ids->rank; i++)
        axes[rank++] = ids->axes[i];
    for (int32_t i = (int32_t)axis + 1; i < data->rank; i++)
        axes[rank++] = data->axes[i];
    wf_out_axes(n, 0, data->dtype, rank, axes);
    return carry(g, n, err);
}

static const wf_attr_row attrs[] = {{"axis", WF_ATTR_INT, false}, {0}};

const wf_op wf_op_gather =
    WF_FOLDABLE(WF_DOMAIN_ONNX, "Gather", 13, 2, 2, infer_gather, .no_grad_in = 1u << 1,
                .attrs = attrs, WF_GRAD_NODE("GatherGrad", "d0 x1 x0"));

/* ai.weft GatherGrad: dy's slices added at the places that ids name, in zeros of the shape of
 * data. */

const wf_op wf_op_gather_grad =
    WF_FOLDABLE(WF_DOMAIN_WEFT, "GatherGrad", 1, 3, 3, wf_infer_grad_by_ids,
                .means = "(dy, ids, data) -> as data; attr axis = 0; adds up where ids repeat; "
                         "negative ids count from the end; of data only the shape is read",
                .attrs = attrs);
