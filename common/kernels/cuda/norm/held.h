/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/norm/held.h - rows of float32 or narrow elements that threads hold in
 * registers, so that each is read once whatever is computed of it.
 *
 * The threads of a warp, or of a block, hold a row of n elements: thread t has fours t, t +
 * threads,
 * ... of it. Each adds up its own elements in float32, and the sums of threads are joined in
 * double.
 */
#ifndef WF_KERNELS_CUDA_HELD_H
#define WF_KERNELS_CUDA_HELD_H

#include "common/kernels/cuda/norm/moments.h"

/* Fours of a thread, at most. */
enum { WF_HELD_MOST = 8 };

/* FOURS of a thread, of rows that WARPS hold together: 1, or all of a block of WF_BLOCK threads. */
template <int FOURS, int WARPS> struct wf_held {
    wf_four<float> v[FOURS];
};

/* The shape of rows of n elements: FOURS (2, 4, 6 or 8) and WARPS; 0 where they cannot be held. */
struct wf_held_shape {
    int fours, warps;
};

static inline wf_held_shape wf_held_shape_of(int64_t n)
{
    const int warps = n <= 4 * WF_WARP * WF_HELD_MOST ? 1 : (int)WF_WARPS;
    const int64_t fours = wf_ceil_div(n, (int64_t)warps * 4 * WF_WARP);

    if (n <= 0 || n % 4 != 0 || fours > WF_HELD_MOST)
        return {0, 0};
    return {(int)(fours + fours % 2), warps};
}

/* f<FOURS, WARPS>() with those of a shape, which is not 0. */
template <int WARPS, class F> wf_status wf_with_fours(int fours, F f)
{
    return fours == 2   ? f.template operator()<2, WARPS>()
           : fours == 4 ? f.template operator()<4, WARPS>()
           : fours == 6 ? f.template operator()<6, WARPS>()
                        : f.template operator()<8, WARPS>();
}

template <class F> wf_status wf_with_shape(wf_held_shape s, F f)
{
    return s.warps == 1 ? wf_with_fours<1>(s.fours, f) : wf_with_fours<WF_WARPS>(s.fours, f);
}

/* Rows that a block holds at a time. */
static inline int64_t wf_held_rows(wf_held_shape s)
{
    return WF_WARPS / s.warps;
}

/* This thread's number among those of its row, the row of the block, and four number k of it. */
template <int WARPS> WF_CODE int wf_held_thread(void)
{
    return (int)(threadIdx.x % (WF_WARP * WARPS));
}

template <int WARPS> WF_CODE int64_t wf_held_first_row(void)
{
    return (int64_t)blockIdx.x * (WF_WARPS / WARPS) + threadIdx.x / (WF_WARP * WARPS);
}

template <int WARPS> WF_CODE int wf_held_four(int k)
{
    return wf_held_thread<WARPS>() + k * WF_WARP * WARPS;
}

/* The sum over the threads of a row, which all get. */
template <int WARPS> WF_CODE double wf_held_sum(float mine)
{
    double sum = (double)mine;

    if constexpr (WARPS > 1) {
        return wf_join_block(sum, 0.0, wf_plus());
    } else {
        for (unsigned mask = WF_WARP / 2; mask > 0; mask /= 2)
            sum += __shfl_xor_sync(~0u, sum, mask);
        return sum;
    }
}

/* f(k, four) for the fours that this thread has of a row of n / 4. */
template <int FOURS, int WARPS, class F> WF_CODE void wf_held_each(int fours, F f)
{
    WF_UNROLL
    for (int k = 0; k < FOURS; k++)
        if (wf_held_four<WARPS>(k) < fours)
            f(k, wf_held_four<WARPS>(k));
}

/* What is on its way of a row. */
template <class X, int FOURS> struct wf_held_raw {
    decltype(wf_load_four(X{}, 0)) v[FOURS];
};

template <int FOURS, int WARPS, class X>
WF_CODE wf_held_raw<X, FOURS> wf_hold(const X &x, int fours)
{
    wf_held_raw<X, FOURS> raw = {};

    wf_held_each<FOURS, WARPS>(
        fours, [&](int k, int four) { raw.v[k] = wf_load_four(x, (int64_t)4 * four); });
    return raw;
}

template <int FOURS, int WARPS, class X>
WF_CODE wf_held<FOURS, WARPS> wf_widen_held(const X &x, const wf_held_raw<X, FOURS> &raw)
{
    wf_held<FOURS, WARPS> all;

    WF_UNROLL
    for (int k = 0; k < FOURS; k++)
        all.v[k] = wf_wide_four(x, raw.v[k]);
    return all;
}

/* Takes the mean from a row of n elements, and returns it (a) and the variance (b). Elements are
 * taken about one of them, `shift`, so that a large mean costs no digits. */
template <int FOURS, int WARPS>
WF_CODE wf_two wf_center_held(wf_held<FOURS, WARPS> &row, int64_t n, float shift)
{
    const int fours = (int)(n / 4);
    float sum = 0, squares = 0, own;
    double mean, rest;

    wf_held_each<FOURS, WARPS>(fours, [&](int k, int) {
        WF_UNROLL
        for (int j = 0; j < 4; j++)
            sum += row.v[k].v[j] -= shift;
    });
    mean = wf_held_sum<WARPS>(sum) / (double)n;
    own = (float)mean;
    wf_held_each<FOURS, WARPS>(fours, [&](int k, int) {
        WF_UNROLL
        for (int j = 0; j < 4; j++) {
            row.v[k].v[j] -= own;
            squares += row.v[k].v[j] * row.v[k].v[j];
        }
    });
    rest = mean - (double)own; /* that the float32 lacks */
    mean += (double)shift;
    return {mean, wf_held_sum<WARPS>(squares) / (double)n - rest * rest};
}

/* The sum of squares of a row. */
template <int FOURS, int WARPS>
WF_CODE double wf_held_squares(const wf_held<FOURS, WARPS> &row, int fours)
{
    float squares = 0;

    wf_held_each<FOURS, WARPS>(fours, [&](int k, int) {
        WF_UNROLL
        for (int j = 0; j < 4; j++)
            squares += row.v[k].v[j] * row.v[k].v[j];
    });
    return wf_held_sum<WARPS>(squares);
}

#endif
