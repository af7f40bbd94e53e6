/* SPDX-License-Identifier: Apache-2.0 */
/* common/optim/exact.h - exp, log, a power and a cosine in f64 whose bits do not depend on libm: a
 * schedule's rate must be the same on every processor. For this room only.
 *
 * Each is + - * / in a fixed order; against libm they differ by less than 1e-13 of the result
 * (tests/unit/schedule.c).
 */
#ifndef WF_OPTIM_EXACT_H
#define WF_OPTIM_EXACT_H

/* x > 0, a normal number. */
double wf_exact_log(double x);
/* 0 below -700, the value at 700 above it. */
double wf_exact_exp(double x);
/* x >= 0; 0 to any power above 0 is 0, anything to the power 0 is 1. */
double wf_exact_power(double x, double y);
/* cos(pi * x), 0 <= x <= 1. */
double wf_exact_cos_pi(double x);

#endif
