/* SPDX-License-Identifier: Apache-2.0 */
/* common/tensor/halves.h - arrays of float32 to bfloat16 and float16 and back. The bits are those
 * of dtype.h's functions for one number, on every processor; the fast forms are made by the
 * compiler from one body without branches. */
#ifndef WF_TENSOR_HALVES_H
#define WF_TENSOR_HALVES_H

#include <stddef.h>
#include <stdint.h>

/* All of [n]; the arrays do not overlap. */
void wf_bf16_of_f32s(const float *from, size_t n, uint16_t *to);
void wf_f16_of_f32s(const float *from, size_t n, uint16_t *to);
void wf_f32_of_bf16s(const uint16_t *from, size_t n, float *to);
void wf_f32_of_f16s(const uint16_t *from, size_t n, float *to);

#endif
