/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/onednn.h - what all that goes through oneDNN shares: its engine, and one
 * thread.
 *
 * Each call runs on the calling thread alone; kernels split their work over weft's pool. What is
 * made here is made once per shape, in `prepare`.
 */
#ifndef WF_KERNELS_CPU_ONEDNN_H
#define WF_KERNELS_CPU_ONEDNN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dnnl_engine;
/* The one engine, or NULL when there is none. */
struct dnnl_engine *wf_onednn_engine(void);
/* Keeps oneDNN on the calling thread: it would start a team of its own in each of ours. */
void wf_onednn_stay(void);

/* Whether this processor has the vector units that oneDNN's convolutions are written for. */
bool wf_onednn_has_f32(void); /* AVX-512 */

#endif
