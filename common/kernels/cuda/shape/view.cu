/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cuda/shape/view.cu - Flatten, Identity, Squeeze, Unsqueeze: the same bytes in
 * another shape. */
#include "common/kernels/cuda/shape/move.h"

WF_CUDA_ROWS(view){
    WF_CUDA_VIEW("Flatten"),
    WF_CUDA_VIEW("Identity"),
    WF_CUDA_VIEW("Squeeze"),
    WF_CUDA_VIEW("Unsqueeze"),
    {},
};
