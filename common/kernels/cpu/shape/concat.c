/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/shape/concat.c - Concat along one axis. */
#include "common/kernels/cpu/cpu.h"

typedef struct job {
    const wf_tensor *in;
    char *out;
    size_t part, row; /* bytes of a row of the part, and from row to row of the whole */
} job;

static void range(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;

    for (int64_t o = begin; o < end; o++)
        wf_copy(j->out + (size_t)o * j->row, (const char *)j->in->data + (size_t)o * j->part,
                j->part);
}

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
        int64_t elems = part.axis * part.inner;
        job j = {in[i], (char *)out[0]->data + at, (size_t)elems * size, row};

        wf_pool_for(run->pool, whole.outer, WF_GRAIN / WF_MAX(elems, INT64_C(1)) + 1, range, &j);
        at += j.part;
    }
    return WF_OK;
}

const wf_kernel wf_kernels_concat[] = {
    WF_ROW("Concat", WF_TYPES_ALL, concat),
    {0},
};
