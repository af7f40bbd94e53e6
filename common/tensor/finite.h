/* SPDX-License-Identifier: Apache-2.0 */
/* common/tensor/finite.h - is there a NaN or an Inf? Here and not with the kernels because the
 * parameter servers, which link none, ask it of every push. */
#ifndef WF_TENSOR_FINITE_H
#define WF_TENSOR_FINITE_H

#include <stdbool.h>
#include <stddef.h>

/* True when none of x[n] is NaN or infinite; true for n == 0. Reads at memory speed. */
bool wf_all_finite(const float x[], size_t n);
bool wf_all_finite_f64(const double x[], size_t n);

#endif
