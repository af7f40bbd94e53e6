/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/index/non_zero.c - NonZero: the places of elements that are not 0, one column
 * each.
 */
#include "common/kernels/cpu/cpu.h"

#include <string.h>

/* -0.0 is zero, and NaN is not. */
static bool is_set(const wf_tensor *t, int64_t i)
{
    if (t->dtype == WF_F16 || t->dtype == WF_BF16)
        return (((const uint16_t *)t->data)[i] & 0x7FFFu) != 0;
    return wf_dtype_is_float(t->dtype) ? wf_number_at(t, i) != 0 : wf_int_at(t, i) != 0;
}

static wf_status extents(const wf_node *node, const wf_tensor *const in[],
                         int64_t dims[WF_KERNEL_PORTS][WF_MAX_RANK], wf_err *err)
{
    int64_t n = wf_elems(in[0]), count = 0;

    (void)node, (void)err;
    for (int64_t i = 0; i < n; i++)
        count += is_set(in[0], i);
    dims[0][0] = in[0]->rank;
    dims[0][1] = count;
    return WF_OK;
}

static wf_status non_zero(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                          wf_err *err)
{
    int64_t n = wf_elems(in[0]), columns = out[0]->dims[1], at = 0;
    int64_t *to = out[0]->data;

    (void)run, (void)err;
    for (int64_t i = 0; i < n && at < columns; i++) {
        int64_t rest = i;

        if (!is_set(in[0], i))
            continue;
        for (uint32_t axis = in[0]->rank; axis-- > 0; rest /= in[0]->dims[axis])
            to[(int64_t)axis * columns + at] = rest % in[0]->dims[axis];
        at++;
    }
    return WF_OK;
}

const wf_kernel wf_kernels_non_zero[] = {
    WF_ROW("NonZero", WF_TYPES_ALL, non_zero, .extents = extents),
    {0},
};
