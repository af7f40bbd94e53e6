/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/plugin.h - the one function of weft-cuda.so.
 *
 * Its name has weft's version in it, since a plug-in shares structs with who loads it: another
 * version's is not found.
 */
#ifndef WF_KERNELS_CUDA_PLUGIN_H
#define WF_KERNELS_CUDA_PLUGIN_H

#include "common/kernels/kernel.h"

#define WEFT_CUDA_DEVICE "weft_cuda_device_of_" WEFT_VERSION

/* GPU number `index` of this host as the device "cuda:<index>" with its kernels, for wf_device_add;
 * it lives as long as the process. Errors: as wf_cuda_open's. */
typedef wf_status weft_cuda_device_fn(int index, const wf_device_rows **out, wf_err *err);
WF_MUST_USE __attribute__((visibility("default")))
weft_cuda_device_fn weft_cuda_device __asm__(WEFT_CUDA_DEVICE);

#endif
