/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/train/pieces.h - many variables in one launch: their places are arguments of
 * the kernel, and blocks take pieces of them in turn. A kernel over them is
 *
 *     template <class F> __global__ void each(const __grid_constant__ wf_pieces<S, MOST> all)
 *     {
 *         for (int64_t piece = blockIdx.x; piece < all.pieces; piece += gridDim.x) {
 *             const S &v = all.of[wf_segment_of(all, piece)];
 *             ...
 */
#ifndef WF_KERNELS_CUDA_TRAIN_PIECES_H
#define WF_KERNELS_CUDA_TRAIN_PIECES_H

#include "common/kernels/cuda/code.h"

enum { WF_PIECE = 4 * WF_BLOCK /* elements */, WF_SEGMENTS_MOST = 64 };

/* Segments of a launch. S has its number of elements in n. All of it lies within the 4 KiB of a
 * kernel's arguments. */
template <class S, int MOST> struct wf_pieces {
    static_assert(MOST <= WF_SEGMENTS_MOST && MOST * (sizeof(S) + sizeof(int64_t)) < 4000);
    S of[MOST];
    int64_t first[MOST]; /* the number of each segment's first piece: rising */
    int64_t pieces;
    int n;
};

/* The segment that a piece is of, by halving. */
template <class S, int MOST> WF_CODE int wf_segment_of(const wf_pieces<S, MOST> &all, int64_t piece)
{
    int k = 0;

    for (int step = WF_SEGMENTS_MOST / 2; step > 0; step /= 2)
        if (k + step < all.n && all.first[k + step] <= piece)
            k += step;
    return k;
}

/* The elements of it that are the piece's. */
typedef struct wf_elements {
    int64_t from, to;
} wf_elements;

template <class S, int MOST>
WF_CODE wf_elements wf_elements_of(const wf_pieces<S, MOST> &all, int k, int64_t piece)
{
    const int64_t from = (piece - all.first[k]) * WF_PIECE;

    return {from, WF_MIN(from + WF_PIECE, static_cast<int64_t>(all.of[k].n))};
}

/* Takes segments, at most MOST that are not empty, from *at on. */
template <class S, int MOST>
static wf_pieces<S, MOST> wf_next_pieces(size_t n, const S segments[], size_t *at)
{
    wf_pieces<S, MOST> all = {};

    for (; *at < n && all.n < MOST; ++*at)
        if (segments[*at].n > 0) {
            all.of[all.n] = segments[*at];
            all.first[all.n++] = all.pieces;
            all.pieces += static_cast<int64_t>((segments[*at].n + WF_PIECE - 1) / WF_PIECE);
        }
    return all;
}

/* The run of kernels that belong to no node. */
static inline wf_run wf_run_on(wf_stream *stream)
{
    wf_run run = {};

    run.device = stream->device;
    run.stream = stream;
    return run;
}

/* Launches a kernel over all segments, with more arguments behind them. */
template <class S, int MOST, class... T>
static wf_status wf_launch_pieces(wf_stream *stream, const char *what,
                                  void (*kernel)(wf_pieces<S, MOST>, T...), size_t n,
                                  const S segments[], wf_err *err, T... more)
{
    const wf_run run = wf_run_on(stream);

    for (size_t at = 0; at < n;) {
        const wf_pieces<S, MOST> all = wf_next_pieces<S, MOST>(n, segments, &at);

        if (all.n > 0)
            WF_TRY(wf_launch(&run, what, kernel, wf_blocks(&run, all.pieces * WF_BLOCK), err, all,
                             more...));
    }
    return WF_OK;
}

#endif
