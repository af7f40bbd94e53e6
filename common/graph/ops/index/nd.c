/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/index/nd.c - GatherND, GatherNDGrad and ScatterND. */
#include "common/graph/emit.h"
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

#include <string.h>

/* GatherND: the last axis of the indices holds places along as many axes of data, after attr
 * batch_dims axes that the two have in common. */

static wf_status infer_gather_nd(wf_graph *g, wf_node *n, wf_err *err)
{
    const wf_value *data = n->in[0], *ids = n->in[1];
    int64_t batch = wf_node_int(n, "batch_dims", 0), depth;
    wf_axis axes[2 * WF_MAX_RANK];
    uint32_t rank = 0;

    (void)g;
    WF_TRY(wf_need_int(n, 1, "indices", err));
    wf_out_unknown(n, 0, data->dtype);
    if (data->rank < 0 || ids->rank < 0)
        return WF_OK;
    if (batch < 0 || data->rank < 1 || ids->rank < 1 || batch >= data->rank || batch >= ids->rank)
        return wf_fail(err, WF_SHAPE, NULL, "batch_dims is %lld, of tensors of %d and %d axes",
                       (long long)batch, data->rank, ids->rank);
    for (int32_t i = 0; i < batch; i++)
        if (wf_axes_clash(&data->axes[i], &ids->axes[i]))
            return wf_fail(err, WF_SHAPE, NULL, "axis %d of data and indices has %lld and %lld", i,
                           (long long)data->axes[i].size, (long long)ids->axes[i].size);
    depth = ids->axes[ids->rank - 1].size;
    if (depth < 0)
        return WF_OK;
    if (depth < 1 || depth > data->rank - batch)
        return wf_fail(err, WF_SHAPE, NULL, "an index of %lld numbers into %d axes",
                       (long long)depth, data->rank - (int32_t)batch);
    for (int32_t i = 0; i < ids->rank - 1; i++)
        axes[rank++] = ids->axes[i];
    for (int32_t i = (int32_t)(batch + depth); i < data->rank; i++)
        axes[rank++] = data->axes[i];
    WF_TRY(wf_need_rank(rank, err));
    wf_out_axes(n, 0, data->dtype, rank, axes);
    return WF_OK;
}

static const wf_attr_row gather_nd_attrs[] = {{"batch_dims", WF_ATTR_INT, false}, {0}};

const wf_op wf_op_gather_nd =
    WF_FOLDABLE(WF_DOMAIN_ONNX, "GatherND", 13, 2, 2, infer_gather_nd, .no_grad_in = 1u << 1,
                .attrs = gather_nd_attrs, WF_GRAD_NODE("GatherNDGrad", "d0 x1 x0"));

/* ai.weft GatherNDGrad: dy added up where GatherND took from, in zeros of the shape of data. */

const wf_op wf_op_gather_nd_grad =
    WF_FOLDABLE(WF_DOMAIN_WEFT, "GatherNDGrad", 1, 3, 3, wf_infer_grad_by_ids,
                .means = "(dy, ids, data) -> as data; attr batch_dims = 0; zeros, and dy added "
                         "where GatherND took from; of data only the shape is read",
                .attrs = gather_nd_attrs);

/* ScatterND: data with updates put (attr reduction: added, multiplied, the larger, the smaller)
 * where GatherND with the same indices takes from. */

static wf_status infer_scatter_nd(wf_graph *g, wf_node *n, wf_err *err)
{
    const wf_value *data = n->in[0], *ids = n->in[1], *updates = n->in[2];
    char a[WF_VALUE_STR], b[WF_VALUE_STR], c[WF_VALUE_STR];
    int64_t depth;
    bool fits;

    (void)g;
    WF_TRY(wf_need_int(n, 1, "indices", err));
    WF_TRY(wf_need_same_dtype(n, 0, 2, err));
    WF_TRY(wf_check_reduction(n, err));
    wf_out_like(n, 0, data->dtype, data);
    if (data->rank < 0 || ids->rank < 0 || updates->rank < 0)
        return WF_OK;
    depth = ids->rank ? ids->axes[ids->rank - 1].size : 0;
    if (ids->rank && depth < 0)
        return WF_OK;
    fits = ids->rank > 0 && depth >= 1 && depth <= data->rank &&
           updates->rank == ids->rank - 1 + data->rank - depth;
    for (int32_t i = 0; fits && i < updates->rank; i++)
        fits = !wf_axes_clash(&updates->axes[i], i < ids->rank - 1
                                                     ? &ids->axes[i]
                                                     : &data->axes[i - ids->rank + 1 + depth]);
    if (fits)
        return WF_OK;
    return wf_fail(err, WF_SHAPE, NULL, "data is %s, indices %s and updates %s, which do not fit",
                   wf_value_str(data, a, sizeof a), wf_value_str(ids, b, sizeof b),
                   wf_value_str(updates, c, sizeof c));
}

static wf_status grad_scatter_nd(wf_grads *g, const wf_node *n, wf_err *err)
{
    return wf_grad_scatter(g, n, "GatherND", err);
}

static const wf_attr_row scatter_nd_attrs[] = {{"reduction", WF_ATTR_STRING, false}, {0}};

const wf_op wf_op_scatter_nd =
    WF_FOLDABLE(WF_DOMAIN_ONNX, "ScatterND", 18, 3, 3, infer_scatter_nd,
                .note = "gradient of reductions none and add", .no_grad_in = 1u << 1,
                .attrs = scatter_nd_attrs, .grad = grad_scatter_nd);
