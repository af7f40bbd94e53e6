/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/shape/spatial.c */
#include "common/kernels/shape/spatial.h"
#include "common/base/size.h"

#include <inttypes.h>
#include <string.h>

/* Room for a shape in a message. */
enum { DIMS_STR = 96 };

static wf_status no_fit(const wf_tensor *x, const wf_tensor *y, wf_err *err)
{
    char a[DIMS_STR], b[DIMS_STR];

    return wf_fail(err, WF_SHAPE, NULL, "the window does not go from %s to %s",
                   wf_dims_str(x->rank, x->dims, a, sizeof a),
                   wf_dims_str(y->rank, y->dims, b, sizeof b));
}

/* Moves n axes to the back and puts ones in front. */
static void pad_axes(wf_spatial *s, uint32_t n)
{
    uint32_t lead = WF_WINDOW_AXES - n;
    int64_t *lists[] = {s->w.kernel, s->w.stride, s->w.dilation, s->in, s->out};
    int64_t *pads[] = {s->w.before, s->w.after};

    for (size_t k = 0; k < sizeof lists / sizeof lists[0]; k++) {
        memmove(lists[k] + lead, lists[k], n * sizeof lists[k][0]);
        for (uint32_t i = 0; i < lead; i++)
            lists[k][i] = 1;
    }
    for (size_t k = 0; k < sizeof pads / sizeof pads[0]; k++) {
        memmove(pads[k] + lead, pads[k], n * sizeof pads[k][0]);
        memset(pads[k], 0, lead * sizeof pads[k][0]);
    }
    s->w.n = WF_WINDOW_AXES;
}

static void finish(wf_spatial *s)
{
    pad_axes(s, s->w.n);
    s->in_size = s->out_size = s->taps = 1;
    for (uint32_t i = 0; i < WF_WINDOW_AXES; i++) {
        s->in_size *= s->in[i];
        s->out_size *= s->out[i];
        s->taps *= s->w.kernel[i];
    }
}

static wf_status begin(const wf_node *n, const wf_tensor *x, const wf_tensor *y,
                       const wf_tensor *weights, wf_spatial *s, wf_err *err)
{
    memset(s, 0, sizeof *s);
    if (y->rank != x->rank || (weights && weights->rank != x->rank))
        return no_fit(x, y, err);
    return wf_window_read(n, x->rank, weights && x->rank > 2 ? weights->dims + 2 : NULL, &s->w,
                          err);
}

wf_status wf_spatial_of(const wf_node *n, const wf_tensor *x, const wf_tensor *y,
                        const wf_tensor *weights, wf_spatial *s, wf_err *err)
{
    WF_TRY(begin(n, x, y, weights, s, err));
    for (uint32_t i = 0; i < s->w.n; i++) {
        s->in[i] = x->dims[i + 2];
        WF_TRY(wf_window_outputs(&s->w, i, s->in[i], &s->out[i], err));
        if (s->out[i] != y->dims[i + 2])
            return no_fit(x, y, err);
    }
    finish(s);
    return WF_OK;
}

wf_status wf_spatial_transposed(const wf_node *n, const wf_tensor *x, const wf_tensor *y,
                                const wf_tensor *weights, wf_spatial *s, wf_err *err)
{
    WF_TRY(begin(n, x, y, weights, s, err));
    for (uint32_t i = 0; i < s->w.n; i++) {
        s->out[i] = x->dims[i + 2];
        WF_TRY(wf_window_transposed(n, &s->w, i, s->out[i], &s->in[i], err));
        if (s->in[i] != y->dims[i + 2])
            return no_fit(x, y, err);
    }
    finish(s);
    return WF_OK;
}

/* ceil(a / b) for b > 0, brought into [0, most]. */
static int64_t ceil_in(int64_t a, int64_t b, int64_t most)
{
    return a <= 0 ? 0 : WF_MIN((a - 1) / b + 1, most);
}

void wf_spatial_inside(const wf_spatial *s, uint32_t i, int64_t tap, int64_t *lo, int64_t *hi)
{
    int64_t first = wf_spatial_at(s, i, 0, tap);

    *lo = ceil_in(-first, s->w.stride[i], s->out[i]);
    *hi = WF_MAX(*lo, ceil_in(s->in[i] - first, s->w.stride[i], s->out[i]));
}

void wf_spatial_taps(const wf_spatial *s, uint32_t i, int64_t o, int64_t *lo, int64_t *hi)
{
    int64_t first = wf_spatial_at(s, i, o, 0);

    *lo = ceil_in(-first, s->w.dilation[i], s->w.kernel[i]);
    *hi = WF_MAX(*lo, ceil_in(s->in[i] - first, s->w.dilation[i], s->w.kernel[i]));
}
