/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/device.h - the cpu as a device: its rows, its units, and the libraries that
 * its kernels call, which should start no threads of their own: weft's pool splits the work.
 */
#ifndef WF_KERNELS_CPU_DEVICE_H
#define WF_KERNELS_CPU_DEVICE_H

#include "common/kernels/kernel.h"
#include <stdbool.h>

extern const wf_device_rows wf_cpu_rows;
extern const wf_kernel wf_cpu_widened; /* in widened.c */

/* What this processor has. `tiles`: Linux has given this process the state of AMX's tiles. */
typedef struct wf_cpu_units {
    bool avx512;    /* f, bw, vl and dq: what oneDNN's convolutions are written for */
    bool bf16;      /* avx512, and products of bfloat16 pairs */
    bool slow_bf16; /* bf16, and multiply-adds of float32 are faster than these */
    bool tiles;     /* bf16, and AMX */
} wf_cpu_units;
const wf_cpu_units *wf_cpu_has(void);

struct dnnl_engine;
/* The one engine of oneDNN, or NULL when there is none. */
struct dnnl_engine *wf_onednn_engine(void);
/* Keeps oneDNN on the calling thread until wf_onednn_leave gets what it returned: it would start a
 * team of its own in each thread of the pool. The thread may be a host's, whose OpenMP is its own
 * matter. */
int wf_onednn_stay(void);
void wf_onednn_leave(int before);

#endif
