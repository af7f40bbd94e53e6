/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/train/finite.cu - whether gradients are finite. Threads that find a bad
 * number all write the same word, so their order is no matter. */
#include "common/kernels/cuda/train/pieces.h"

extern "C" {
#include "common/kernels/cuda/rows.h"
}

#include <cmath>

namespace
{

enum { MOST = 64 };

typedef wf_pieces<wf_finite_segment, MOST> group;

__global__ void look(const __grid_constant__ group all)
{
    for (int64_t piece = blockIdx.x; piece < all.pieces; piece += gridDim.x) {
        const int k = wf_segment_of(all, piece);
        const wf_elements s = wf_elements_of(all, k, piece);
        bool bad = false;

        for (int64_t i = s.from + threadIdx.x; i < s.to; i += blockDim.x)
            bad |= !std::isfinite(all.of[k].x[i]);
        if (bad)
            *all.of[k].bad = 1;
    }
}

} // namespace

wf_status wf_cuda_finite(wf_stream *stream, size_t n, const wf_finite_segment segments[],
                         wf_err *err)
{
    return wf_launch_pieces(stream, "a look for NaN", look, n, segments, err);
}
