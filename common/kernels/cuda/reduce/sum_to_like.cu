/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/reduce/sum_to_like.cu - SumToLike(x, ref): x summed down to the shape of ref,
 * which broadcasts to x's. */
#include "common/kernels/cuda/reduce/reduce.h"

namespace
{

wf_status prepare(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                  wf_err *err)
{
    uint32_t lead = in[0]->rank - out[0]->rank, mask = (1u << lead) - 1;

    for (uint32_t i = lead; i < in[0]->rank; i++)
        mask |= (out[0]->dims[i - lead] == 1 ? 1u : 0u) << i;
    return wf_reduce_over(prep, in[0], mask, err);
}

} // namespace

#define ROW(dtype, T, A)                                                                           \
    {                                                                                              \
        .op = "SumToLike", .domain = WF_DOMAIN_WEFT, .dtypes = WF_TYPE(dtype), .prepare = prepare, \
        .run = wf_reduce<T, T, wf_sum<A>>                                                          \
    }

WF_CUDA_ROWS(sum_to_like){
    ROW(WF_F32, float, double),     ROW(WF_F64, double, double),
    ROW(WF_I32, int32_t, uint64_t), /* integers wrap */
    ROW(WF_I64, int64_t, uint64_t), {},
};
