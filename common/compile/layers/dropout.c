/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/layers/dropout.c - dropout of single numbers, and of whole channels of an image.
 * training_mode false is what the graph says; the mode pass turns it on for training. */
#include "common/compile/layers/layer.h"

static wf_value *drop(wf_layer *l, wf_value *x)
{
    wf_value *in[3] = {x, NULL, NULL};

    in[1] = wf_emit_scalar(&l->e, WF_F32, wf_conf_number(l->item, "rate", 0.0));
    in[2] = wf_emit_scalar(&l->e, WF_BOOL, 0.0);
    return x ? wf_emit_op(&l->e, "Dropout", 3, in, 0, NULL) : NULL;
}

static wf_flow build(wf_layer *l)
{
    wf_flow f = wf_layer_float(l, 0);

    f.value = drop(l, f.value);
    return f;
}

/* A dropout of ones [batch, channels, 1, ...], by which the image is multiplied. */
static wf_flow channels(wf_layer *l)
{
    uint32_t n = wf_layer_spatial(l);
    wf_value *x = wf_layer_image(l, n), *shape[2], *ones;
    int64_t rest[4] = {0, 1, 1, 1};
    wf_attr axis = wf_attr_int("axis", 0);

    if (!x)
        return (wf_flow){0};
    rest[0] = x->axes[1].size;
    shape[0] = wf_emit_dim_of(&l->e, x, 0);
    shape[1] = wf_emit_ints(&l->e, n + 1, rest);
    ones = wf_emit_binary(&l->e, "Expand", wf_layer_number(l, 1.0),
                          wf_emit_op(&l->e, "Concat", 2, shape, 1, &axis));
    return wf_layer_give_image(l, wf_emit_mul(&l->e, x, drop(l, ones)));
}

const wf_layer_row wf_layer_dropout = {"dropout", 1, 1, build};
const wf_layer_row wf_layer_spatial_dropout1d = {"spatial_dropout1d", 1, 1, channels};
const wf_layer_row wf_layer_spatial_dropout2d = {"spatial_dropout2d", 1, 1, channels};
const wf_layer_row wf_layer_spatial_dropout3d = {"spatial_dropout3d", 1, 1, channels};
