/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/gather_nd.c - GatherND: the last axis of the indices holds places along as many
 * axes of data, after attr batch_dims axes that the two have in common. */
#include "common/graph/emit.h"
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
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
    if (rank > WF_MAX_RANK)
        return wf_fail(err, WF_UNSUPPORTED, NULL, "a result of %u axes, and weft has %d at most",
                       rank, WF_MAX_RANK);
    wf_out_axes(n, 0, data->dtype, rank, axes);
    return WF_OK;
}

static wf_status grad(wf_grads *g, const wf_node *n, wf_err *err)
{
    wf_value *in[] = {wf_grads_upstream(g, n, 0), n->in[1], n->in[0]};
    wf_attr batch = wf_attr_int("batch_dims", wf_node_int(n, "batch_dims", 0));

    (void)err;
    return wf_grads_add(g, n, 0, wf_emit_op(wf_grads_emit(g), "GatherNDGrad", 3, in, 1, &batch));
}

static const wf_attr_row attrs[] = {{"batch_dims", WF_ATTR_INT, false}, {0}};

const wf_op wf_op_gather_nd = {
    .name = "GatherND",
    .domain = WF_DOMAIN_ONNX,
    .since = 13,
    .n_in_min = 2,
    .n_in_max = 2,
    .n_out_min = 1,
    .n_out_max = 1,
    .flags = WF_OP_FOLDABLE,
    .no_grad_in = 1u << 1,
    .attrs = attrs,
    .infer = infer,
    .grad = grad,
};
