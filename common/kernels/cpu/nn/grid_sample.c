/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/nn/grid_sample.c - GridSample(x, grid), and GridSampleGrad(dy, x, grid). A
 * place along an axis becomes one, two or four taps (nearest, linear, cubic: Keys 1981 with a =
 * -0.75, as PyTorch has it), each with its weight and how that changes with the place; the taps of
 * all axes multiply into a list of elements of one image, which all channels share. */
#include "common/graph/graph.h"
#include "common/kernels/cpu/cpu.h"

#include <math.h>
#include <string.h>

enum { AXES = 3, TAPS = 4, ELEMENTS = TAPS * TAPS * TAPS };

typedef struct sampling {
    enum { NEAREST, LINEAR, CUBIC } mode;
    enum { ZEROS, BORDER, REFLECTION } padding;
    bool aligned;
    uint32_t rank; /* of an image */
    int64_t size[AXES], stride[AXES];
    int64_t channels, image, points; /* elements of an image; places in the grid for each */
} sampling;

typedef struct taps {
    uint32_t n;
    int64_t at[TAPS]; /* -1: outside, and 0 */
    double weight[TAPS], slope[TAPS];
} taps;

/* The elements that a place in the grid takes from. */
typedef struct elements {
    uint32_t n;
    int64_t at[ELEMENTS];
    double weight[ELEMENTS], slope[AXES][ELEMENTS];
} elements;

static sampling sampling_of(const wf_node *node, const wf_tensor *x, const wf_tensor *grid)
{
    const char *mode = wf_node_string(node, "mode", "linear");
    const char *padding = wf_node_string(node, "padding_mode", "zeros");
    sampling s = {.mode = mode[0] == 'n'          ? NEAREST
                          : strstr(mode, "cubic") ? CUBIC
                                                  : LINEAR,
                  .padding = padding[0] == 'z'   ? ZEROS
                             : padding[0] == 'b' ? BORDER
                                                 : REFLECTION,
                  .aligned = wf_node_int(node, "align_corners", 0) != 0,
                  .rank = x->rank - 2,
                  .channels = x->dims[1],
                  .image = 1,
                  .points = 1};

    for (uint32_t i = s.rank; i-- > 0; s.image *= s.size[i]) {
        s.size[i] = x->dims[2 + i];
        s.stride[i] = s.image;
        s.points *= grid->dims[1 + i];
    }
    return s;
}

/* x folded back from the borders until it is within; *sign says whether backwards. */
static double reflect(const sampling *s, double x, int64_t size, double *sign)
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
    odd = fmod(turns, 2) != 0;
    *sign = odd ? 1 : -1;
    return (x < low) != odd ? low + rest : high - rest;
}

/* Where tap i lies in the image. */
static int64_t inside(const sampling *s, int64_t i, int64_t size)
{
    double sign;

    if (i >= 0 && i < size)
        return i;
    if (s->padding == ZEROS)
        return -1;
    if (s->padding == REFLECTION)
        i = (int64_t)reflect(s, (double)i, size, &sign);
    return WF_MIN(WF_MAX(i, (int64_t)0), size - 1);
}

static void cubic_weights(double t, taps *to)
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
static void find_taps(const sampling *s, double g, int64_t size, taps *to)
{
    double scale = (double)(s->aligned ? size - 1 : size) / 2, sign = 1;
    double x = s->aligned ? (g + 1) * scale : (g + 1) * scale - 0.5, t;
    int64_t first;

    *to = (taps){.n = s->mode == NEAREST ? 1 : s->mode == LINEAR ? 2 : 4, .at = {-1, -1, -1, -1}};
    if (!(fabs(x) < 0x1p40)) { /* NaN too */
        if (s->padding == ZEROS)
            return;
        x = x > 0 ? 0x1p40 : x < 0 ? -0x1p40 : 0;
    }
    if (s->mode == NEAREST)
        x = nearbyint(x);
    if (s->padding == BORDER && (x < 0 || x > (double)(size - 1))) {
        x = x < 0 ? 0 : (double)(size - 1);
        sign = 0;
    } else if (s->padding == REFLECTION) {
        x = reflect(s, x, size, &sign);
    }
    first = (int64_t)floor(x);
    t = x - (double)first;
    if (s->mode == NEAREST) {
        to->weight[0] = 1;
    } else if (s->mode == LINEAR) {
        to->weight[0] = 1 - t;
        to->weight[1] = t;
        to->slope[0] = -1;
        to->slope[1] = 1;
    } else {
        cubic_weights(t, to);
        first--;
    }
    for (uint32_t i = 0; i < to->n; i++) {
        to->at[i] = inside(s, first + i, size);
        to->slope[i] *= scale * sign;
    }
}

