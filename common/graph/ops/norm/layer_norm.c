/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/norm/layer_norm.c - LayerNormalization, LayerNormalizationGrad,
 * RMSNormalization and RMSNormalizationGrad. */
#include "common/graph/infer.h"
#include "common/graph/ops/norm/norm.h"
#include "common/graph/ops/ops.h"

/* LayerNormalization over all axes from attr axis on. Outputs 1 and 2 are the mean and 1 /
 * deviation of each row, which carry no gradient. */

static wf_status infer_layer_normalization(wf_graph *g, wf_node *n, wf_err *err)
{
    const wf_value *x = n->in[0];
    wf_axis axes[WF_MAX_RANK];
    uint32_t axis;

    (void)g;
    WF_TRY(wf_need_floats(n, 3, err));
    if (wf_node_int(n, "stash_type", 1) != 1)
        return wf_fail(err, WF_UNSUPPORTED, NULL, "its stash_type is %lld, and weft has 1 (float)",
                       (long long)wf_node_int(n, "stash_type", 1));
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

static wf_status grad_layer_normalization(wf_grads *g, const wf_node *n, wf_err *err)
{
    wf_attr layer_normalization_attrs[] = {
        wf_attr_int("axis", wf_node_int(n, "axis", -1)),
        wf_attr_float("epsilon", wf_node_float(n, "epsilon", 1e-5f))};

    return wf_grad_norm(g, n, "LayerNormalizationGrad", 0, NULL, 2, layer_normalization_attrs, err);
}

static const wf_attr_row layer_normalization_attrs[] = {{"axis", WF_ATTR_INT, false},
                                                        {"epsilon", WF_ATTR_FLOAT, false},
                                                        {"stash_type", WF_ATTR_INT, false},
                                                        {0}};

const wf_op wf_op_layer_normalization = {
    .name = "LayerNormalization",
    .domain = WF_DOMAIN_ONNX,
    .since = 17,
    .n_in_min = 2,
    .n_in_max = 3,
    .n_out_min = 1,
    .n_out_max = 3,
    .flags = WF_OP_FOLDABLE,
    .attrs = layer_normalization_attrs,
    .infer = infer_layer_normalization,
    .grad = grad_layer_normalization,
};

/* ai.weft LayerNormalizationGrad(dy, x, scale) -> dx, dscale, dbias. */

static wf_status infer_layer_normalization_grad(wf_graph *g, wf_node *n, wf_err *err)
{
    uint32_t axis;

    if (n->in[1]->rank >= 0)
        WF_TRY(wf_axis_number(wf_node_int(n, "axis", -1), (uint32_t)n->in[1]->rank, &axis, err));
    return wf_infer_norm_grad(g, n, err);
}

static const wf_attr_row layer_normalization_grad_attrs[] = {
    {"axis", WF_ATTR_INT, false}, {"epsilon", WF_ATTR_FLOAT, false}, {0}};

const wf_op wf_op_layer_normalization_grad = {
    .name = "LayerNormalizationGrad",
    .domain = WF_DOMAIN_WEFT,
    .since = 1,
    .means = "(dy, x, scale) -> dx, (dscale), (dbias); attrs axis = -1, epsilon = 1e-5",
    .n_in_min = 3,
    .n_in_max = 3,
    .n_out_min = 1,
    .n_out_max = 3,
    .flags = WF_OP_FOLDABLE,
    .attrs = layer_normalization_grad_attrs,
    .infer = infer_layer_normalization_grad,
};

/* RMSNormalization, of opset 23: x / sqrt(mean(x^2) + epsilon) scale, over all axes from attr axis
 * on. */

static wf_status infer_rms_normalization(wf_graph *g, wf_node *n, wf_err *err)
{
    const wf_value *x = n->in[0];
    uint32_t axis;

    (void)g;
    WF_TRY(wf_need_floats(n, 2, err));
    if (wf_node_int(n, "stash_type", 1) != 1)
        return wf_fail(err, WF_UNSUPPORTED, NULL, "its stash_type is %lld, and weft has 1 (float)",
                       (long long)wf_node_int(n, "stash_type", 1));
    wf_out_like(n, 0, x->dtype, x);
    return x->rank < 0 ? WF_OK
                       : wf_axis_number(wf_node_int(n, "axis", -1), (uint32_t)x->rank, &axis, err);
}

static wf_status grad_rms_normalization(wf_grads *g, const wf_node *n, wf_err *err)
{
    wf_attr rms_normalization_attrs[] = {
        wf_attr_int("axis", wf_node_int(n, "axis", -1)),
        wf_attr_float("epsilon", wf_node_float(n, "epsilon", 1e-5f))};

    return wf_grad_norm(g, n, "RMSNormalizationGrad", 0, NULL, 2, rms_normalization_attrs, err);
}

static const wf_attr_row rms_normalization_attrs[] = {{"axis", WF_ATTR_INT, false},
                                                      {"epsilon", WF_ATTR_FLOAT, false},
                                                      {"stash_type", WF_ATTR_INT, false},
                                                      {0}};

const wf_op wf_op_rms_normalization =
    WF_FOLDABLE(WF_DOMAIN_ONNX, "RMSNormalization", 23, 2, 2, infer_rms_normalization,
                .attrs = rms_normalization_attrs, .grad = grad_rms_normalization);

/* ai.weft RMSNormalizationGrad(dy, x, scale) -> dx, dscale. */

static wf_status infer_rms_normalization_grad(wf_graph *g, wf_node *n, wf_err *err)
{
    uint32_t axis;

    if (n->in[1]->rank >= 0)
        WF_TRY(wf_axis_number(wf_node_int(n, "axis", -1), (uint32_t)n->in[1]->rank, &axis, err));
    return wf_infer_norm_grad(g, n, err);
}

static const wf_attr_row rms_normalization_grad_attrs[] = {
    {"axis", WF_ATTR_INT, false}, {"epsilon", WF_ATTR_FLOAT, false}, {0}};

const wf_op wf_op_rms_normalization_grad = {
    .name = "RMSNormalizationGrad",
    .domain = WF_DOMAIN_WEFT,
    .since = 1,
    .means = "(dy, x, scale) -> dx, (dscale); attrs axis = -1, epsilon = 1e-5",
    .n_in_min = 3,
    .n_in_max = 3,
    .n_out_min = 1,
    .n_out_max = 2,
    .flags = WF_OP_FOLDABLE,
    .attrs = rms_normalization_grad_attrs,
    .infer = infer_rms_normalization_grad,
};
