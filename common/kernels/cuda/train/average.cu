/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/train/average.cu - moving averages of statistics, with the host's bits: the
 * build keeps nvcc from joining products and sums in this file. */
#include "common/kernels/cuda/train/pieces.h"

extern "C" {
#include "common/kernels/cuda/rows.h"
}

#include "common/optim/formula/statistic.h"

namespace
{

enum { MOST = 64 };

typedef wf_pieces<wf_average_segment, MOST> group;

__global__ void average(const __grid_constant__ group all)
{
    for (int64_t piece = blockIdx.x; piece < all.pieces; piece += gridDim.x) {
        const int k = wf_segment_of(all, piece);
        const wf_average_segment &v = all.of[k];
        const wf_elements s = wf_elements_of(all, k, piece);

        for (int64_t i = s.from + threadIdx.x; i < s.to; i += blockDim.x)
            wf_statistic_element(v.momentum, v.w + i, v.now[i]);
    }
}

} // namespace

wf_status wf_cuda_average(wf_stream *stream, size_t n, const wf_average_segment segments[],
                          wf_err *err)
{
    return wf_launch_pieces(stream, "a moving average", average, n, segments, err);
}
