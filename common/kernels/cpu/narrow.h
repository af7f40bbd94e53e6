/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/narrow.h - tensors of bfloat16 to kernels of float32 that take them
 * (wf_kernel.is_narrow): a tile at a time, which stays in the first cache.
 *
 *     float in[WF_NARROW_TILE], out[WF_NARROW_TILE], *y = wf_wide_room(to, to_is_bf16, at, out);
 *
 *     compute(wf_wide(from, from_is_bf16, at, n, in), y, n);
 *     wf_narrow(to, to_is_bf16, at, n, y);
 */
#ifndef WF_KERNELS_CPU_NARROW_H
#define WF_KERNELS_CPU_NARROW_H

#include "common/tensor/halves.h"
#include "common/tensor/tensor.h"
#include <stdbool.h>
#include <stdint.h>

/* Elements of a tile. */
enum { WF_NARROW_TILE = 1024 };

static inline bool wf_is_bf16(const wf_tensor *t)
{
    return t && t->dtype == WF_BF16;
}

/* Elements [at, at + n) of x in float32: where they lie, or widened in room [n]. */
static inline const float *wf_wide(const void *x, bool is_bf16, int64_t at, int64_t n, float *room)
{
    if (!is_bf16)
        return (const float *)x + at;
    wf_f32_of_bf16s((const uint16_t *)x + at, (size_t)n, room);
    return room;
}

/* Where elements of y from `at` on are made in float32: in their place, or in room. */
static inline float *wf_wide_room(void *y, bool is_bf16, int64_t at, float *room)
{
    return is_bf16 ? room : (float *)y + at;
}

/* Rounds them to their place, if they are not there. */
static inline void wf_narrow(void *y, bool is_bf16, int64_t at, int64_t n, const float *made)
{
    if (is_bf16)
        wf_bf16_of_f32s(made, (size_t)n, (uint16_t *)y + at);
}

#endif
