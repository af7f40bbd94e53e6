/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/shape/grid_sample.h - where GridSample reads. A place along an axis becomes one,
 * two or four taps (nearest, linear, cubic: Keys 1981 with a = -0.75, as PyTorch has it), each with
 * its weight and how that changes with the place; the taps of all axes multiply into a list of
 * elements of one image, which all channels share. */
#ifndef WF_KERNELS_SHAPE_GRID_SAMPLE_H
#define WF_KERNELS_SHAPE_GRID_SAMPLE_H

#include "common/graph/graph.h"
#include "common/kernels/shape/anywhere.h"
#include "common/tensor/tensor.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

enum { WF_SAMPLE_AXES = 3, WF_SAMPLE_TAPS = 4 };

typedef enum wf_sample_mode { WF_SAMPLE_NEAREST, WF_SAMPLE_LINEAR, WF_SAMPLE_CUBIC } wf_sample_mode;

typedef enum wf_sample_padding {
    WF_SAMPLE_ZEROS,
    WF_SAMPLE_BORDER,
    WF_SAMPLE_REFLECTION
} wf_sample_padding;

typedef struct wf_sampling {
    wf_sample_mode mode;
    wf_sample_padding padding;
    bool aligned;
    uint32_t rank;     /* of an image */
    uint32_t elements; /* that a place reads, some of them outside: taps of all axes multiplied */
    int64_t size[WF_SAMPLE_AXES], stride[WF_SAMPLE_AXES];
    int64_t images, channels, image, points; /* elements of an image; places in the grid for each */
} wf_sampling;

/* The taps along one axis. */
typedef struct wf_sampling_taps {
    uint32_t n;
    int64_t at[WF_SAMPLE_TAPS]; /* -1: outside, and 0 */
    double weight[WF_SAMPLE_TAPS], slope[WF_SAMPLE_TAPS];
} wf_sampling_taps;

wf_sampling wf_sampling_of(const wf_node *node, const wf_tensor *x, const wf_tensor *grid);

/* x folded back from the borders until it is within; *sign says whether backwards. */
WF_ANYWHERE double wf_sampling_reflect(const wf_sampling *s, double x, int64_t size, double *sign)
{
    double low = s->aligned ? 0 : -0.5, high = (double)size - (s->aligned ? 1 : 0.5);
    double range = high - low, beyond = x < low ? low - x : x - high, turns, rest;
    bool odd;

    *sign = 1;
    if (range <= 0)
        return 0;
    if (x >= low && x <= high)
        return x;
    turns = floor(beyond / range);
    rest = beyond - turns * range;
    odd = fmod(turns, 2.0) != 0;
    *sign = odd ? 1 : -1;
    return (x < low) != odd ? low + rest : high - rest;
}

/* Where tap i lies in the image. */
WF_ANYWHERE int64_t wf_sampling_inside(const wf_sampling *s, int64_t i, int64_t size)
{
    double sign;

    if (i >= 0 && i < size)
        return i;
    if (s->padding == WF_SAMPLE_ZEROS)
        return -1;
    if (s->padding == WF_SAMPLE_REFLECTION)
        i = (int64_t)wf_sampling_reflect(s, (double)i, size, &sign);
    return i < 0 ? 0 : i < size ? i : size - 1;
}

WF_ANYWHERE void wf_sampling_cubic(double t, wf_sampling_taps *to)
{
    const double a = -0.75;
    double u = t + 1, v = 1 - t, w = 2 - t;

    to->weight[0] = ((a * u - 5 * a) * u + 8 * a) * u - 4 * a;
    to->weight[1] = ((a + 2) * t - (a + 3)) * t * t + 1;
    to->weight[2] = ((a + 2) * v - (a + 3)) * v * v + 1;
    to->weight[3] = ((a * w - 5 * a) * w + 8 * a) * w - 4 * a;
    to->slope[0] = (3 * a * u - 10 * a) * u + 8 * a;
    to->slope[1] = (3 * (a + 2) * t - 2 * (a + 3)) * t;
    to->slope[2] = -(3 * (a + 2) * v - 2 * (a + 3)) * v;
    to->slope[3] = -((3 * a * w - 10 * a) * w + 8 * a);
}

/* The taps at g, -1 to 1 along an axis; slopes are those by g. */
WF_ANYWHERE void wf_sampling_find(const wf_sampling *s, double g, int64_t size,
                                  wf_sampling_taps *to)
{
    double scale = (double)(s->aligned ? size - 1 : size) / 2, sign = 1;
    double x = s->aligned ? (g + 1) * scale : (g + 1) * scale - 0.5, t;
    int64_t first;

    to->n = s->mode == WF_SAMPLE_NEAREST ? 1 : s->mode == WF_SAMPLE_LINEAR ? 2 : 4;
    for (uint32_t i = 0; i < WF_SAMPLE_TAPS; i++) {
        to->at[i] = -1;
        to->weight[i] = to->slope[i] = 0;
    }
    if (!(fabs(x) < 0x1p40)) { /* NaN too */
        if (s->padding == WF_SAMPLE_ZEROS)
            return;
        x = x > 0 ? 0x1p40 : x < 0 ? -0x1p40 : 0;
    }
    if (s->mode == WF_SAMPLE_NEAREST)
        x = nearbyint(x);
    if (s->padding == WF_SAMPLE_BORDER && (x < 0 || x > (double)(size - 1))) {
        x = x < 0 ? 0 : (double)(size - 1);
        sign = 0;
    } else if (s->padding == WF_SAMPLE_REFLECTION) {
        x = wf_sampling_reflect(s, x, size, &sign);
    }
    first = (int64_t)floor(x);
    t = x - (double)first;
    if (s->mode == WF_SAMPLE_NEAREST) {
        to->weight[0] = 1;
    } else if (s->mode == WF_SAMPLE_LINEAR) {
        to->weight[0] = 1 - t;
        to->weight[1] = t;
        to->slope[0] = -1;
        to->slope[1] = 1;
    } else {
        wf_sampling_cubic(t, to);
        first--;
    }
    for (uint32_t i = 0; i < to->n; i++) {
        to->at[i] = wf_sampling_inside(s, first + i, size);
        to->slope[i] *= scale * sign;
    }
}

#endif
