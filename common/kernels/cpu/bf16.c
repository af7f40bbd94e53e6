/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/bf16.c */
#include "common/kernels/cpu/bf16.h"
#include "common/base/cc.h"
#include "common/kernels/cpu/tiles.h"
#include "common/kernels/kernel.h"

#include <string.h>

bool wf_kernels_have_bf16(void)
{
    return wf_tiles_there();
}

/* As wf_f32_to_bf16, in a form that vectorises. */
WF_MULTIVERSION void wf_round_to_bf16(const float *x, uint16_t *y, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        uint32_t b, up;

        memcpy(&b, &x[i], sizeof b);
        up = (b + 0x7fff + (b >> 16 & 1)) >> 16;
        y[i] = (uint16_t)((b & 0x7fffffff) > 0x7f800000 ? b >> 16 | 0x40 : up);
    }
}
