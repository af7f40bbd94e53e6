/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/plugin.h - the one function of weft-cuda.so. */
#ifndef WF_KERNELS_CUDA_PLUGIN_H
#define WF_KERNELS_CUDA_PLUGIN_H

#include "common/kernels/kernel.h"

/* GPU number `index` of this host as the device "cuda:<index>" with its kernels, for wf_device_add;
 * it lives as long as the process. Errors: as wf_cuda_open's. */
WF_MUST_USE __attribute__((visibility("default"))) wf_status
weft_cuda_device(int index, const wf_device_rows **out, wf_err *err);
typedef wf_status weft_cuda_device_fn(int index, const wf_device_rows **out, wf_err *err);

#endif
