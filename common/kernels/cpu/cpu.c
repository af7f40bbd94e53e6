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
