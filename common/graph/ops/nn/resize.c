/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/nn/resize.c - Resize and ResizeGrad. */
#include "common/base/size.h"
#include "common/graph/emit.h"
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

#include <string.h>

/* Resize: nearest, linear or cubic interpolation to given sizes, or by given scales, of all axes
 * or of those in attr axes. */

enum { ROI = 1, SCALES, SIZES };

static const wf_attr_row attrs[] = {{"antialias", WF_ATTR_INT, false},
                                    {"axes", WF_ATTR_INTS, false},
                                    {"coordinate_transformation_mode", WF_ATTR_STRING, false},
                                    {"cubic_coeff_a", WF_ATTR_FLOAT, false},
                                    {"exclude_outside", WF_ATTR_INT, false},
                                    {"extrapolation_value", WF_ATTR_FLOAT, false},
                                    {"keep_aspect_ratio_policy", WF_ATTR_STRING, false},
                                    {"mode", WF_ATTR_STRING, false},
                                    {"nearest_mode", WF_ATTR_STRING, false},
                                    {0}};

/* Attributes have values that weft has. */
static wf_status check(const wf_node *n, wf_err *err)
{
    static const char *const modes[] = {"nearest", "linear", "cubic", NULL};
    static const char *const rounding[] = {"round_prefer_floor", "round_prefer_ceil", "floor",
                                           "ceil", NULL};
    static const char *const transforms[] = {"half_pixel",
                                             "half_pixel_symmetric",
                                             "pytorch_half_pixel",
                                             "align_corners",
                                             "asymmetric",
                                             "tf_crop_and_resize",
                                             NULL};
    static const char *const policies[] = {"stretch", "not_larger", "not_smaller", NULL};

    WF_TRY(wf_need_choice(n, "mode", modes, err));
    WF_TRY(wf_need_choice(n, "nearest_mode", rounding, err));
    WF_TRY(wf_need_choice(n, "coordinate_transformation_mode", transforms, err));
    return wf_need_choice(n, "keep_aspect_ratio_policy", policies, err);
}

/* Which entry of scales and sizes belongs to each axis, -1 for none. *count is how many there are.
 */
static wf_status entries(const wf_node *n, uint32_t rank, int32_t entry[], uint32_t *count,
                         wf_err *err)
{
    size_t n_axes;
    const int64_t *axes = wf_node_ints(n, "axes", &n_axes);

    for (uint32_t i = 0; i < rank; i++)
        entry[i] = axes ? -1 : (int32_t)i;
    *count = axes ? (uint32_t)n_axes : rank;
    if (axes && n_axes > rank)
        return wf_fail(err, WF_SHAPE, NULL, "%zu axes of a tensor of %u", n_axes, rank);
    for (size_t i = 0; axes && i < n_axes; i++) {
        uint32_t axis;

        WF_TRY(wf_axis_number(axes[i], rank, &axis, err));
        if (entry[axis] >= 0)
            return wf_fail(err, WF_SHAPE, NULL, "axis %u is named twice", axis);
        entry[axis] = (int32_t)i;
    }
    return WF_OK;
}

static bool is_empty(const wf_value *v)
{
    return v->rank == 1 && v->axes[0].size == 0;
}

static double scale_at(const wf_tensor *t, int32_t i)
{
    return t->dtype == WF_F64 ? ((const double *)t->data)[i] : (double)((const float *)t->data)[i];
}

static wf_status scale_axis(const wf_axis *in, double scale, wf_axis *out, wf_err *err)
{
    if (!(scale > 0) || scale > 1e6)
        return wf_fail(err, WF_INVALID, NULL, "a scale of %g; it must be above 0", scale);
    *out = in->size >= 0 && in->size <= INT32_MAX
               ? wf_axis_of((int64_t)((double)in->size * scale)) /* the cast rounds down */
           : scale == 1 ? *in
                        : wf_axis_unknown(-1);
    return WF_OK;
}

/* One scale for all axes that have a size: the smallest or the largest. */
static void keep_ratio(const wf_value *x, const int32_t entry[], const wf_elem sizes[], bool larger,
                       wf_axis axes[])
{
    double best = -1;

    for (int32_t i = 0; i < x->rank; i++) {
        double scale;

        if (entry[i] < 0)
            continue;
        if (x->axes[i].size <= 0 || !sizes[entry[i]].is_known ||
            sizes[entry[i]].value > INT32_MAX || x->axes[i].size > INT32_MAX) {
            for (int32_t k = 0; k < x->rank; k++)
                if (entry[k] >= 0)
                    axes[k] = wf_axis_unknown(-1);
            return;
        }
        scale = (double)sizes[entry[i]].value / (double)x->axes[i].size;
        if (best < 0 || (larger ? scale > best : scale < best))
            best = scale;
    }
    for (int32_t i = 0; i < x->rank; i++)
        if (entry[i] >= 0)
            axes[i] = wf_axis_of((int64_t)((double)x->axes[i].size * best + 0.5));
}

