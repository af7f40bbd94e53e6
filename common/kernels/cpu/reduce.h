/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/reduce.h - sums over axes, given as a walk over the input whose operand 0 is
 * the output (moving by 0 along what is summed). */
#ifndef WF_KERNELS_CPU_REDUCE_H
#define WF_KERNELS_CPU_REDUCE_H

#include "common/kernels/cpu/walk.h"
#include "common/tensor/tensor.h"

/* out = the sum of in, along the walk. One dtype: f32, f64, i32 or i64. */
void wf_sum_walk(const wf_walk *w, const wf_tensor *in, wf_tensor *out);
/* The sum of x[n], in blocks, so that rounding grows slowly. */
double wf_sum_f32(const float *x, int64_t n);

#endif
