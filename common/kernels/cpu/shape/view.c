/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/shape/view.c - Reshape, Flatten, Squeeze, Unsqueeze, Identity: the same bytes
 * in another shape. A plan shares the memory and does not run them; where it must, they copy. */
#include "common/kernels/cpu/cpu.h"

static wf_status copy(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                      wf_err *err)
{
    (void)run, (void)err;
    wf_copy(out[0]->data, in[0]->data, wf_tensor_bytes(out[0]));
    return WF_OK;
}

#define ROW(op) WF_ROW(op, WF_TYPES_ALL, copy, .is_view = true, .in_place = 1)

const wf_kernel wf_kernels_view[] = {
    ROW("Reshape"), ROW("Flatten"), ROW("Squeeze"), ROW("Unsqueeze"), ROW("Identity"), {0},
};
