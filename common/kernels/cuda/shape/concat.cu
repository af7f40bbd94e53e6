/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/shape/concat.cu - Concat along one axis. */
#include "common/kernels/cuda/shape/parts.h"

namespace
{

wf_status concat(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                 wf_err *err)
{
    return WF_BY_SIZE(out[0]->dtype,
                      (wf_copy_all_parts<T, false>(run, out[0], run->node->n_in, in, err)));
}

} // namespace

WF_CUDA_ROWS(concat){{.op = "Concat", .dtypes = WF_TYPES_ALL, .run = concat}, {}};
