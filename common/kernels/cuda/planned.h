/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/planned.h - the table of calls for plans that are measured and never run, on
 * a host that may have no GPU. */
#ifndef WF_KERNELS_CUDA_PLANNED_H
#define WF_KERNELS_CUDA_PLANNED_H

#include "common/kernels/cuda/device.h"

enum { WF_CUDA_PLANNED_GPUS = 1000 };

extern const wf_cuda_calls wf_cuda_planned;

#endif
