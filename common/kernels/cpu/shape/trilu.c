/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/shape/trilu.c - Trilu: a triangle of the last two axes, zeros in the other. */
#include "common/graph/graph.h"
#include "common/kernels/cpu/cpu.h"

#include <string.h>

typedef struct job {
    const char *from;
    char *to;
    int64_t rows, columns, k;
    size_t size;
    bool upper;
} job;

static void some_rows(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    size_t bytes = (size_t)j->columns * j->size;

    for (int64_t r = begin; r < end; r++) {
        /* The first column on or above the diagonal; k may be anything. */
        int64_t row = r % j->rows, edge;
        char *to = j->to + (size_t)r * bytes;
        const char *from = j->from + (size_t)r * bytes;
        size_t left;

        if (__builtin_add_overflow(row, j->k, &edge))
            edge = j->k > 0 ? j->columns : 0;
        if (!j->upper)
            edge = edge < INT64_MAX ? edge + 1 : edge;
        edge = WF_MIN(WF_MAX(edge, (int64_t)0), j->columns);
        left = (size_t)edge * j->size;
        if (j->upper) {
            memset(to, 0, left);
            wf_copy(to + left, from + left, bytes - left);
        } else {
            wf_copy(to, from, left);
            memset(to + left, 0, bytes - left);
        }
    }
}

static wf_status trilu(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                       wf_err *err)
{
    job j = {.from = in[0]->data,
             .to = out[0]->data,
             .rows = wf_dim(in[0], -2),
             .columns = wf_dim(in[0], -1),
             .size = wf_dtype_size(in[0]->dtype),
             .upper = wf_node_int(run->node, "upper", 1) != 0};

    if (in[1] && wf_elems(in[1]) != 1)
        return wf_fail(err, WF_SHAPE, NULL, "k must be one number");
    j.k = in[1] ? wf_int_at(in[1], 0) : 0;
    if (wf_elems(in[0]) == 0)
        return WF_OK;
    wf_pool_for(run->pool, wf_elems(in[0]) / j.columns, WF_GRAIN / j.columns + 1, some_rows, &j);
    return WF_OK;
}

const wf_kernel wf_kernels_trilu[] = {
    WF_ROW("Trilu", WF_TYPES_ALL, trilu, .in_place = 1),
    {0},
};
