/* SPDX-License-Identifier: Apache-2.0 */
/* ps/contained_add.h - sums of session variables. */
#ifndef WF_PS_CONTAINED_ADD_H
#define WF_PS_CONTAINED_ADD_H

#include "common/tensor/tensor.h"

/* Adds x to y, of the same dtype (any but bool) and shape. Integers wrap around; float16 and
 * bfloat16 are added as float32 and rounded to nearest even. */
void wf_contained_add(wf_tensor *y, const wf_tensor *x);

#endif
