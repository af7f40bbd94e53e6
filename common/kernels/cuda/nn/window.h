/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/nn/window.h - going through a window, for kernels: a thread computes an
 * element of one side and goes through those of the other that belong to it, so that no two threads
 * write one element. shape/spatial.h has the geometry. */
#ifndef WF_KERNELS_CUDA_WINDOW_H
#define WF_KERNELS_CUDA_WINDOW_H

#include "common/kernels/cuda/memory.h"
#include "common/kernels/cuda/narrow.h"
extern "C" {
#include "common/kernels/shape/spatial.h"
}

struct wf_range {
    int64_t lo, hi;
};

/* ceil(a / b) for b > 0, brought into [0, most]. */
WF_CODE int64_t wf_ceil_in(int64_t a, int64_t b, int64_t most)
{
    int64_t up = a <= 0 ? 0 : (a - 1) / b + 1;

    return up < most ? up : most;
}

/* Where output o and tap k read along axis i; may lie outside. */
WF_CODE int64_t wf_reads_at(const wf_spatial &s, unsigned i, int64_t o, int64_t k)
{
    return o * s.w.stride[i] + k * s.w.dilation[i] - s.w.before[i];
}

/* The taps along axis i that output o reads inside the input. */
WF_CODE wf_range wf_taps(const wf_spatial &s, unsigned i, int64_t o)
{
    int64_t first = wf_reads_at(s, i, o, 0);
    int64_t lo = wf_ceil_in(-first, s.w.dilation[i], s.w.kernel[i]);
    int64_t hi = wf_ceil_in(s.in[i] - first, s.w.dilation[i], s.w.kernel[i]);

    return {lo, hi > lo ? hi : lo};
}

/* The outputs along axis i whose tap k lies inside the input. */
WF_CODE wf_range wf_inside(const wf_spatial &s, unsigned i, int64_t k)
{
    int64_t first = wf_reads_at(s, i, 0, k);
    int64_t lo = wf_ceil_in(-first, s.w.stride[i], s.out[i]);
    int64_t hi = wf_ceil_in(s.in[i] - first, s.w.stride[i], s.out[i]);

    return {lo, hi > lo ? hi : lo};
}

/* The outputs along axis i between the first and the last one whose window holds input x; with a
 * dilation some of them step over it. */
WF_CODE wf_range wf_outputs(const wf_spatial &s, unsigned i, int64_t x)
{
    int64_t at = x + s.w.before[i], reach = (s.w.kernel[i] - 1) * s.w.dilation[i];
    int64_t lo = wf_ceil_in(at - reach, s.w.stride[i], s.out[i]);
    int64_t hi = wf_ceil_in(at + 1, s.w.stride[i], s.out[i]);

    return {lo, hi > lo ? hi : lo};
}

/* The tap along axis i by which output o reads input x; -1: it steps over it. */
WF_CODE int64_t wf_tap_of(const wf_spatial &s, unsigned i, int64_t o, int64_t x)
{
    int64_t at = x + s.w.before[i] - o * s.w.stride[i];

    return at % s.w.dilation[i] == 0 ? at / s.w.dilation[i] : -1;
}

/* Calls f(element, tap) for what output o reads of a plane, in order, until f says true. */
template <class F> WF_CODE void wf_each_input(const wf_spatial &s, int64_t o, F f)
{
    const int64_t ow = o % s.out[2], oh = o / s.out[2] % s.out[1], od = o / s.out[2] / s.out[1];
    const wf_range d = wf_taps(s, 0, od), h = wf_taps(s, 1, oh), w = wf_taps(s, 2, ow);

    for (int64_t kd = d.lo; kd < d.hi; kd++)
        for (int64_t kh = h.lo; kh < h.hi; kh++) {
            int64_t row =
                (wf_reads_at(s, 0, od, kd) * s.in[1] + wf_reads_at(s, 1, oh, kh)) * s.in[2];
            int64_t tap = (kd * s.w.kernel[1] + kh) * s.w.kernel[2];

            for (int64_t kw = w.lo; kw < w.hi; kw++)
                if (f(row + wf_reads_at(s, 2, ow, kw), tap + kw))
                    return;
        }
}

/* Calls f(output, tap) for the outputs that read element x of a plane, in order. */
template <class F> WF_CODE void wf_each_output(const wf_spatial &s, int64_t x, F f)
{
    const int64_t xw = x % s.in[2], xh = x / s.in[2] % s.in[1], xd = x / s.in[2] / s.in[1];
    const wf_range d = wf_outputs(s, 0, xd), h = wf_outputs(s, 1, xh), w = wf_outputs(s, 2, xw);

    for (int64_t od = d.lo; od < d.hi; od++)
        for (int64_t oh = h.lo; oh < h.hi; oh++) {
            int64_t kd = wf_tap_of(s, 0, od, xd), kh = wf_tap_of(s, 1, oh, xh);

            if (kd < 0 || kh < 0)
                continue;
            for (int64_t ow = w.lo; ow < w.hi; ow++) {
                int64_t kw = wf_tap_of(s, 2, ow, xw);

                if (kw >= 0)
                    f((od * s.out[1] + oh) * s.out[2] + ow,
                      (kd * s.w.kernel[1] + kh) * s.w.kernel[2] + kw);
            }
        }
}

#endif
