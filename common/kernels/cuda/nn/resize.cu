/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/nn/resize.cu - Resize and ResizeGrad, by the passes of shape/resize.h. A
 * thread works out the taps of its output itself; backwards it goes through the outputs near its
 * element, which it finds since coordinates move evenly. */
#include "common/kernels/cuda/memory.h"
#include "common/kernels/cuda/shape/move.h"
extern "C" {
#include "common/kernels/shape/resize.h"
}

namespace
{

struct plan {
    wf_resize v;
    size_t buffers[2], roi; /* in the workspace; roi: [passes, 2], where only the run knows it */
};

/* What a kernel needs of one pass. */
struct step {
    wf_axis_rule rule;
    uint32_t taps;
    int64_t outer, in, out, inner;
    const double *roi; /* of this pass; nullptr: the rule has it */
};

WF_CODE wf_axis_rule rule_of(const step &s)
{
    wf_axis_rule r = s.rule;

    if (s.roi) {
        r.start = s.roi[0];
        r.end = s.roi[1];
    }
    return r;
}

/* What the weights of an output that reads at x add up to; 0: all were excluded, and the first tap
 * counts alone. */
WF_CODE double sum_of_weights(const wf_axis_rule &r, uint32_t taps, double x)
{
    double sum = 0;

    for (uint32_t k = 0; k < taps; k++)
        sum += wf_resize_tap_at(&r, x, k).weight;
    return sum;
}

WF_CODE double share_of(const wf_resize_tap &tap, uint32_t k, double sum)
{
    return sum == 0 ? (k == 0 ? 1 : 0) : tap.weight / sum;
}

template <class T> __global__ void weigh(step s, const T *x, T *y)
{
    const wf_axis_rule r = rule_of(s);

    for (int64_t e = wf_first(); e < s.outer * s.out * s.inner; e += wf_all()) {
        const T *from = x + e / s.inner / s.out * s.in * s.inner + e % s.inner;
        double at = wf_resize_coordinate(&r, e / s.inner % s.out);
        double sum = sum_of_weights(r, s.taps, at);
        T all = 0;

        for (uint32_t k = 0; k < s.taps; k++) {
            wf_resize_tap tap = wf_resize_tap_at(&r, at, k);

            all += (T)share_of(tap, k, sum) * from[tap.from * s.inner];
        }
        y[e] = all;
    }
}

/* The same of nearest, for elements of any type. */
template <class T> __global__ void move(step s, const T *x, T *y)
{
    const wf_axis_rule r = rule_of(s);

    for (int64_t e = wf_first(); e < s.outer * s.out * s.inner; e += wf_all()) {
        double at = wf_resize_coordinate(&r, e / s.inner % s.out);

        y[e] =
            x[(e / s.inner / s.out * s.in + wf_resize_nearest_to(&r, at)) * s.inner + e % s.inner];
    }
}

/* Outputs [from, to), among which are all that read element i: those whose coordinate is near, and
 * at the edges all beyond. */
struct span {
    int64_t from, to;
};

WF_CODE int64_t within(double o, int64_t most)
{
    return o < 0 ? 0 : o > (double)most ? most : (int64_t)o;
}

WF_CODE span outputs_near(const wf_axis_rule &r, int64_t i)
{
    const double first = wf_resize_coordinate(&r, 0), each = wf_resize_coordinate(&r, 1) - first;
    const double reach = r.radius / r.squeeze + 1;
    double low = ((double)i - reach - first) / each, high = ((double)i + reach - first) / each;
    bool before = i == 0, behind = i == r.in - 1;

    if (each == 0 || r.out == 1)
        return {0, r.out};
    if (each < 0) { /* the roi's end lies in front of its start */
        double swapped = low;

        low = high;
        high = swapped;
        before = i == r.in - 1;
        behind = i == 0;
    }
    return {before ? 0 : within(std::floor(low), r.out),
            behind ? r.out : within(std::ceil(high) + 1, r.out)};
}

template <class T> __global__ void weigh_back(step s, const T *dy, T *dx)
{
    const wf_axis_rule r = rule_of(s);

    for (int64_t e = wf_first(); e < s.outer * s.in * s.inner; e += wf_all()) {
        const T *from = dy + e / s.inner / s.in * s.out * s.inner + e % s.inner;
        int64_t own = e / s.inner % s.in;
        span near = outputs_near(r, own);
        T all = 0;

        for (int64_t o = near.from; o < near.to; o++) {
            double at = wf_resize_coordinate(&r, o), sum = sum_of_weights(r, s.taps, at);

            for (uint32_t k = 0; k < s.taps; k++) {
                wf_resize_tap tap = wf_resize_tap_at(&r, at, k);

                if (tap.from == own)
                    all += (T)share_of(tap, k, sum) * from[o * s.inner];
            }
        }
        dx[e] = all;
    }
}

/* out = value where any axis lies outside, and else x. */
struct edges {
    uint32_t n;
    step steps[WF_MAX_RANK];
    int64_t inner[WF_MAX_RANK]; /* as the result has it: later axes have changed since the pass */
};

template <class T> __global__ void extrapolate(edges g, const T *x, T *out, T value, int64_t n)
{
    for (int64_t e = wf_first(); e < n; e += wf_all()) {
        bool outside = false;

        for (uint32_t k = 0; k < g.n; k++) {
            const wf_axis_rule r = rule_of(g.steps[k]);

            outside |=
                wf_resize_is_outside(&r, wf_resize_coordinate(&r, e / g.inner[k] % g.steps[k].out));
        }
        out[e] = outside ? value : x[e];
    }
}

/* Start and end of the roi along the axes of the passes; -1: they are not listed. */
struct roi_places {
    uint32_t n;
    int64_t at[WF_MAX_RANK][2];
    wf_axis_rule rules[WF_MAX_RANK];
};

/* A coordinate that is no number is told of, and the whole axis is read instead. Where a roi makes
 * one, it makes that of output 0. */
template <class T> __global__ void read_roi(roi_places p, const T *roi, double *to, wf_complaints c)
{
    for (uint32_t k = threadIdx.x; k < p.n; k += blockDim.x) {
        wf_axis_rule r = p.rules[k];

        r.start = p.at[k][0] < 0 ? 0 : (double)roi[p.at[k][0]];
        r.end = p.at[k][1] < 0 ? 1 : (double)roi[p.at[k][1]];
        if (double first = wf_resize_coordinate(&r, 0); first != first) {
            wf_complain(c, WF_CUDA_NO_NUMBER, 0, 0, 0);
            r.start = 0;
            r.end = 1;
        }
        to[2 * k] = r.start;
        to[2 * k + 1] = r.end;
    }
}

step step_of(const wf_run *run, const plan *p, uint32_t k)
{
    const wf_resize_pass &g = p->v.passes[k];

    return {g.rule,
            g.taps,
            g.outer,
            g.in,
            g.out,
            g.inner,
            p->v.late ? wf_room<const double>(run, p->roi) + (size_t)2 * k : nullptr};
}

wf_status make(wf_prep *prep, const wf_tensor *x, const wf_tensor *y,
               const wf_tensor *const lists[], wf_err *err)
{
    plan *p;

    WF_TRY(wf_new_plan(prep, &p, err));
    WF_TRY(wf_resize_read(prep->node, x, y, lists, &p->v, err));
    for (size_t &buffer : p->buffers)
        WF_TRY(wf_take_room(prep, (int64_t)p->v.half, 1, &buffer, err));
    return p->v.late ? wf_take_room(prep, 2 * (int64_t)p->v.n_passes, sizeof(double), &p->roi, err)
                     : WF_OK;
}

wf_status prepare(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                  wf_err *err)
{
    return make(prep, in[0], out[0], in + 1, err);
}

wf_status prepare_grad(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                       wf_err *err)
{
    return make(prep, out[0], in[0], in + 2, err);
}

wf_status prepare_move(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                       wf_err *err)
{
    plan *p;

    WF_TRY(prepare(prep, in, out, err));
    p = static_cast<plan *>(prep->state);
    if (!p->v.is_nearest)
        return wf_fail(err, WF_UNSUPPORTED, "Cast it to float32 first", "only nearest resizes %s",
                       wf_dtype_name(in[0]->dtype));
    return p->v.extrapolates ? wf_fail(err, WF_UNSUPPORTED, "Cast it first",
                                       "tf_crop_and_resize of %s", wf_dtype_name(in[0]->dtype))
                             : WF_OK;
}

/* Puts the roi into the workspace, where only the run knows it. */
wf_status take_roi(const wf_run *run, const wf_tensor *roi, wf_err *err)
{
    const plan *p = static_cast<const plan *>(run->state);
    double *to = wf_room<double>(run, p->roi);
    roi_places places = {};

    if (!p->v.late || p->v.n_passes == 0)
        return WF_OK;
    places.n = p->v.n_passes;
    for (uint32_t k = 0; k < places.n; k++) {
        places.rules[k] = p->v.passes[k].rule;
        for (int64_t part = 0; part < 2; part++)
            places.at[k][part] =
                wf_resize_listed(run->node, roi, p->v.passes[k].axis, p->v.rank, part);
    }
    return roi->dtype == WF_F64 ? wf_launch(run, "roi", read_roi<double>, 1, err, places,
                                            wf_in<double>(roi), to, wf_complaints_of(run))
                                : wf_launch(run, "roi", read_roi<float>, 1, err, places,
                                            wf_in<float>(roi), to, wf_complaints_of(run));
}

/* `out` from x, of the shape of y: see the kernel. */
template <class T>
wf_status extrapolate_from(const wf_run *run, const wf_tensor *y, const T *x, T *out, double value,
                           wf_err *err)
{
    const plan *p = static_cast<const plan *>(run->state);
    const int64_t n = wf_elems(y);
    edges g = {};

    g.n = p->v.n_passes;
    for (uint32_t k = 0; k < g.n; k++) {
        g.steps[k] = step_of(run, p, k);
        g.inner[k] = n / (g.steps[k].outer * g.steps[k].out);
    }
    return wf_launch(run, "edges", extrapolate<T>, wf_blocks(run, n), err, g, x, out, (T)value, n);
}

/* By one pass after the other, a kernel of a pass each: kernel(step, from, to). */
template <class T>
wf_status by_passes(const wf_run *run, void (*kernel)(step, const T *, T *), const T *from, T *out,
                    wf_err *err)
{
    const plan *p = static_cast<const plan *>(run->state);

    for (uint32_t k = 0; k < p->v.n_passes; k++) {
        step s = step_of(run, p, k);
        T *to = k + 1 == p->v.n_passes ? out : wf_room<T>(run, p->buffers[k % 2]);

        WF_TRY(wf_launch(run, run->node->op->name, kernel,
                         wf_blocks(run, s.outer * s.out * s.inner), err, s, from, to));
        from = to;
    }
    return WF_OK;
}

template <class T>
wf_status copy_same(const wf_run *run, const T *from, wf_tensor *out, wf_err *err)
{
    const size_t bytes = wf_tensor_bytes(out);

    return bytes ? wf_stream_copy(run->stream, WF_COPY_WITHIN, out->data, from, bytes, err) : WF_OK;
}

wf_status resize_moved(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                       wf_err *err)
{
    const plan *p = static_cast<const plan *>(run->state);

    WF_TRY(take_roi(run, in[1], err));
    if (p->v.n_passes == 0)
        return copy_same(run, in[0]->data, out[0], err);
    return WF_BY_SIZE(out[0]->dtype,
                      by_passes<T>(run, move<T>, wf_in<T>(in[0]), wf_out<T>(out[0]), err));
}

template <class T>
wf_status resize(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                 wf_err *err)
{
    const plan *p = static_cast<const plan *>(run->state);
    T *y = wf_out<T>(out[0]);

    if (p->v.is_nearest || p->v.n_passes == 0) {
        WF_TRY(resize_moved(run, in, out, err));
    } else {
        WF_TRY(take_roi(run, in[1], err));
        WF_TRY(by_passes<T>(run, weigh<T>, wf_in<T>(in[0]), y, err));
    }
    return p->v.extrapolates && p->v.n_passes
               ? extrapolate_from<T>(run, out[0], y, y, p->v.extrapolation, err)
               : WF_OK;
}

/* From dy, x, roi. What was extrapolated does not depend on x. */
template <class T>
wf_status resize_grad(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                      wf_err *err)
{
    const plan *p = static_cast<const plan *>(run->state);
    const T *from = wf_in<T>(in[0]);

    WF_TRY(take_roi(run, in[2], err));
    if (p->v.n_passes == 0)
        return copy_same(run, from, out[0], err);
    if (p->v.extrapolates) {
        T *inside = wf_room<T>(run, p->buffers[p->v.n_passes % 2]);

        WF_TRY(extrapolate_from<T>(run, in[0], from, inside, 0, err));
        from = inside;
    }
    for (uint32_t k = p->v.n_passes; k-- > 0;) {
        step s = step_of(run, p, k);
        T *to = k == 0 ? wf_out<T>(out[0]) : wf_room<T>(run, p->buffers[k % 2]);

        WF_TRY(wf_launch(run, "ResizeGrad", weigh_back<T>, wf_blocks(run, s.outer * s.in * s.inner),
                         err, s, from, to));
        from = to;
    }
    return WF_OK;
}

} // namespace

#define ROW(dtype, T)                                                                              \
    {                                                                                              \
        .op = "Resize", .dtypes = WF_TYPE(dtype), .prepare = prepare, .run = resize<T>             \
    }
#define GRAD(dtype, T)                                                                             \
    {                                                                                              \
        .op = "ResizeGrad", .domain = WF_DOMAIN_WEFT, .dtypes = WF_TYPE(dtype),                    \
        .prepare = prepare_grad, .run = resize_grad<T>                                             \
    }

WF_CUDA_ROWS(resize){
    ROW(WF_F32, float),
    ROW(WF_F64, double),
    {.op = "Resize",
     .dtypes = WF_TYPES_ALL & ~WF_TYPES_FLOAT,
     .prepare = prepare_move,
     .run = resize_moved},
    GRAD(WF_F32, float),
    GRAD(WF_F64, double),
    {},
};
