/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/on_host_thread.h - a thread of a kernel that runs on the host, and how it
 * meets those of its block (tests/cuda/host_block.c).
 */
#ifndef WF_KERNELS_CUDA_ON_HOST_THREAD_H
#define WF_KERNELS_CUDA_ON_HOST_THREAD_H

#include "common/kernels/cuda/calls.h"

typedef struct wf_host_thread {
    wf_cuda_dim thread, block, block_dim, grid_dim;
} wf_host_thread;

/* Of the kernel that runs. */
const wf_host_thread *wf_host_self(void);
/* Returns when all threads of the block are here. */
void wf_host_meet(void);
/* `theirs` becomes what the thread of the same warp gave whose number differs from this one's in
 * the bits of `mask`; up to 8 bytes. All threads of the warp are here. */
void wf_host_exchange(const void *mine, void *theirs, size_t bytes, unsigned mask);

/* Memory of the block: n elements, the same for all its threads that ask with the same key; of
 * undefined content at first. */
typedef struct wf_host_shared wf_host_shared;
wf_host_shared *wf_host_share(const void *key, const char *name, size_t bytes, size_t n);
/* Element i, which is read or written now. Ends the program, naming kernel and thread, beyond n,
 * and where another thread wrote it, or reads what is written now, without a meeting in between. */
void *wf_host_shared_at(wf_host_shared *s, size_t i, int writes);

#endif
