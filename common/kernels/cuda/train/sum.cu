/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/train/sum.cu - gradients of several batches are added up, with the host's
 * bits: the build keeps nvcc from joining products and sums in this file. */
#include "common/kernels/cuda/train/pieces.h"

extern "C" {
#include "common/kernels/cuda/rows.h"
}

namespace
{

enum { MOST = 64 };

typedef wf_pieces<wf_sum_segment, MOST> group;

__global__ void add(const __grid_constant__ group all, float by, bool first)
{
    for (int64_t piece = blockIdx.x; piece < all.pieces; piece += gridDim.x) {
        const int k = wf_segment_of(all, piece);
        const wf_sum_segment &v = all.of[k];
        const wf_elements s = wf_elements_of(all, k, piece);

        for (int64_t i = s.from + threadIdx.x; i < s.to; i += blockDim.x)
            v.to[i] = first ? by * v.from[i] : v.to[i] + by * v.from[i];
    }
}

} // namespace

wf_status wf_cuda_sum(wf_stream *stream, float by, bool first, size_t n,
                      const wf_sum_segment segments[], wf_err *err)
{
    return wf_launch_pieces(stream, "a sum of gradients", add, n, segments, err, by, first);
}
