/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/shape/reshape.c - Reshape: the same bytes in another shape. */
#include "common/kernels/cpu/cpu.h"

const wf_kernel wf_kernels_reshape[] = {WF_VIEW("Reshape"), {0}};
