/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/shape/split.c - Split along one axis: Concat the other way. */
#include "common/graph/graph.h"
#include "common/kernels/cpu/cpu.h"

typedef struct job {
    const char *in;
    wf_tensor *out;
    size_t part, row; /* bytes of a row of the part, and from row to row of the whole */
} job;

static void range(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;

    for (int64_t o = begin; o < end; o++)
        wf_copy((char *)j->out->data + (size_t)o * j->part, j->in + (size_t)o * j->row, j->part);
}

static wf_status split(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                       wf_err *err)
{
    int64_t axis = wf_node_int(run->node, "axis", 0);
    wf_around whole = wf_around_axis(in[0], axis);
    size_t size = wf_dtype_size(in[0]->dtype);
    size_t row = (size_t)(whole.axis * whole.inner) * size, at = 0;

    for (uint32_t i = 0; i < run->node->n_out; i++) {
        wf_around part;
        int64_t elems;
        job j;

        if (!out[i])
            return wf_fail(err, WF_UNSUPPORTED, "give every part a name",
                           "part %u has no name, so that its size is not known", i);
        part = wf_around_axis(out[i], axis);
        elems = part.axis * part.inner;
        j = (job){(const char *)in[0]->data + at, out[i], (size_t)elems * size, row};
        wf_pool_for(run->pool, whole.outer, WF_GRAIN / WF_MAX(elems, INT64_C(1)) + 1, range, &j);
        at += j.part;
    }
    return WF_OK;
}

const wf_kernel wf_kernels_split[] = {
    WF_ROW("Split", WF_TYPES_ALL, split),
    {0},
};
