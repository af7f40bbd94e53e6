/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/shape/reshape.cu - Reshape: the same bytes in another shape. */
#include "common/kernels/cuda/shape/move.h"

WF_CUDA_ROWS(reshape){WF_CUDA_VIEW("Reshape"), {}};
