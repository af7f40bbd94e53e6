/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/rows.c */
#include "common/kernels/cuda/rows.h"
#include "common/base/cc.h"

#define WF_KERNELS(name, file) extern const wf_kernel wf_cuda_kernels_##name[];
#include "common/kernels/cuda/rows.def"
#undef WF_KERNELS

const wf_kernel *const wf_cuda_files[] = {
#define WF_KERNELS(name, file) wf_cuda_kernels_##name,
#include "common/kernels/cuda/rows.def"
#undef WF_KERNELS
};
const size_t wf_cuda_n_files = WF_COUNT(wf_cuda_files);

const wf_device_updates wf_cuda_updates = {.update = wf_cuda_update,
                                           .average = wf_cuda_average,
                                           .clip = wf_cuda_clip,
                                           .squares = wf_cuda_squares,
                                           .finite = wf_cuda_finite,
                                           .sum = wf_cuda_sum};
