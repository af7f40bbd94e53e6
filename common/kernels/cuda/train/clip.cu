/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/train/clip.cu - gradients whose elements are held to a limit, or that are
 * scaled down to a norm; and the squares of norms. The host's sums are taken in the same order
 * (update.h), so norms and gradients have its bits; a thread has a lane of a block. */
#include "common/kernels/cuda/train/pieces.h"

extern "C" {
#include "common/kernels/cuda/rows.h"
}

#include <cmath>

namespace
{

enum { MOST = 64 };

/* A gradient of whose elements each is changed in the same way. */
struct changed {
    uint64_t n;
    float *g;
};

typedef wf_pieces<changed, MOST> changes;

/* A gradient whose norm is taken. */
struct summed {
    uint64_t n; /* lanes of all blocks */
    uint64_t count;
    const float *g;
    double *lanes, *sums; /* [n]; of blocks */
    double *square;       /* the sum of all */
};

typedef wf_pieces<summed, MOST> sums;

/* A gradient that is scaled. */
struct scaled {
    uint64_t n;
    float *g;
    const double *square; /* of the norm that must not be above the limit */
};

typedef wf_pieces<scaled, MOST> scalings;

/* NaN stays. */
__global__ void bound(const __grid_constant__ changes all, float most)
{
    for (int64_t piece = blockIdx.x; piece < all.pieces; piece += gridDim.x) {
        const int k = wf_segment_of(all, piece);
        const wf_elements s = wf_elements_of(all, k, piece);

        for (int64_t i = s.from + threadIdx.x; i < s.to; i += blockDim.x) {
            const float x = all.of[k].g[i] > most ? most : all.of[k].g[i];

            all.of[k].g[i] = x < -most ? -most : x;
        }
    }
}

__global__ void multiply(const __grid_constant__ changes all, float by)
{
    for (int64_t piece = blockIdx.x; piece < all.pieces; piece += gridDim.x) {
        const int k = wf_segment_of(all, piece);
        const wf_elements s = wf_elements_of(all, k, piece);

        for (int64_t i = s.from + threadIdx.x; i < s.to; i += blockDim.x)
            all.of[k].g[i] *= by;
    }
}

__global__ void sum_lanes(const __grid_constant__ sums all)
{
    for (int64_t piece = blockIdx.x; piece < all.pieces; piece += gridDim.x) {
        const int k = wf_segment_of(all, piece);
        const wf_elements s = wf_elements_of(all, k, piece);
        const summed &v = all.of[k];

        for (int64_t i = s.from + threadIdx.x; i < s.to; i += blockDim.x) {
            const int64_t from = i / WF_CLIP_LANES * WF_CLIP_BLOCK;
            const int64_t to = WF_MIN(from + WF_CLIP_BLOCK, static_cast<int64_t>(v.count));
            double sum = 0;

            for (int64_t at = from + i % WF_CLIP_LANES; at < to; at += WF_CLIP_LANES)
                sum += static_cast<double>(v.g[at]) * static_cast<double>(v.g[at]);
            v.lanes[i] = sum;
        }
    }
}

__global__ void sum_blocks(const __grid_constant__ sums all)
{
    for (int64_t piece = blockIdx.x; piece < all.pieces; piece += gridDim.x) {
        const int k = wf_segment_of(all, piece);
        const wf_elements s = wf_elements_of(all, k, piece);
        const summed &v = all.of[k];
        const int64_t first = s.from / WF_CLIP_LANES, end = s.to / WF_CLIP_LANES;

        for (int64_t b = first + threadIdx.x; b < end; b += blockDim.x) {
            double sum = 0;

            for (int lane = 0; lane < WF_CLIP_LANES; lane++)
                sum += v.lanes[b * WF_CLIP_LANES + lane];
            v.sums[b] = sum;
        }
    }
}

/* A thread to a gradient. */
__global__ void sum_gradients(const __grid_constant__ sums all)
{
    const int k = static_cast<int>(threadIdx.x);

    if (k < all.n) {
        double sum = 0;

        for (uint64_t b = 0; b < all.of[k].n / WF_CLIP_LANES; b++)
            sum += all.of[k].sums[b];
        *all.of[k].square = sum;
    }
}

/* One thread, in the order of the gradients. */
__global__ void add_to(const __grid_constant__ sums all, double *total)
{
    if (threadIdx.x == 0)
        for (int k = 0; k < all.n; k++)
            *total += *all.of[k].square;
}

__global__ void scale(const __grid_constant__ scalings all, double limit)
{
    for (int64_t piece = blockIdx.x; piece < all.pieces; piece += gridDim.x) {
        const int k = wf_segment_of(all, piece);
        const wf_elements s = wf_elements_of(all, k, piece);
        const double norm = std::sqrt(*all.of[k].square);
        const float by = static_cast<float>(limit / norm);

        if (norm > limit)
            for (int64_t i = s.from + threadIdx.x; i < s.to; i += blockDim.x)
                all.of[k].g[i] *= by;
    }
}

/* What a call is given. */
struct call {
    wf_run run;
    size_t n;
    const wf_clip_segment *segments;
    wf_err *err;
};

summed summed_of(const wf_clip_segment &s)
{
    const uint64_t blocks = (s.n + WF_CLIP_BLOCK - 1) / WF_CLIP_BLOCK;
    const uint64_t lanes = blocks * WF_CLIP_LANES;

    return {lanes, s.n, s.g, s.scratch, s.scratch + lanes, s.scratch + lanes + blocks};
}

double *square_of(const wf_clip_segment &s)
{
    return summed_of(s).square;
}

/* The next segments that are not empty, at most MOST, as T. */
template <class T, class F> wf_pieces<T, MOST> next(const call &c, size_t *at, F make)
{
    T some[MOST];
    size_t n = 0, from = 0;

    for (; *at < c.n && n < MOST; ++*at)
        if (c.segments[*at].n > 0)
            some[n++] = make(c.segments[*at]);
    return wf_next_pieces<T, MOST>(n, some, &from);
}

wf_status change_all(const call &c, void (*how)(changes, float), double by)
{
    for (size_t at = 0; at < c.n;) {
        const changes all = next<changed>(c, &at, [](const wf_clip_segment &s) {
            return changed{s.n, s.g};
        });

        if (all.n > 0)
            WF_TRY(wf_launch(&c.run, "clipping", how, wf_blocks(&c.run, all.pieces * WF_BLOCK),
                             c.err, all, static_cast<float>(by)));
    }
    return WF_OK;
}

/* Puts the square of each norm in its place of squares[n], or without that behind its sums; and
 * their sum in *total if that is not NULL. */
wf_status take_norms(const call &c, double *squares, double *total)
{
    if (total)
        WF_TRY(wf_stream_fill(c.run.stream, total, 0, sizeof *total, c.err));
    for (size_t at = 0; at < c.n;) {
        const sums all = next<summed>(c, &at, [&](const wf_clip_segment &s) {
            summed v = summed_of(s);

            v.square = squares ? squares + (&s - c.segments) : v.square;
            return v;
        });
        const unsigned blocks = wf_blocks(&c.run, all.pieces * WF_BLOCK);

        if (all.n == 0)
            continue;
        WF_TRY(wf_launch(&c.run, "a norm", sum_lanes, blocks, c.err, all));
        WF_TRY(wf_launch(&c.run, "a norm", sum_blocks, blocks, c.err, all));
        WF_TRY(wf_launch(&c.run, "a norm", sum_gradients, 1, c.err, all));
        if (total)
            WF_TRY(wf_launch(&c.run, "a norm", add_to, 1, c.err, all, total));
    }
    return WF_OK;
}

/* By each gradient's own norm, or by that in *total. */
wf_status scale_all(const call &c, double limit, const double *total)
{
    for (size_t at = 0; at < c.n;) {
        const scalings all = next<scaled>(c, &at, [=](const wf_clip_segment &s) {
            return scaled{s.n, s.g, total ? total : square_of(s)};
        });

        if (all.n > 0)
            WF_TRY(wf_launch(&c.run, "clipping", scale, wf_blocks(&c.run, all.pieces * WF_BLOCK),
                             c.err, all, limit));
    }
    return WF_OK;
}

} // namespace

wf_status wf_cuda_clip(wf_stream *stream, const wf_clip_limits *limits, double *total, size_t n,
                       const wf_clip_segment segments[], wf_err *err)
{
    const call c = {wf_run_on(stream), n, segments, err};

    if (limits->value > 0)
        WF_TRY(change_all(c, bound, limits->value));
    if (limits->norm > 0) {
        WF_TRY(take_norms(c, nullptr, nullptr));
        WF_TRY(scale_all(c, limits->norm, nullptr));
    }
    if (limits->global_norm > 0) {
        WF_TRY(take_norms(c, nullptr, total));
        WF_TRY(scale_all(c, limits->global_norm, total));
    }
    return limits->by > 0 ? change_all(c, multiply, static_cast<double>(limits->by)) : WF_OK;
}

wf_status wf_cuda_squares(wf_stream *stream, double *squares, size_t n,
                          const wf_clip_segment segments[], wf_err *err)
{
    const call c = {wf_run_on(stream), n, segments, err};

    WF_TRY(wf_stream_fill(stream, squares, 0, n * sizeof *squares, err));
    return take_norms(c, squares, nullptr);
}
