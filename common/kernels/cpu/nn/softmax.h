/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/nn/softmax.h - softmax and its logarithm along one axis of [outer, axis,
 * inner]. The largest element is taken off first: without that, exp() of a score above 88 is
 * infinite in f32. Scores of -inf get probability 0; a row of nothing else gives NaN, as in the
 * ONNX reference.
 */
#ifndef WF_KERNELS_CPU_SOFTMAX_H
#define WF_KERNELS_CPU_SOFTMAX_H

#include "common/kernels/cpu/cpu.h"

/* The logarithms of x, f32 or f64, into y, which may be x's own memory. */
void wf_log_softmax(wf_pool *pool, const wf_tensor *x, void *y, wf_around a);

#endif
