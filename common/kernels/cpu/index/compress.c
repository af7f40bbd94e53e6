/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/index/compress.c - Compress(x, condition): the slices along an axis, or of x
 * laid flat the elements, where the condition is true. What it does not reach is left out. */
#include "common/graph/graph.h"
#include "common/kernels/cpu/cpu.h"

#include <string.h>

static wf_around around(const wf_node *node, const wf_tensor *x)
{
    if (wf_node_attr(node, "axis"))
        return wf_around_axis(x, wf_node_int(node, "axis", 0));
    return (wf_around){1, wf_elems(x), 1};
}

static wf_status extents(const wf_node *node, const wf_tensor *const in[],
                         int64_t dims[WF_KERNEL_PORTS][WF_MAX_RANK], wf_err *err)
{
    wf_around a = around(node, in[0]);
    int64_t count = 0, n = WF_MIN(a.axis, wf_elems(in[1]));

    (void)err;
    for (int64_t i = 0; i < n; i++)
        count += wf_int_at(in[1], i) != 0;
    memcpy(dims[0], in[0]->dims, sizeof dims[0]);
    dims[0][wf_node_attr(node, "axis") ? wf_axis_at(wf_node_int(node, "axis", 0), in[0]->rank)
                                       : 0] = count;
    return WF_OK;
}

static wf_status compress(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                          wf_err *err)
{
    wf_around a = around(run->node, in[0]);
    int64_t n = WF_MIN(a.axis, wf_elems(in[1]));
    size_t bytes = (size_t)a.inner * wf_dtype_size(in[0]->dtype);
    char *to = out[0]->data;

    (void)err;
    for (int64_t o = 0; o < a.outer; o++)
        for (int64_t i = 0; i < n; i++) {
            if (!wf_int_at(in[1], i))
                continue;
            wf_copy(to, (const char *)in[0]->data + (size_t)(o * a.axis + i) * bytes, bytes);
            to += bytes;
        }
    return WF_OK;
}

const wf_kernel wf_kernels_compress[] = {
    WF_ROW("Compress", WF_TYPES_ALL, compress, .extents = extents),
    {0},
};
