/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/shape/resize_taps.h - which inputs an output of Resize is made of, along one axis.
 */
#ifndef WF_KERNELS_SHAPE_RESIZE_TAPS_H
#define WF_KERNELS_SHAPE_RESIZE_TAPS_H

#include "common/kernels/shape/anywhere.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

typedef enum wf_resize_nearest {
    WF_NEAREST_DOWN, /* halves go down */
    WF_NEAREST_UP,
    WF_NEAREST_FLOOR,
    WF_NEAREST_CEIL
} wf_resize_nearest;

typedef enum wf_resize_transform {
    WF_HALF_PIXEL,
    WF_HALF_PIXEL_SYMMETRIC,
    WF_PYTORCH_HALF_PIXEL,
    WF_ALIGN_CORNERS,
    WF_ASYMMETRIC,
    WF_CROP_AND_RESIZE
} wf_resize_transform;

/* How coordinates are found along one axis. */
typedef struct wf_axis_rule {
    wf_resize_nearest nearest;
    wf_resize_transform transform;
    uint32_t radius; /* of the filter: 0 for nearest, 1 for linear, 2 for cubic */
    int64_t in, out;
    double scale, start, end; /* roi */
    double squeeze;           /* below 1: the filter is wider by its reciprocal */
    double cubic_a;
    bool exclude_outside;
} wf_axis_rule;

typedef struct wf_resize_tap {
    int64_t from;
    double weight; /* before the weights of an output are divided by their sum */
} wf_resize_tap;

/* Where output o reads; moves evenly with o. */
WF_ANYWHERE double wf_resize_coordinate(const wf_axis_rule *r, int64_t o)
{
    /* The length as the scale has it, which with given scales need not be whole. */
    double x = (double)o, in = (double)r->in, length = r->scale * in;

    if (r->transform == WF_ALIGN_CORNERS)
        return r->out == 1 ? 0 : x * (in - 1) / (length - 1);
    if (r->transform == WF_ASYMMETRIC)
        return x / r->scale;
    if (r->transform == WF_CROP_AND_RESIZE)
        return r->out > 1 ? r->start * (in - 1) + x * (r->end - r->start) * (in - 1) / (length - 1)
                          : 0.5 * (r->start + r->end) * (in - 1);
    if (r->transform == WF_PYTORCH_HALF_PIXEL && r->out == 1)
        return 0;
    x = (x + 0.5) / r->scale - 0.5;
    if (r->transform == WF_HALF_PIXEL_SYMMETRIC)
        x += in / 2 * (1 - (double)r->out / length);
    return x;
}

WF_ANYWHERE int64_t wf_resize_nearest_to(const wf_axis_rule *r, double x)
{
    x = r->nearest == WF_NEAREST_FLOOR  ? floor(x)
        : r->nearest == WF_NEAREST_CEIL ? ceil(x)
        : r->nearest == WF_NEAREST_UP   ? floor(x + 0.5)
                                        : ceil(x - 0.5);
    return x < 0 ? 0 : x >= (double)r->in ? r->in - 1 : (int64_t)x;
}

/* Keys 1981, with a for the slope. */
WF_ANYWHERE double wf_resize_cubic(double a, double d)
{
    d = fabs(d);
    return d <= 1  ? ((a + 2) * d - (a + 3)) * d * d + 1
           : d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
                   : 0;
}

/* Tap k of an output that reads at x. */
WF_ANYWHERE wf_resize_tap wf_resize_tap_at(const wf_axis_rule *r, double x, uint32_t k)
{
    /* Far outside all taps are the edge; the cast needs the bound. */
    double reach = r->radius / r->squeeze, d;
    wf_resize_tap tap;
    int64_t i;

    if (r->radius == 0) {
        tap.from = wf_resize_nearest_to(r, x);
        tap.weight = 1;
        return tap;
    }
    x = fmin(fmax(x, -reach - 2), (double)r->in + reach + 2);
    i = (int64_t)floor(x - reach) + 1 + (int64_t)k;
    d = fabs(x - (double)i) * r->squeeze;
    tap.weight = r->radius == 2 ? wf_resize_cubic(r->cubic_a, d) : fmax(0.0, 1 - d);
    if (r->exclude_outside && (i < 0 || i >= r->in))
        tap.weight = 0;
    tap.from = i < 0 ? 0 : i >= r->in ? r->in - 1 : i;
    return tap;
}

/* Whether an output that reads at x has the extrapolation value, where there is one. */
WF_ANYWHERE bool wf_resize_is_outside(const wf_axis_rule *r, double x)
{
    return x < 0 || x > (double)(r->in - 1);
}

#endif
