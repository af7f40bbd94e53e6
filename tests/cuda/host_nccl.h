/* SPDX-License-Identifier: Apache-2.0 */
/* tests/cuda/host_nccl.h - NCCL's part of host.h's table, for the files beside it alone.
 *
 * As there, a sum begins when the stream of each GPU has come to it, and no stream goes on before
 * it is done. Terms are added in the order of the GPUs. A mistake that would have GPUs wait for
 * ever (a call outside of begin and end, other calls or counts on one of them) ends the program,
 * and is named; so does memory or a stream of another GPU.
 *
 * Threading: in the lock of host.c. */
#ifndef TESTS_CUDA_HOST_NCCL_H
#define TESTS_CUDA_HOST_NCCL_H

#include "common/kernels/cuda/calls.h"
#include <stddef.h>

int host_nccl_new(wf_cuda_comm *out[], int n, const int devices[]);
int host_nccl_free(wf_cuda_comm *comm);
int host_nccl_begin(void);
int host_nccl_end(void);
int host_nccl_sum(const float *from, float *to, size_t n, wf_cuda_comm *comm, wf_cuda_stream *s);
/* A call since the begin has failed: the end queues nothing. */
void host_nccl_drop(void);

/* Communicators that have not been freed, and sums that were made so far. */
size_t host_nccl_objects(void);
size_t host_nccl_sums(void);

#endif
