/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/shape/view.c - Flatten, Identity, Squeeze, Unsqueeze: the same bytes in
 * another shape. */
#include "common/kernels/cpu/cpu.h"

const wf_kernel wf_kernels_view[] = {
    WF_VIEW("Flatten"), WF_VIEW("Identity"), WF_VIEW("Squeeze"), WF_VIEW("Unsqueeze"), {0},
};
