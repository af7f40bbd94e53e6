/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/norm/layer_norm.c - LayerNormalization, LayerNormalizationGrad,
 * RMSNormalization and RMSNormalizationGrad. */
#include "common/graph/infer.h"
#include "common/graph/ops/norm/norm.h"
#include "common/graph/ops/ops.h"

static const wf_attr_row attrs[] = {{"axis", WF_ATTR_INT, false},
                                    {"epsilon", WF_ATTR_FLOAT, false},
                                    {"stash_type", WF_ATTR_INT, false},
                                    {0}};
static const wf_attr_row grad_attrs[] = {
    {"axis", WF_ATTR_INT, false}, {"epsilon", WF_ATTR_FLOAT, false}, {0}};

static wf_status check_stash(const wf_node *n, wf_err *err)
{
    int64_t type = wf_node_int(n, "stash_type", 1);

    if (type == 1)
        return WF_OK;
    return wf_fail(err, WF_UNSUPPORTED, "leave stash_type out",
                   "its stash_type is %lld, and weft has 1 (float)", (long long)type);
}

/* LayerNormalization over all axes from attr axis on. Outputs 1 and 2 are the mean and 1 /
 * deviation of each row, which carry no gradient. */

static wf_status infer_layer_normalization(wf_graph *g, wf_node *n, wf_err *err)
{
    const wf_value *x = n->in[0];
    wf_axis axes[WF_MAX_RANK];
    uint32_t axis;

    (void)g;
    WF_TRY(wf_need_floats(n, 3, err));
    WF_TRY(check_stash(n, err));
    wf_out_like(n, 0, x->dtype, x);
    wf_out_unknown(n, 1, WF_F32);
    wf_out_unknown(n, 2, WF_F32);
    if (x->rank < 0)
        return WF_OK;
    WF_TRY(wf_axis_number(wf_node_int(n, "axis", -1), (uint32_t)x->rank, &axis, err));
    for (uint32_t i = 0; i < (uint32_t)x->rank; i++)
        axes[i] = i < axis ? x->axes[i] : wf_axis_of(1);
    wf_out_axes(n, 1, WF_F32, (uint32_t)x->rank, axes);
    wf_out_axes(n, 2, WF_F32, (uint32_t)x->rank, axes);
    return WF_OK;
}

const wf_op wf_op_layer_normalization = WF_OPERATION(
    WF_DOMAIN_ONNX, "LayerNormalization", 17, 2, 3, 1, 3, WF_OP_FOLDABLE, infer_layer_normalization,
    .attrs = attrs, WF_GRAD_NODE("LayerNormalizationGrad", "d0 x0 x1"));

/* ai.weft LayerNormalizationGrad(dy, x, scale) -> dx, dscale, dbias. */

static wf_status infer_grad(wf_graph *g, wf_node *n, wf_err *err)
{
    uint32_t axis;

    if (n->in[1]->rank >= 0)
        WF_TRY(wf_axis_number(wf_node_int(n, "axis", -1), (uint32_t)n->in[1]->rank, &axis, err));
    return wf_infer_norm_grad(g, n, err);
}

const wf_op wf_op_layer_normalization_grad = WF_OPERATION(
    WF_DOMAIN_WEFT, "LayerNormalizationGrad", 1, 3, 3, 1, 3, WF_OP_FOLDABLE, infer_grad,
    .means = "(dy, x, scale) -> dx, (dscale), (dbias); attrs axis = -1, epsilon = 1e-5",
    .attrs = grad_attrs);

/* RMSNormalization, of opset 23: x / sqrt(mean(x^2) + epsilon) scale, over all axes from attr axis
 * on. */

static wf_status infer_rms_normalization(wf_graph *g, wf_node *n, wf_err *err)
{
    const wf_value *x = n->in[0];
    uint32_t axis;

    (void)g;
    WF_TRY(wf_need_floats(n, 2, err));
    WF_TRY(check_stash(n, err));
    wf_out_like(n, 0, x->dtype, x);
    return x->rank < 0 ? WF_OK
                       : wf_axis_number(wf_node_int(n, "axis", -1), (uint32_t)x->rank, &axis, err);
}

const wf_op wf_op_rms_normalization =
    WF_FOLDABLE(WF_DOMAIN_ONNX, "RMSNormalization", 23, 2, 2, infer_rms_normalization,
                .attrs = attrs, WF_GRAD_NODE("RMSNormalizationGrad", "d0 x0 x1"));

/* ai.weft RMSNormalizationGrad(dy, x, scale) -> dx, dscale. */

const wf_op wf_op_rms_normalization_grad =
    WF_OPERATION(WF_DOMAIN_WEFT, "RMSNormalizationGrad", 1, 3, 3, 1, 2, WF_OP_FOLDABLE, infer_grad,
                 .means = "(dy, x, scale) -> dx, (dscale); attrs axis = -1, epsilon = 1e-5",
                 .attrs = grad_attrs);
