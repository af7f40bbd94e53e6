/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/rows.h - the kernels of all files that meson.build names, and updates of
 * weights. */
#ifndef WF_KERNELS_CUDA_ROWS_H
#define WF_KERNELS_CUDA_ROWS_H

#include "common/kernels/kernel.h"

extern const wf_kernel *const wf_cuda_files[]; /* [wf_cuda_n_files] */
extern const size_t wf_cuda_n_files;
wf_update_fn wf_cuda_update; /* train/update.cu */

#endif
