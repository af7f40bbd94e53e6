/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/norm/group_norm.c - GroupNormalization, GroupNormalizationGrad and
 * InstanceNormalization. */
#include "common/graph/infer.h"
#include "common/graph/ops/norm/norm.h"
#include "common/graph/ops/ops.h"

/* GroupNormalization: num_groups groups of channels, each of its own mean and variance. Scale and
 * bias have one element a group (opset 18) or a channel (21); their size says which. */

static wf_status check(const wf_node *n, wf_err *err)
{
    const wf_value *x = n->in[0], *scale = n->in[1];
    int64_t groups = wf_node_int(n, "num_groups", 0);
    char a[WF_VALUE_STR], b[WF_VALUE_STR];

    if (groups < 1 || (x->rank >= 2 && x->axes[1].size >= 0 && x->axes[1].size % groups))
        return wf_fail(err, WF_SHAPE, NULL,
                       "X is %s, whose channels do not divide into %lld groups",
                       wf_value_str(x, a, sizeof a), (long long)groups);
    if (x->rank >= 0 && scale->rank >= 0 &&
        (x->rank < 2 || scale->rank != 1 ||
         (scale->axes[0].size >= 0 && scale->axes[0].size != groups &&
          wf_axes_clash(&scale->axes[0], &x->axes[1]))))
        return wf_fail(err, WF_SHAPE, NULL,
                       "X is %s and the scale %s; it must have one element a channel, or a group",
                       wf_value_str(x, a, sizeof a), wf_value_str(scale, b, sizeof b));
    return WF_OK;
}

static wf_status infer_group_normalization(wf_graph *g, wf_node *n, wf_err *err)
{
    (void)g;
    WF_TRY(wf_need_floats(n, 3, err));
    WF_TRY(check(n, err));
    wf_out_like(n, 0, n->in[0]->dtype, n->in[0]);
    return WF_OK;
}

static const wf_attr_row group_attrs[] = {{"epsilon", WF_ATTR_FLOAT, false},
                                          {"num_groups", WF_ATTR_INT, true},
                                          {"stash_type", WF_ATTR_INT, false},
                                          {0}};

const wf_op wf_op_group_normalization =
    WF_FOLDABLE(WF_DOMAIN_ONNX, "GroupNormalization", 18, 3, 3, infer_group_normalization,
                .attrs = group_attrs, WF_GRAD_NODE("GroupNormalizationGrad", "d0 x0 x1"));

/* ai.weft GroupNormalizationGrad(dy, x, scale) -> dx, dscale, dbias. Without num_groups each
 * channel is a group: InstanceNormalization's. */

static const wf_attr_row grad_attrs[] = {
    {"epsilon", WF_ATTR_FLOAT, false}, {"num_groups", WF_ATTR_INT, false}, {0}};

const wf_op wf_op_group_normalization_grad = WF_OPERATION(
    WF_DOMAIN_WEFT, "GroupNormalizationGrad", 1, 3, 3, 1, 3, WF_OP_FOLDABLE, wf_infer_norm_grad,
    .means = "(dy, x, scale) -> dx, (dscale), (dbias); attrs epsilon, num_groups (as "
             "many as channels when absent)",
    .attrs = grad_attrs);

/* InstanceNormalization: each channel of each image by its own mean and variance. */

static wf_status infer_instance_normalization(wf_graph *g, wf_node *n, wf_err *err)
{
    (void)g;
    WF_TRY(wf_need_floats(n, 3, err));
    WF_TRY(wf_need_per_channel(n, 3, err));
    wf_out_like(n, 0, n->in[0]->dtype, n->in[0]);
    return WF_OK;
}

static const wf_attr_row instance_attrs[] = {{"epsilon", WF_ATTR_FLOAT, false}, {0}};

const wf_op wf_op_instance_normalization =
    WF_FOLDABLE(WF_DOMAIN_ONNX, "InstanceNormalization", 6, 3, 3, infer_instance_normalization,
                .attrs = instance_attrs, WF_GRAD_NODE("GroupNormalizationGrad", "d0 x0 x1"));
