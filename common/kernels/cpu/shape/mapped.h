/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/shape/mapped.h - moving elements by the lists of shape/maps.h. */
#ifndef WF_KERNELS_CPU_MAPPED_H
#define WF_KERNELS_CPU_MAPPED_H

#include "common/kernels/pool.h"
#include "common/kernels/shape/maps.h"
#include <stddef.h>

/* walked[i] = other[where i leads], or *filler (one element) where that is nowhere. */
void wf_maps_gather(const wf_maps *m, size_t size, const void *other, const void *filler,
                    void *walked, wf_pool *pool);
/* other = 0; other[where i leads] += walked[i], in the order of i. f32 or f64. */
void wf_maps_add(const wf_maps *m, const wf_tensor *walked, wf_tensor *other);

#endif
