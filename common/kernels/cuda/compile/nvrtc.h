/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/compile/nvrtc.h - NVRTC's part of the table of calls, whose members these
 * are. The library is opened when it is first asked for its version: weft runs without it. */
#ifndef WF_KERNELS_CUDA_NVRTC_H
#define WF_KERNELS_CUDA_NVRTC_H

#include "common/kernels/cuda/calls.h"

int wf_cuda_nvrtc_version(int *major, int *minor);
int wf_cuda_nvrtc_new(wf_cuda_program **out, const char *source, const char *name);
int wf_cuda_nvrtc_compile(wf_cuda_program *p, int n, const char *const options[]);
int wf_cuda_nvrtc_log_size(wf_cuda_program *p, size_t *bytes);
int wf_cuda_nvrtc_log(wf_cuda_program *p, char *out);
int wf_cuda_nvrtc_code_size(wf_cuda_program *p, size_t *bytes);
int wf_cuda_nvrtc_code(wf_cuda_program *p, char *out);
int wf_cuda_nvrtc_free(wf_cuda_program *p);
/* Of an error from WF_CUDA_OF_NVRTC on. */
const char *wf_cuda_nvrtc_error_string(int error);

#endif
