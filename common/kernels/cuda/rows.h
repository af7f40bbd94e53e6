/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/rows.h - the kernels of all files that meson.build names, and what is done to
 * variables (update.h) and between GPUs (group.h). */
#ifndef WF_KERNELS_CUDA_ROWS_H
#define WF_KERNELS_CUDA_ROWS_H

#include "common/kernels/kernel.h"

extern const wf_kernel *const wf_cuda_files[]; /* [wf_cuda_n_files] */
extern const size_t wf_cuda_n_files;
wf_update_fn wf_cuda_update;   /* train/update.cu */
wf_average_fn wf_cuda_average; /* train/average.cu */
wf_clip_fn wf_cuda_clip;       /* train/clip.cu */
wf_squares_fn wf_cuda_squares; /* train/clip.cu */
wf_finite_fn wf_cuda_finite;   /* train/finite.cu */
wf_sum_fn wf_cuda_sum;         /* train/sum.cu */
extern const wf_device_updates wf_cuda_updates;
extern const wf_device_groups wf_cuda_groups; /* group.c */
extern const wf_kernel wf_cuda_widened;       /* widened.cu */

#endif
