/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/shape/concat.c - Concat along one axis. */
#include "common/kernels/cpu/cpu.h"
#include "common/kernels/cpu/shape/move.h"

static wf_status concat(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                        wf_err *err)
{
    int64_t axis = wf_node_int(run->node, "axis", 0);
    wf_around whole = wf_around_axis(out[0], axis);
    size_t size = wf_dtype_size(out[0]->dtype);
    size_t row = (size_t)(whole.axis * whole.inner) * size, at = 0;

    (void)err;
    for (uint32_t i = 0; i < run->node->n_in; i++) {
        wf_around part = wf_around_axis(in[i], axis);
        size_t bytes = (size_t)(part.axis * part.inner) * size;

        wf_copy_rows(run->pool, whole.outer, bytes, in[i]->data, bytes, (char *)out[0]->data + at,
                     row);
        at += bytes;
    }
    return WF_OK;
}

const wf_kernel wf_kernels_concat[] = {
    WF_ROW("Concat", WF_TYPES_ALL, concat),
    {0},
};
