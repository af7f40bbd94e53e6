/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/shape/mapped.h - moving elements by the lists of shape/maps.h. */
#ifndef WF_KERNELS_CPU_MAPPED_H
#define WF_KERNELS_CPU_MAPPED_H

#include "common/kernels/kernel.h"
#include "common/kernels/shape/maps.h"
#include <stddef.h>

/* Kernels whose `prepare` made the lists (wf_maps_make) their state.
 * Output 0 is walked: each element is one of input 0, or the filler where that is nowhere, which is
 * input 2, or 0 without one. */
wf_run_fn wf_run_gather;
/* Input 0 is walked: its elements are added up, in order, in output 0. f32 or f64. */
wf_run_fn wf_run_gather_grad;

#endif
