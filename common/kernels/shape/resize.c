/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/shape/resize.c */
#include "common/kernels/shape/resize.h"
#include "common/base/size.h"
#include "common/graph/graph.h"
#include "common/kernels/shape/numbers.h"

#include <string.h>

static bool is(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

static wf_resize_nearest nearest_of(const wf_node *n)
{
    const char *name = wf_node_string(n, "nearest_mode", "round_prefer_floor");

    return is(name, "floor")               ? WF_NEAREST_FLOOR
           : is(name, "ceil")              ? WF_NEAREST_CEIL
           : is(name, "round_prefer_ceil") ? WF_NEAREST_UP
                                           : WF_NEAREST_DOWN;
}

static wf_resize_transform transform_of(const wf_node *n)
{
    const char *name = wf_node_string(n, "coordinate_transformation_mode", "half_pixel");

    return is(name, "align_corners")          ? WF_ALIGN_CORNERS
           : is(name, "asymmetric")           ? WF_ASYMMETRIC
           : is(name, "tf_crop_and_resize")   ? WF_CROP_AND_RESIZE
           : is(name, "pytorch_half_pixel")   ? WF_PYTORCH_HALF_PIXEL
           : is(name, "half_pixel_symmetric") ? WF_HALF_PIXEL_SYMMETRIC
                                              : WF_HALF_PIXEL;
}

int64_t wf_resize_listed(const wf_node *n, const wf_tensor *list, uint32_t axis, uint32_t rank,
                         int64_t part)
{
    size_t n_axes;
    const int64_t *axes = wf_node_ints(n, "axes", &n_axes);
    int64_t each = axes ? (int64_t)n_axes : (int64_t)rank;

    for (int64_t i = 0; i < each; i++) {
        int64_t a = axes ? axes[i] : i;

        if ((a < 0 ? a + rank : a) == axis && part * each + i < wf_elems(list))
            return part * each + i;
    }
    return -1;
}

static double listed(const wf_node *n, const wf_tensor *list, uint32_t axis, uint32_t rank,
                     int64_t part, double otherwise)
{
    int64_t at = wf_resize_listed(n, list, axis, rank, part);

    return at < 0 ? otherwise : wf_number_at(list, at);
}

static bool is_there(const wf_tensor *t)
{
    return t && wf_elems(t) > 0;
}

/* With keep_aspect_ratio_policy all listed axes have one scale. */
static double kept_scale(const wf_node *n, const wf_tensor *x, const wf_tensor *sizes,
                         const char *policy)
{
    double best = -1;

    for (uint32_t i = 0; i < x->rank; i++) {
        double size = listed(n, sizes, i, x->rank, 0, -1), scale = size / (double)x->dims[i];

        if (size >= 0 && (best < 0 || (is(policy, "not_larger") ? scale < best : scale > best)))
            best = scale;
    }
    return best;
}

static wf_status axis_scale(const wf_node *n, const wf_tensor *x, const wf_tensor *y, uint32_t i,
                            const wf_tensor *scales, const wf_tensor *sizes, double *scale,
                            wf_err *err)
{
    const char *policy = wf_node_string(n, "keep_aspect_ratio_policy", "stretch");
    const wf_tensor *list = is_there(scales) ? scales : sizes;
    bool stretch = is(policy, "stretch");

    *scale = (double)y->dims[i] / (double)x->dims[i];
    if (list == sizes && stretch)
        return WF_OK;
    if (!list || !list->data)
        return wf_fail(err, WF_UNSUPPORTED, "make them a constant",
                       "the scales or sizes depend on the run");
    if (list == scales)
        *scale = listed(n, scales, i, x->rank, 0, 1);
    else if (listed(n, sizes, i, x->rank, 0, -1) >= 0)
        *scale = kept_scale(n, x, sizes, policy);
    return *scale > 0
               ? WF_OK
               : wf_fail(err, WF_INVALID, NULL, "scale %u is %g, and must be above 0", i, *scale);
}

/* How many inputs an output is made of. */
static wf_status count_taps(wf_resize_pass *p, wf_err *err)
{
    double reach = p->rule.radius / p->rule.squeeze;

    /* A scale that shrinks the axis to one element or more reaches no further. */
    if (!(reach <= 4 * (double)p->in + 4) || reach > INT32_MAX / 4)
        return wf_fail(err, WF_INVALID, NULL, "a scale of %g for an axis of %lld", p->rule.scale,
                       (long long)p->in);
    p->taps = p->rule.radius == 0 ? 1 : 2 * (uint32_t)ceil(reach);
    return (uint64_t)p->out <= (uint64_t)INT64_MAX / 64 / p->taps ? WF_OK
                                                                  : wf_fail_nomem(err, SIZE_MAX);
}

static wf_status make_axis(const wf_node *n, wf_resize *v, const wf_tensor *x, const wf_tensor *y,
                           uint32_t i, const wf_tensor *const lists[], wf_err *err)
{
    const char *mode = wf_node_string(n, "mode", "nearest");
    wf_axis_rule r = {.nearest = nearest_of(n),
                      .transform = transform_of(n),
                      .radius = is(mode, "nearest")  ? 0
                                : is(mode, "linear") ? 1
                                                     : 2,
                      .in = x->dims[i],
                      .out = y->dims[i],
                      .end = 1,
                      .squeeze = 1,
                      .cubic_a = (double)wf_node_float(n, "cubic_coeff_a", -0.75f),
                      .exclude_outside = wf_node_int(n, "exclude_outside", 0) != 0};
    wf_resize_pass *p = &v->passes[v->n_passes];

    WF_TRY(axis_scale(n, x, y, i, lists[1], lists[2], &r.scale, err));
    if (wf_node_int(n, "antialias", 0))
        r.squeeze = fmin(r.scale, 1);
    *p = (wf_resize_pass){.axis = i, .outer = 1, .in = r.in, .out = r.out, .inner = 1, .rule = r};
    if (v->extrapolates && !v->late) {
        p->rule.start = listed(n, lists[0], i, x->rank, 0, 0);
        p->rule.end = listed(n, lists[0], i, x->rank, 1, 1);
    }
    if (r.in == r.out && r.scale == 1 && !v->late && p->rule.start == 0 && p->rule.end == 1)
        return WF_OK;
    for (uint32_t k = 0; k < i; k++)
        p->outer *= y->dims[k];
    for (uint32_t k = i + 1; k < x->rank; k++)
        p->inner *= x->dims[k];
    v->n_passes++;
    return count_taps(p, err);
}

wf_status wf_resize_no_number(wf_err *err)
{
    return wf_fail(err, WF_INVALID, NULL, "the scale or roi is no number");
}

/* Looks at the coordinates that are known, and takes the size of the buffers. */
static wf_status look(wf_resize *v, wf_dtype dtype, wf_err *err)
{
    for (uint32_t k = 0; k < v->n_passes; k++) {
        const wf_resize_pass *p = &v->passes[k];
        size_t bytes = (size_t)(p->outer * p->inner) * wf_dtype_size(dtype);

        if (!wf_mul_size(bytes, (size_t)WF_MAX(p->in, p->out), &bytes) || bytes > SIZE_MAX / 64)
            return wf_fail_nomem(err, SIZE_MAX);
        v->half = WF_MAX(v->half, wf_align_up(bytes, 64));
        for (int64_t o = 0; !v->late && o < p->out; o++)
            if (isnan(wf_resize_coordinate(&p->rule, o)))
                return wf_resize_no_number(err);
    }
    return WF_OK;
}

wf_status wf_resize_read(const wf_node *n, const wf_tensor *x, const wf_tensor *y,
                         const wf_tensor *const lists[], wf_resize *v, wf_err *err)
{
    memset(v, 0, sizeof *v);
    v->rank = x->rank;
    v->is_nearest = is(wf_node_string(n, "mode", "nearest"), "nearest");
    v->extrapolates = transform_of(n) == WF_CROP_AND_RESIZE;
    v->extrapolation = (double)wf_node_float(n, "extrapolation_value", 0);
    if (v->extrapolates && !is_there(lists[0]))
        return wf_fail(err, WF_INVALID, NULL, "tf_crop_and_resize needs a roi");
    v->late = v->extrapolates && !lists[0]->data;
    if (wf_elems(x) == 0 || wf_elems(y) == 0)
        return wf_elems(y) == wf_elems(x)
                   ? WF_OK
                   : wf_fail(err, WF_SHAPE, NULL, "an empty tensor cannot be resized");
    for (uint32_t i = 0; i < x->rank; i++)
        WF_TRY(make_axis(n, v, x, y, i, lists, err));
    return look(v, x->dtype, err);
}
