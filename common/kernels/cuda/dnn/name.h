/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/dnn/name.h - what an engine with its settings is called, in each process. */
#ifndef WF_KERNELS_CUDA_DNN_NAME_H
#define WF_KERNELS_CUDA_DNN_NAME_H

#include "common/kernels/cuda/tune/tune.h"

/* The name of a configuration: a hash of its engine's number and of each setting (cuDNN: knob) with
 * its value. Gives the error of the call that failed, or 0. */
int wf_dnn_name(const wf_cuda_calls *calls, wf_cuda_descriptor *config, wf_tune_name *out);

#endif
