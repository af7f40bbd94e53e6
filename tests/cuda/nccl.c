/* SPDX-License-Identifier: Apache-2.0 */
/* tests/cuda/nccl.c - the table's functions over the real NCCL, as far as it answers without a GPU.
 * Skips where libnccl.so.2 is missing. */
#include "common/kernels/cuda/calls_real.h"

#include <stdio.h>
#include <string.h>

enum { SKIPPED = 77 };

int main(void)
{
    static const int devices[] = {0, 1};
    wf_cuda_comm *comms[2];
    int error = wf_cuda_real_nccl_new(comms, 2, devices);

    if (error == WF_CUDA_NO_NCCL) {
        fprintf(stderr, "%s\n", wf_cuda_real_nccl_error_string(error));
        return SKIPPED;
    }
    if (error == 0) /* this host has two GPUs */
        return wf_cuda_real_nccl_free(comms[0]) + wf_cuda_real_nccl_free(comms[1]);
    fprintf(stderr, "NCCL without GPUs: %s\n", wf_cuda_real_nccl_error_string(error));
    if (error < WF_CUDA_OF_NCCL || !wf_cuda_real_nccl_error_string(error)[0])
        return 1;
    /* A group without calls is fine, and one that was not begun is not. */
    if (wf_cuda_real_nccl_begin() != 0 || wf_cuda_real_nccl_end() != 0)
        return 1;
    return wf_cuda_real_nccl_end() > WF_CUDA_OF_NCCL ? 0 : 1;
}
