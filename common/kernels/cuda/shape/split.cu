/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/shape/split.cu - Split along one axis: Concat the other way. */
#include "common/kernels/cuda/shape/parts.h"

namespace
{

wf_status split(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[], wf_err *err)
{
    for (uint32_t i = 0; i < run->node->n_out; i++)
        if (!out[i])
            return wf_fail(err, WF_UNSUPPORTED, "give every part a name",
                           "part %u has no name, so that its size is not known", i);
    return WF_BY_SIZE(in[0]->dtype,
                      (wf_copy_all_parts<T, true>(run, in[0], run->node->n_out, out, err)));
}

} // namespace

WF_CUDA_ROWS(split){{.op = "Split", .dtypes = WF_TYPES_ALL, .run = split}, {}};
