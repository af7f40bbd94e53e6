/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/index/gather.c - Gather(data, ids) along one axis, and GatherGrad(dy, ids,
 * data), which adds dy's slices where they came from, in the order of the ids. Negative ids count
 * from the end. */
#include "common/graph/graph.h"
#include "common/kernels/cpu/cpu.h"

#include <inttypes.h>
#include <string.h>

static wf_status row_of(const wf_tensor *ids, int64_t i, int64_t rows, int64_t *out, wf_err *err)
{
    int64_t id = wf_int_at(ids, i), row = id < 0 ? id + rows : id;

    if (row < 0 || row >= rows)
        return wf_fail(err, WF_INVALID, NULL,
                       "index %" PRId64 ", number %" PRId64
                       " of them, is not in an axis of %" PRId64,
                       id, i, rows);
    *out = row;
    return WF_OK;
}

static wf_status gather(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                        wf_err *err)
{
    wf_around a = wf_around_axis(in[0], wf_node_int(run->node, "axis", 0));
    int64_t n = wf_elems(in[1]), row = 0;
    size_t bytes = (size_t)a.inner * wf_dtype_size(in[0]->dtype);

    for (int64_t i = 0; i < n; i++) {
        WF_TRY(row_of(in[1], i, a.axis, &row, err));
        for (int64_t o = 0; o < a.outer; o++)
            wf_copy((char *)out[0]->data + (size_t)(o * n + i) * bytes,
                    (const char *)in[0]->data + (size_t)(o * a.axis + row) * bytes, bytes);
    }
    return WF_OK;
}

static wf_status gather_grad(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                             wf_err *err)
{
    wf_around a = wf_around_axis(out[0], wf_node_int(run->node, "axis", 0));
    int64_t n = wf_elems(in[1]), row = 0;
    size_t bytes = (size_t)a.inner * wf_dtype_size(in[0]->dtype);

    if (wf_tensor_bytes(out[0]))
        memset(out[0]->data, 0, wf_tensor_bytes(out[0]));
    for (int64_t i = 0; i < n; i++) {
        WF_TRY(row_of(in[1], i, a.axis, &row, err));
        for (int64_t o = 0; o < a.outer; o++) {
            size_t from = (size_t)(o * n + i) * bytes, to = (size_t)(o * a.axis + row) * bytes;

            wf_add(in[0]->dtype, (const char *)in[0]->data + from, (char *)out[0]->data + to,
                   a.inner);
        }
    }
    return WF_OK;
}

const wf_kernel wf_kernels_gather[] = {
    WF_ROW("Gather", WF_TYPES_ALL, gather),
    WF_ROW("GatherGrad", WF_TYPES_FLOAT, gather_grad, .domain = WF_DOMAIN_WEFT),
    {0},
};
