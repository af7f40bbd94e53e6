/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/layers/pooling.c - max and average poolings, of windows and of whole images. The
 * padding never counts. */
#include "common/compile/layers/layer.h"

static wf_flow pool(wf_layer *l, const char *op)
{
    uint32_t n = wf_layer_spatial(l);
    wf_value *x = wf_layer_image(l, n);
    wf_layer_window w;

    if (!wf_layer_read_window(l, x, n, "pool_size", 2, 0, &w))
        return (wf_flow){0};
    return wf_layer_give_image(l, wf_emit_op(&l->e, op, 1, &x, 3, w.attrs)); /* no dilations */
}

static wf_flow max(wf_layer *l)
{
    return pool(l, "MaxPool");
}

static wf_flow average(wf_layer *l)
{
    return pool(l, "AveragePool");
}

/* [batch, channels], or an image of one point with keepdims. */
static wf_flow global(wf_layer *l, const char *op)
{
    wf_value *x = wf_emit_unary(&l->e, op, wf_layer_image(l, wf_layer_spatial(l)));
    wf_attr axis = wf_attr_int("axis", 1);

    if (wf_layer_flag(l, "keepdims", false))
        return wf_layer_give_image(l, x);
    return wf_layer_give(wf_emit_op(&l->e, "Flatten", 1, &x, 1, &axis));
}

static wf_flow global_max(wf_layer *l)
{
    return global(l, "GlobalMaxPool");
}

static wf_flow global_average(wf_layer *l)
{
    return global(l, "GlobalAveragePool");
}

const wf_layer_row wf_layer_average_pooling1d = {"average_pooling1d", 1, 1, average};
const wf_layer_row wf_layer_average_pooling2d = {"average_pooling2d", 1, 1, average};
const wf_layer_row wf_layer_average_pooling3d = {"average_pooling3d", 1, 1, average};
const wf_layer_row wf_layer_global_average_pooling1d = {"global_average_pooling1d", 1, 1,
                                                        global_average};
const wf_layer_row wf_layer_global_average_pooling2d = {"global_average_pooling2d", 1, 1,
                                                        global_average};
const wf_layer_row wf_layer_global_average_pooling3d = {"global_average_pooling3d", 1, 1,
                                                        global_average};
const wf_layer_row wf_layer_global_max_pooling1d = {"global_max_pooling1d", 1, 1, global_max};
const wf_layer_row wf_layer_global_max_pooling2d = {"global_max_pooling2d", 1, 1, global_max};
const wf_layer_row wf_layer_global_max_pooling3d = {"global_max_pooling3d", 1, 1, global_max};
const wf_layer_row wf_layer_max_pooling1d = {"max_pooling1d", 1, 1, max};
const wf_layer_row wf_layer_max_pooling2d = {"max_pooling2d", 1, 1, max};
const wf_layer_row wf_layer_max_pooling3d = {"max_pooling3d", 1, 1, max};
