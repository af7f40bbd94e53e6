/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/lanes.h - 16 sums side by side as one vector, which the compiler splits into
 * what the processor has. With two sums in arrays gcc 12 vectorises over the wrong loop, and
 * shuffles more than it adds. */
#ifndef WF_KERNELS_CPU_LANES_H
#define WF_KERNELS_CPU_LANES_H

#include <string.h>

enum { WF_LANES = 16 };
typedef float wf_lanes_f32 __attribute__((vector_size(WF_LANES * sizeof(float))));
typedef double wf_lanes_f64 __attribute__((vector_size(WF_LANES * sizeof(double))));

/* The lanes' sum in a fixed order: halves onto halves. */
#define WF_LANES_SUM(T, suffix)                                                                    \
    static inline T wf_lanes_sum_##suffix(const wf_lanes_##suffix *v)                              \
    {                                                                                              \
        T lane[WF_LANES];                                                                          \
                                                                                                   \
        memcpy(lane, v, sizeof lane);                                                              \
        for (int width = WF_LANES / 2; width > 0; width /= 2)                                      \
            for (int k = 0; k < width; k++)                                                        \
                lane[k] += lane[k + width];                                                        \
        return lane[0];                                                                            \
    }
WF_LANES_SUM(float, f32)
WF_LANES_SUM(double, f64)
#undef WF_LANES_SUM

#endif
