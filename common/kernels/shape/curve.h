/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/shape/curve.h - the numbers of activations that are a curve of x. */
#ifndef WF_KERNELS_SHAPE_CURVE_H
#define WF_KERNELS_SHAPE_CURVE_H

#include "common/kernels/kernel.h"

/* Attributes of the operation, alpha and beta of most; 0 where it has none. */
typedef struct wf_curve {
    double a, b;
} wf_curve;

/* Puts the wf_curve of an operation, or of that whose gradient it is, into the state. */
wf_prepare_fn wf_curve_prepare;

#endif
