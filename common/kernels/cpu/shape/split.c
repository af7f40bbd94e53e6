/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/shape/split.c - Split along one axis: Concat the other way. */
#include "common/graph/graph.h"
#include "common/kernels/cpu/cpu.h"
#include "common/kernels/cpu/shape/move.h"

static wf_status split(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                       wf_err *err)
{
    int64_t axis = wf_node_int(run->node, "axis", 0);
    wf_around whole = wf_around_axis(in[0], axis);
    size_t size = wf_dtype_size(in[0]->dtype);
    size_t row = (size_t)(whole.axis * whole.inner) * size, at = 0;

    for (uint32_t i = 0; i < run->node->n_out; i++) {
        wf_around part;
        size_t bytes;

        if (!out[i])
            return wf_fail(err, WF_UNSUPPORTED, "give every part a name",
                           "part %u has no name, so that its size is not known", i);
        part = wf_around_axis(out[i], axis);
        bytes = (size_t)(part.axis * part.inner) * size;
        wf_copy_rows(run->pool, whole.outer, bytes, (const char *)in[0]->data + at, row,
                     out[i]->data, bytes);
        at += bytes;
    }
    return WF_OK;
}

const wf_kernel wf_kernels_split[] = {
    WF_ROW("Split", WF_TYPES_ALL, split),
    {0},
};
