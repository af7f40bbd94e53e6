/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/shape/axes.c */
#include "common/kernels/shape/axes.h"

wf_around wf_around_axis(const wf_tensor *t, int64_t axis)
{
    wf_around a = {1, 1, 1};
    uint32_t at = wf_axis_at(axis, t->rank);

    for (uint32_t i = 0; i < t->rank; i++) {
        if (i < at)
            a.outer *= t->dims[i];
        else if (i == at)
            a.axis = t->dims[i];
        else
            a.inner *= t->dims[i];
    }
    return a;
}
