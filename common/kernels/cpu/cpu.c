/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/cpu.c */
#include "common/kernels/cpu/cpu.h"

#include <string.h>

void wf_copy(void *to, const void *from, size_t bytes)
{
    if (bytes && to != from)
        memcpy(to, from, bytes);
}

wf_status wf_run_view(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                      wf_err *err)
{
    (void)run, (void)err;
    wf_copy(out[0]->data, in[0]->data, wf_tensor_bytes(out[0]));
    return WF_OK;
}

#define ADD(T)                                                                                     \
    WF_MULTIVERSION static void add_##T(const T *x, T *y, int64_t n)                               \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++)                                                            \
            y[i] += x[i];                                                                          \
    }
ADD(float)
ADD(double)

void wf_add(wf_dtype dtype, const void *x, void *y, int64_t n)
{
    if (dtype == WF_F32)
        add_float(x, y, n);
    else
        add_double(x, y, n);
}

wf_status wf_prep_workspace(wf_prep *prep, size_t n, size_t bytes, wf_err *err)
{
    return wf_mul_size(n, bytes, &prep->workspace_bytes) ? WF_OK : wf_fail_nomem(err, SIZE_MAX);
}