static wf_status by_sizes(const wf_node *n, const int32_t entry[], uint32_t count, wf_axis axes[],
                          wf_err *err)
{
    const wf_value *x = n->in[0];
    const char *policy = wf_node_string(n, "keep_aspect_ratio_policy", "stretch");
    wf_elem sizes[WF_MAX_CARRIED];
    uint32_t n_sizes;

    WF_TRY(wf_need_int(n, SIZES, "sizes", err));
    if (!wf_value_elems(n->in[SIZES], sizes, &n_sizes)) {
        for (int32_t i = 0; i < x->rank; i++)
            axes[i] = entry[i] < 0 ? x->axes[i] : wf_axis_unknown(-1);
        return WF_OK;
    }
    if (n_sizes != count)
        return wf_fail(err, WF_SHAPE, NULL, "%u sizes, and must be %u", n_sizes, count);
    for (int32_t i = 0; i < x->rank; i++) {
        if (entry[i] < 0)
            continue;
        if (sizes[entry[i]].is_known && sizes[entry[i]].value < 0)
            return wf_fail(err, WF_INVALID, NULL, "a size of %lld",
                           (long long)sizes[entry[i]].value);
        axes[i] = wf_axis_of_elem(&sizes[entry[i]]);
    }
    if (strcmp(policy, "stretch") != 0)
        keep_ratio(x, entry, sizes, strcmp(policy, "not_smaller") == 0, axes);
    return WF_OK;
}

static wf_status by_scales(const wf_node *n, const int32_t entry[], uint32_t count, wf_axis axes[],
                           wf_err *err)
{
    const wf_value *x = n->in[0], *scales = n->in[SCALES];

    WF_TRY(wf_need_float(n, SCALES, "scales", err));
    for (int32_t i = 0; i < x->rank; i++)
        if (entry[i] >= 0)
            axes[i] = wf_axis_unknown(-1);
    if (!scales->known || !wf_value_is_constant(scales) || scales->known->dtype == WF_F16)
        return WF_OK;
    if (wf_elems(scales->known) != count)
        return wf_fail(err, WF_SHAPE, NULL, "%lld scales, and must be %u",
                       (long long)wf_elems(scales->known), count);
    for (int32_t i = 0; i < x->rank; i++)
        if (entry[i] >= 0)
            WF_TRY(scale_axis(&x->axes[i], scale_at(scales->known, entry[i]), &axes[i], err));
    return WF_OK;
}

static wf_status infer_resize(wf_graph *g, wf_node *n, wf_err *err)
{
    const wf_value *x = n->in[0];
    bool scales = wf_node_has_in(n, SCALES) && !is_empty(n->in[SCALES]);
    bool sizes = wf_node_has_in(n, SIZES) && !is_empty(n->in[SIZES]);
    int32_t entry[WF_MAX_RANK] = {0};
    wf_axis axes[WF_MAX_RANK];
    uint32_t count;

    (void)g;
    WF_TRY(check(n, err));
    if (scales == sizes)
        return wf_fail(err, WF_INVALID, "give one of them", "it has %s scales %s sizes",
                       scales ? "both" : "neither", scales ? "and" : "nor");
    wf_out_unknown(n, 0, x->dtype);
    if (x->rank < 0)
        return WF_OK;
    WF_TRY(entries(n, (uint32_t)x->rank, entry, &count, err));
    memcpy(axes, x->axes, sizeof axes);
    WF_TRY((sizes ? by_sizes : by_scales)(n, entry, count, axes, err));
    wf_out_axes(n, 0, x->dtype, (uint32_t)x->rank, axes);
    return WF_OK;
}

const wf_op wf_op_resize =
    WF_FOLDABLE(WF_DOMAIN_ONNX, "Resize", 19, 1, 4, infer_resize,
                .no_grad_in = 1u << ROI | 1u << SCALES | 1u << SIZES, .attrs = attrs,
                WF_GRAD_NODE("ResizeGrad", "d0 x0 x1 x2 x3"));

/* ai.weft ResizeGrad(dy, x, (roi), (scales), (sizes)): Resize's gradient; of x only the shape is
 * read. */

static wf_status infer_resize_grad(wf_graph *g, wf_node *n, wf_err *err)
{
    const wf_value *dy = n->in[0], *x = n->in[1];

    (void)g;
    WF_TRY(wf_need_float(n, 0, "dy", err));
    WF_TRY(wf_need_same_dtype(n, 0, 1, err));
    WF_TRY(check(n, err));
    if (dy->rank >= 0 && x->rank >= 0 && dy->rank != x->rank)
        return wf_fail(err, WF_SHAPE, NULL, "dy has %d axes and x %d", dy->rank, x->rank);
    wf_out_like(n, 0, dy->dtype, x);
    return WF_OK;
}

const wf_op wf_op_resize_grad =
    WF_FOLDABLE(WF_DOMAIN_WEFT, "ResizeGrad", 1, 2, 5, infer_resize_grad,
                .means = "(dy, x, (roi), (scales), (sizes)) -> dx; Resize's attrs; of x only the "
                         "shape is read",
                .attrs = attrs);
