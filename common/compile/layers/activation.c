/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/layers/activation.c - layers that are an activation: by name, or with numbers. */
#include "common/compile/layers/layer.h"

static wf_flow by_name(wf_layer *l)
{
    return wf_layer_activate(l, wf_layer_float(l, 0), "activation", "linear");
}

static wf_flow curve(wf_layer *l, const char *op, const char *option, double otherwise)
{
    wf_flow f = wf_layer_float(l, 0);
    wf_attr alpha = wf_attr_float("alpha", (float)wf_conf_number(l->item, option, otherwise));

    f.value = wf_emit_op(&l->e, op, 1, &f.value, 1, &alpha);
    return f;
}

static wf_flow relu(wf_layer *l)
{
    const wf_conf_option *most = wf_conf_find(l->item, "max_value");
    wf_flow f = wf_layer_float(l, 0);

    if (wf_conf_number(l->item, "negative_slope", 0.0) > 0)
        f = curve(l, "LeakyRelu", "negative_slope", 0.0);
    else
        f.value = wf_emit_unary(&l->e, "Relu", f.value);
    if (most) {
        wf_value *in[3] = {f.value, NULL, wf_layer_number(l, most->number)};

        f.value = wf_emit_op(&l->e, "Clip", 3, in, 0, NULL);
    }
    return f;
}

static wf_flow leaky_relu(wf_layer *l)
{
    return curve(l, "LeakyRelu", "negative_slope", 0.3);
}

static wf_flow elu(wf_layer *l)
{
    return curve(l, "Elu", "alpha", 1.0);
}

/* The last axis in Keras's order stays the last: the loss looks for a softmax along it. */
static wf_flow softmax(wf_layer *l)
{
    wf_flow f = wf_layer_give(wf_layer_in(l, 0));
    int64_t at = wf_layer_axis(l, f, wf_conf_int(l->item, "axis", -1));
    wf_attr axis = wf_attr_int("axis", f.value && at == f.value->rank - 1 ? -1 : at);

    return wf_layer_give(wf_emit_op(&l->e, "Softmax", 1, &f.value, 1, &axis));
}

/* alpha has the shape of a record, 1 along shared axes. */
static wf_flow prelu(wf_layer *l)
{
    const wf_conf_option *shared = wf_conf_find(l->item, "shared_axes");
    wf_value *in[2] = {wf_layer_in(l, 0), NULL};
    int64_t dims[WF_MAX_RANK];

    if (!in[0])
        return (wf_flow){0};
    for (int32_t i = 1; i < in[0]->rank; i++)
        dims[i - 1] = in[0]->axes[i].size;
    for (size_t i = 0; shared && i < shared->n; i++) {
        int64_t at = wf_layer_axis(l, wf_layer_give(in[0]), shared->ints[i]);

        if (at < 0)
            return (wf_flow){0};
        dims[at - 1] = 1;
    }
    in[1] = wf_layer_variable(l, "alpha", (uint32_t)in[0]->rank - 1, dims, "zeros", NULL);
    return wf_layer_give(wf_emit_op(&l->e, "PRelu", 2, in, 0, NULL));
}

static wf_flow rescaling(wf_layer *l)
{
    wf_flow f = wf_layer_float(l, 0);
    double offset = wf_conf_number(l->item, "offset", 0.0);

    f.value = wf_emit_scale(&l->e, f.value, wf_conf_number(l->item, "scale", 1.0));
    if (offset != 0.0)
        f.value = wf_emit_add(&l->e, f.value, wf_layer_number(l, offset));
    return f;
}

const wf_layer_row wf_layer_activation = {"activation", 1, 1, by_name};
const wf_layer_row wf_layer_elu = {"elu", 1, 1, elu};
const wf_layer_row wf_layer_leaky_relu = {"leaky_relu", 1, 1, leaky_relu};
const wf_layer_row wf_layer_prelu = {"prelu", 1, 1, prelu};
const wf_layer_row wf_layer_relu = {"relu", 1, 1, relu};
const wf_layer_row wf_layer_rescaling = {"rescaling", 1, 1, rescaling};
const wf_layer_row wf_layer_softmax = {"softmax", 1, 1, softmax};
