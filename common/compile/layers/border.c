/* SPDX-License-Identifier: Apache-2.0 */
/* common/compile/layers/border.c - layers that change the extents of an image: zero padding,
 * cropping, up-sampling. */
#include "common/compile/layers/layer.h"
#include <string.h>

/* before [n] and after [n] from one number for all, n numbers for both sides of each axis, or n
 * pairs; of one axis two numbers are a pair. */
static bool sides(wf_layer *l, const char *option, uint32_t n, int64_t before[], int64_t after[])
{
    const wf_conf_option *o = wf_conf_find(l->item, option);

    if (o && o->n != 1 && o->n != n && o->n != (size_t)n * 2) {
        wf_layer_refuse(l, WF_USAGE, "write one number, or a pair for each axis",
                        "\"%s\" has %zu numbers for %u axes", option, o->n, n);
        return false;
    }
    for (uint32_t i = 0; i < n; i++) {
        bool pairs = o && o->n == (size_t)n * 2;

        before[i] = !o ? 1 : o->ints[o->n == 1 ? 0 : pairs ? 2 * i : i];
        after[i] = pairs ? o->ints[2 * i + 1] : before[i];
    }
    return true;
}

static wf_value *spatial_axes(wf_layer *l, uint32_t n)
{
    static const int64_t axes[] = {2, 3, 4};

    return wf_emit_ints(&l->e, n, axes);
}

static wf_flow pad(wf_layer *l)
{
    uint32_t n = wf_layer_spatial(l);
    wf_value *x = wf_layer_image(l, n), *in[4] = {x, NULL, NULL, NULL};
    int64_t pads[6];

    if (!x || !sides(l, "padding", n, pads, pads + n))
        return (wf_flow){0};
    in[1] = wf_emit_ints(&l->e, 2 * n, pads);
    in[3] = spatial_axes(l, n);
    return wf_layer_give_image(l, wf_emit_op(&l->e, "Pad", 4, in, 0, NULL));
}

static wf_flow crop(wf_layer *l)
{
    uint32_t n = wf_layer_spatial(l);
    wf_value *x = wf_layer_image(l, n), *in[4] = {x, NULL, NULL, NULL};
    int64_t start[3], end[3];

    if (!x || !sides(l, "cropping", n, start, end))
        return (wf_flow){0};
    for (uint32_t i = 0; i < n; i++) {
        int64_t extent = x->axes[i + 2].size;

        if (start[i] + end[i] >= extent)
            return wf_layer_refuse(l, WF_USAGE, "crop less",
                                   "it crops %lld along axis %u, which has %lld",
                                   (long long)(start[i] + end[i]), i + 1, (long long)extent);
        end[i] = extent - end[i];
    }
    in[1] = wf_emit_ints(&l->e, n, start);
    in[2] = wf_emit_ints(&l->e, n, end);
    in[3] = spatial_axes(l, n);
    return wf_layer_give_image(l, wf_emit_op(&l->e, "Slice", 4, in, 0, NULL));
}

static wf_flow enlarge(wf_layer *l)
{
    static const int64_t axes[] = {2, 3, 4};
    uint32_t n = wf_layer_spatial(l);
    wf_value *x = wf_layer_image(l, n), *in[3] = {x, NULL, NULL};
    bool linear = !strcmp(wf_conf_text(l->item, "interpolation", "nearest"), "bilinear");
    int64_t size[3], count = n;
    wf_tensor *scales = NULL;
    wf_status rc;
    wf_attr attrs[] = {
        wf_attr_ints("axes", n, axes),
        wf_attr_string("mode", linear ? "linear" : "nearest"),
        wf_attr_string("coordinate_transformation_mode", linear ? "half_pixel" : "asymmetric"),
        wf_attr_string("nearest_mode", "floor"),
    };

    if (!x || !wf_layer_ints(l, "size", n, 2, size))
        return (wf_flow){0};
    rc = wf_tensor_new(WF_F32, 1, &count, &scales, l->e.err);
    if (rc != WF_OK)
        return wf_layer_stop(l, rc);
    for (uint32_t i = 0; i < n; i++)
        wf_f32_mut(scales)[i] = (float)size[i];
    in[2] = wf_emit_constant(&l->e, l->name, &scales);
    return wf_layer_give_image(l, wf_emit_op(&l->e, "Resize", 3, in, linear ? 3 : 4, attrs));
}

const wf_layer_row wf_layer_cropping1d = {"cropping1d", 1, 1, crop};
const wf_layer_row wf_layer_cropping2d = {"cropping2d", 1, 1, crop};
const wf_layer_row wf_layer_cropping3d = {"cropping3d", 1, 1, crop};
const wf_layer_row wf_layer_up_sampling1d = {"up_sampling1d", 1, 1, enlarge};
const wf_layer_row wf_layer_up_sampling2d = {"up_sampling2d", 1, 1, enlarge};
const wf_layer_row wf_layer_up_sampling3d = {"up_sampling3d", 1, 1, enlarge};
const wf_layer_row wf_layer_zero_padding1d = {"zero_padding1d", 1, 1, pad};
const wf_layer_row wf_layer_zero_padding2d = {"zero_padding2d", 1, 1, pad};
const wf_layer_row wf_layer_zero_padding3d = {"zero_padding3d", 1, 1, pad};
