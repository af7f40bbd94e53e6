/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/shape/concat.c - Concat along one axis. Of tensors some of which are of
 * bfloat16 and others of float32, rows are converted as they are copied. */
#include "common/kernels/cpu/cpu.h"
#include "common/kernels/cpu/narrow.h"
#include "common/kernels/cpu/shape/move.h"

/* Rows of `n` elements that become one of another type, each behind other parts of a row. */
typedef struct part {
    const char *from;
    char *to;
    int64_t n;
    size_t from_row, to_row;
    bool rounds; /* to bfloat16, or else from it */
} part;

static void convert_range(void *arg, int64_t begin, int64_t end)
{
    const part *p = arg;

    for (int64_t i = begin; i < end; i++) {
        const void *from = p->from + (size_t)i * p->from_row;
        void *to = p->to + (size_t)i * p->to_row;

        if (p->rounds)
            wf_bf16_of_f32s(from, (size_t)p->n, to);
        else
            wf_f32_of_bf16s(from, (size_t)p->n, to);
    }
}

static wf_status concat(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                        wf_err *err)
{
    int64_t axis = wf_node_int(run->node, "axis", 0);
    wf_around whole = wf_around_axis(out[0], axis);
    size_t size = wf_dtype_size(out[0]->dtype);
    size_t row = (size_t)(whole.axis * whole.inner) * size;
    char *to = out[0]->data;

    (void)err;
    for (uint32_t i = 0; i < run->node->n_in; i++) {
        wf_around around = wf_around_axis(in[i], axis);
        int64_t n = around.axis * around.inner;
        size_t bytes = (size_t)n * wf_dtype_size(in[i]->dtype);

        if (in[i]->dtype == out[0]->dtype)
            wf_copy_rows(run->pool, whole.outer, bytes, in[i]->data, bytes, to, row);
        else
            wf_pool_for(run->pool, whole.outer, 1 + WF_GRAIN / WF_MAX(n, (int64_t)1), convert_range,
                        &(part){in[i]->data, to, n, bytes, row, wf_is_bf16(out[0])});
        to += (size_t)n * size;
    }
    return WF_OK;
}

const wf_kernel wf_kernels_concat[] = {
    WF_ROW("Concat", WF_TYPES_ALL, concat, .is_narrow = true),
    {0},
};
