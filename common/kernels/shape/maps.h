/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/shape/maps.h - elements whose place along each axis depends on that
 * axis alone: Pad, Tile, CenterCropPad and their gradients. One side is walked densely; a list for
 * each of its axes says how far into the other side an index leads. */
#ifndef WF_KERNELS_SHAPE_MAPS_H
#define WF_KERNELS_SHAPE_MAPS_H

#include "common/base/arena.h"
#include "common/base/status.h"
#include "common/tensor/tensor.h"
#include <stdint.h>

typedef struct wf_maps {
    uint32_t rank; /* at least 1 */
    int64_t dims[WF_MAX_RANK], rows;
    int64_t *at[WF_MAX_RANK];      /* [dims[i]], in elements of the other side; -1: nowhere */
    int64_t run_first, run_length; /* where the last axis leads to consecutive elements */
} wf_maps;

/* Where index i of an axis of `to` elements leads in one of `from`; -1: nowhere. */
typedef int64_t wf_map_fn(const void *arg, uint32_t axis, int64_t i, int64_t from);

/* The lists for a walk over `walked` that leads into `other`, of the same rank; in the arena.
 * Errors: WF_NOMEM. */
WF_MUST_USE wf_status wf_maps_make(const wf_tensor *walked, const wf_tensor *other, wf_map_fn *fn,
                                   const void *arg, wf_arena *arena, wf_maps **out, wf_err *err);

#endif
