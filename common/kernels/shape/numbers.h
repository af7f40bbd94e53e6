/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/shape/numbers.h - single elements of tensors on the host, such as the constants
 * that `prepare` reads. */
#ifndef WF_KERNELS_SHAPE_NUMBERS_H
#define WF_KERNELS_SHAPE_NUMBERS_H

#include "common/tensor/tensor.h"
#include <stdint.h>

/* Element i of an i32, i64, u8 or bool tensor. */
int64_t wf_int_at(const wf_tensor *t, int64_t i);
/* Element i of any numeric tensor but the halves. */
double wf_number_at(const wf_tensor *t, int64_t i);
/* Writes the bytes of one, of any dtype that graphs have. */
void wf_one_of(wf_dtype dtype, void *out);

#endif
