/* SPDX-License-Identifier: Apache-2.0 */
/* common/data/convert.h - numbers from one dtype to another, and scaled. For this room only.
 *
 * A number that does not fit an integer dtype becomes the nearest one that does, NaN becomes 0, and
 * fractions fall towards 0; to bool all but 0 is 1. Other numbers convert as in C.
 */
#ifndef WF_DATA_CONVERT_H
#define WF_DATA_CONVERT_H

#include "common/tensor/dtype.h"
#include <stddef.h>

/* in and out are aligned to their dtypes and do not overlap; equal dtypes copy. */
void wf_convert(wf_dtype from, const void *in, wf_dtype to, void *out, size_t n);
/* out = in * factor: f64 from f64, f32 from all others. */
void wf_scale(wf_dtype from, const void *in, double factor, void *out, size_t n);

#endif
