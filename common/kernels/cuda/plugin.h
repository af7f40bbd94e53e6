/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/plugin.h - the functions of weft-cuda.so.
 *
 * Their names have weft's version in them, since a plug-in shares structs with who loads it: those
 * of another version are not found.
 */
#ifndef WF_KERNELS_CUDA_PLUGIN_H
#define WF_KERNELS_CUDA_PLUGIN_H

#include "common/kernels/kernel.h"
#include "common/log/log.h"

#define WEFT_CUDA_DEVICE "weft_cuda_device_of_" WEFT_VERSION
#define WEFT_CUDA_PLANNED_DEVICE "weft_cuda_planned_device_of_" WEFT_VERSION
#define WEFT_CUDA_LOG "weft_cuda_log_of_" WEFT_VERSION

/* GPU number `index` of this host as the device "cuda:<index>" with its kernels, for wf_device_add;
 * it lives as long as the process. Errors: as wf_cuda_open's. */
typedef wf_status weft_cuda_device_fn(int index, const wf_device_rows **out, wf_err *err);
extern weft_cuda_device_fn weft_cuda_device __asm__(WEFT_CUDA_DEVICE)
    __attribute__((visibility("default")));
/* The same of a GPU that need not be there, for plans that are measured and never run. */
extern weft_cuda_device_fn weft_cuda_planned_device __asm__(WEFT_CUDA_PLANNED_DEVICE)
    __attribute__((visibility("default")));
/* wf_log_init of the plug-in's own log; before any other. */
extern void weft_cuda_log(const char *who, wf_log_level least) __asm__(WEFT_CUDA_LOG)
    __attribute__((visibility("default")));

#endif