/* The grid has the last axis first. */
static void find_elements(const sampling *s, const double place[], elements *to)
{
    taps axis[AXES];
    uint32_t count = 1;

    to->n = 0;
    for (uint32_t i = 0; i < s->rank; i++) {
        find_taps(s, place[s->rank - 1 - i], s->size[i], &axis[i]);
        count *= axis[i].n;
    }
    for (uint32_t k = 0; k < count; k++) {
        uint32_t rest = k, pick[AXES];
        int64_t at = 0;

        for (uint32_t i = 0; i < s->rank && at >= 0; rest /= axis[i].n, i++) {
            pick[i] = rest % axis[i].n;
            at = axis[i].at[pick[i]] < 0 ? -1 : at + axis[i].at[pick[i]] * s->stride[i];
        }
        if (at < 0)
            continue;
        to->at[to->n] = at;
        to->weight[to->n] = 1;
        for (uint32_t i = 0; i < s->rank; i++) {
            to->weight[to->n] *= axis[i].weight[pick[i]];
            to->slope[i][to->n] = axis[i].slope[pick[i]];
            for (uint32_t j = 0; j < s->rank; j++)
                to->slope[i][to->n] *= j == i ? 1 : axis[j].weight[pick[j]];
        }
        to->n++;
    }
}

typedef struct job {
    sampling s;
    const void *x, *grid, *dy;
    void *y, *dx, *dgrid; /* the last two may be NULL */
} job;

#define T float
#define SUFFIX float
#include "common/kernels/cpu/nn/grid_sample_template.h"

#define T double
#define SUFFIX double
#include "common/kernels/cpu/nn/grid_sample_template.h"

static wf_status grid_sample(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                             wf_err *err)
{
    job j = {.s = sampling_of(run->node, in[0], in[1]),
             .x = in[0]->data,
             .grid = in[1]->data,
             .y = out[0]->data};

    (void)err;
    wf_pool_for(run->pool, out[0]->dims[0] * j.s.points, 64,
                in[0]->dtype == WF_F32 ? sample_float : sample_double, &j);
    return WF_OK;
}

static wf_status grid_sample_grad(const wf_run *run, const wf_tensor *const in[],
                                  wf_tensor *const out[], wf_err *err)
{
    job j = {.s = sampling_of(run->node, in[1], in[2]),
             .x = in[1]->data,
             .grid = in[2]->data,
             .dy = in[0]->data,
             .dx = out[0] ? out[0]->data : NULL,
             .dgrid = out[1] ? out[1]->data : NULL};

    (void)err;
    if (j.dx && wf_tensor_bytes(out[0]))
        memset(j.dx, 0, wf_tensor_bytes(out[0]));
    wf_pool_for(run->pool, in[1]->dims[0], 1, in[0]->dtype == WF_F32 ? grads_float : grads_double,
                &j);
    return WF_OK;
}

const wf_kernel wf_kernels_grid_sample[] = {
    WF_ROW("GridSample", WF_TYPES_FLOAT, grid_sample),
    WF_ROW("GridSampleGrad", WF_TYPES_FLOAT, grid_sample_grad, .domain = WF_DOMAIN_WEFT),
    {0},
};
