/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/product/tiles_widened.h - for tiles.c. */
#ifndef WF_KERNELS_CPU_TILES_WIDENED_H
#define WF_KERNELS_CPU_TILES_WIDENED_H

#include "common/kernels/cpu/product/tiles.h"

/* As wf_tiles_multiply, with float32's multiply-adds. */
void wf_tiles_multiply_widened(const wf_tiles *t);

#endif
