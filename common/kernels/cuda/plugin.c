/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/plugin.c - what weft-cuda.so gives to who loads it. */
#include "common/kernels/cuda/plugin.h"
#include "common/kernels/cuda/device.h"
#include "common/kernels/cuda/planned.h"

void weft_cuda_log(const char *who, wf_log_level least)
{
    wf_log_init(who, least);
}

wf_status weft_cuda_device(int index, const wf_device_rows **out, wf_err *err)
{
    wf_cuda_gpu *g = NULL;

    WF_TRY(wf_cuda_open(&wf_cuda_real, "cuda", index, &g, err));
    *out = &g->rows;
    return WF_OK;
}

wf_status weft_cuda_planned_device(int index, const wf_device_rows **out, wf_err *err)
{
    wf_cuda_gpu *g = NULL;

    WF_TRY(wf_cuda_open(&wf_cuda_planned, "cuda", index, &g, err));
    *out = &g->rows;
    return WF_OK;
}
