/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/softmax.h - softmax and its logarithm along one axis of [outer, axis, inner].
 * The largest element is taken off first: without that, exp() of a score above 88 is infinite in
 * f32. Scores of -inf get probability 0; a row of nothing else gives NaN, as in the ONNX reference.
 */
#ifndef WF_KERNELS_CPU_SOFTMAX_H
#define WF_KERNELS_CPU_SOFTMAX_H

#include "common/kernels/cpu/cpu.h"

/* y may be x. */
void wf_log_softmax_f32(const float *x, float *y, wf_around a);
void wf_log_softmax_f64(const double *x, double *y, wf_around a);

#endif
