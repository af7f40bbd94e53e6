/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/shape/shape.c - Shape and Size of a tensor, int64. Plans know them beforehand;
 * folding does not always. */
#include "common/kernels/cpu/cpu.h"

static wf_status shape(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                       wf_err *err)
{
    int64_t rank = in[0]->rank, start = wf_node_int(run->node, "start", 0);
    int64_t *to = out[0]->data;

    (void)err;
    start = start < 0 ? WF_MAX(start + rank, (int64_t)0) : WF_MIN(start, rank);
    for (int64_t i = 0; i < wf_elems(out[0]); i++)
        to[i] = in[0]->dims[start + i];
    return WF_OK;
}

static wf_status size(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                      wf_err *err)
{
    (void)run, (void)err;
    *(int64_t *)out[0]->data = wf_elems(in[0]);
    return WF_OK;
}

const wf_kernel wf_kernels_shape[] = {
    WF_ROW("Shape", WF_TYPES_ALL, shape),
    WF_ROW("Size", WF_TYPES_ALL, size),
    {0},
};
