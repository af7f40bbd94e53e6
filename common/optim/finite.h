/* SPDX-License-Identifier: Apache-2.0 */
/* common/optim/finite.h - is every number of an array a number: the check before a gradient may
 * touch a weight. */
#ifndef WF_OPTIM_FINITE_H
#define WF_OPTIM_FINITE_H

#include <stdbool.h>
#include <stddef.h>

/* False if any of x[n] is NaN or infinite. True for n = 0. */
bool wf_all_finite(const float *x, size_t n);

#endif
