/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/calls_real.h - the functions over cuDNN (calls_dnn.c) and NCCL (calls_nccl.c)
 * of the table wf_cuda_real (calls.c); for these files alone. */
#ifndef WF_KERNELS_CUDA_CALLS_REAL_H
#define WF_KERNELS_CUDA_CALLS_REAL_H

#include "common/kernels/cuda/calls.h"

/* Of an error of cuDNN that a function below gave. */
const char *wf_cuda_real_dnn_error_string(int error);

int wf_cuda_real_dnn_new(wf_cuda_dnn **out);
uint64_t wf_cuda_real_dnn_version(void);
int wf_cuda_real_dnn_free(wf_cuda_dnn *dnn);
int wf_cuda_real_dnn_stream(wf_cuda_dnn *dnn, wf_cuda_stream *s);
int wf_cuda_real_dnn_make(int kind, wf_cuda_descriptor **out);
int wf_cuda_real_dnn_unmake(wf_cuda_descriptor *d);
int wf_cuda_real_dnn_set(wf_cuda_descriptor *d, int attribute, int type, int64_t n,
                         const void *values);
int wf_cuda_real_dnn_get(wf_cuda_descriptor *d, int attribute, int type, int64_t most, int64_t *n,
                         void *values);
int wf_cuda_real_dnn_finish(wf_cuda_descriptor *d);
int wf_cuda_real_dnn_execute(wf_cuda_dnn *dnn, wf_cuda_descriptor *plan, wf_cuda_descriptor *pack);

/* Of an error of NCCL that a function below gave. */
const char *wf_cuda_real_nccl_error_string(int error);

int wf_cuda_real_nccl_new(wf_cuda_comm *out[], int n, const int devices[]);
int wf_cuda_real_nccl_free(wf_cuda_comm *comm);
int wf_cuda_real_nccl_begin(void);
int wf_cuda_real_nccl_end(void);
int wf_cuda_real_nccl_sum(const float *from, float *to, size_t n, wf_cuda_comm *comm,
                          wf_cuda_stream *s);

#endif
