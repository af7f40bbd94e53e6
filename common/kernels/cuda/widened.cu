/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/widened.cu - the GPU's row for narrow nodes. */
#include "common/kernels/cuda/narrow.h"
extern "C" {
#include "common/kernels/cuda/rows.h"
#include "common/kernels/widened.h"
}

namespace
{

wf_status prepare(wf_prep *prep, const wf_tensor *const in[], const wf_tensor *const out[],
                  wf_err *err)
{
    return wf_widened_prepare(prep, &wf_cuda_gpu_of(prep->device)->rows, in, out, err);
}

wf_status run(const wf_run *r, const wf_tensor *const in[], wf_tensor *const out[], wf_err *err)
{
    return wf_widened_run(r, wf_convert, in, out, err);
}

} // namespace

/* No operation's: the device's rows name it (wf_device_rows.widened). */
const wf_kernel wf_cuda_widened = {.prepare = prepare, .run = run};
