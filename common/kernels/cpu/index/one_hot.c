/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/index/one_hot.c - OneHot(indices, depth, values): values[1] at the index along
 * a new axis, values[0] elsewhere. Negative indices count from the end. */
#include "common/graph/graph.h"
#include "common/kernels/cpu/cpu.h"

#include <string.h>

/* An index as a place, or -1 for one that is nowhere. Floats are cut, as numpy does. */
static int64_t place(const wf_tensor *ids, int64_t i, int64_t depth)
{
    double number;
    int64_t id;

    if (!wf_dtype_is_float(ids->dtype)) {
        id = wf_int_at(ids, i);
    } else {
        number = wf_number_at(ids, i);
        if (!(number > -0x1p62 && number < 0x1p62))
            return -1;
        id = (int64_t)number;
    }
    id = id < 0 ? id + depth : id;
    return id >= 0 && id < depth ? id : -1;
}

static wf_status one_hot(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                         wf_err *err)
{
    wf_around a = wf_around_axis(out[0], wf_node_int(run->node, "axis", -1));
    size_t size = wf_dtype_size(out[0]->dtype);
    const char *off = in[2]->data, *on = off + size;
    int64_t n = wf_elems(out[0]);

    if (in[0]->dtype == WF_F16 || in[0]->dtype == WF_BF16)
        return wf_fail(err, WF_UNSUPPORTED, "Cast them first", "indices are %s",
                       wf_dtype_name(in[0]->dtype));
    for (int64_t i = 0; i < n; i++)
        memcpy((char *)out[0]->data + (size_t)i * size, off, size);
    for (int64_t o = 0; o < a.outer; o++)
        for (int64_t i = 0; i < a.inner; i++) {
            int64_t id = place(in[0], o * a.inner + i, a.axis);

            if (id >= 0)
                memcpy((char *)out[0]->data + (size_t)((o * a.axis + id) * a.inner + i) * size, on,
                       size);
        }
    return WF_OK;
}

const wf_kernel wf_kernels_one_hot[] = {
    WF_ROW("OneHot", WF_TYPES_ALL, one_hot, .typed_by = 2),
    {0},
};
