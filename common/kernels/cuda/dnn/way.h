/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/dnn/way.h - what cuDNN computes: of each GPU the library's handle, and the
 * choices that were made so far.
 *
 * Threading: any thread may make and run ways of one GPU, each way by one thread at a time.
 */
#ifndef WF_KERNELS_CUDA_DNN_WAY_H
#define WF_KERNELS_CUDA_DNN_WAY_H

#include "common/kernels/cuda/device.h"
#include "common/kernels/cuda/dnn/graph.h"

/* Nothing of cuDNN is called before the first way. Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_dnn_new(const wf_cuda_gpu *g, wf_dnn **out, wf_err *err);
/* Frees *d and sets it to NULL; NULL is fine. No way of it is left. */
void wf_dnn_free(wf_dnn **d);

typedef struct wf_dnn_way wf_dnn_way;

/* Chooses an engine, once per case and GPU (of what is asked nothing is kept), and asks `prep` for
 * its workspace. *out is NULL where the host has no cuDNN, or it does not compute the case; call
 * wf_dnn_way_free. A failure of cuDNN is logged, and taken for a refusal. Errors: WF_NOMEM;
 * WF_BROKEN, what CUDA says. */
WF_MUST_USE wf_status wf_dnn_way_new(wf_prep *prep, const wf_dnn_asked *a, wf_dnn_way **out,
                                     wf_err *err);
/* Frees it; NULL is fine. */
void wf_dnn_way_free(wf_dnn_way *w);
/* Queues it on the run's stream, with the addresses [n_tensors] of its graph's tensors. Errors:
 * WF_BROKEN, what cuDNN says. */
WF_MUST_USE wf_status wf_dnn_way_go(wf_dnn_way *w, const wf_run *run, const void *const tensors[],
                                    wf_err *err);

#endif
