/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/shape/eye_like.c - EyeLike: ones on a diagonal. */
#include "common/graph/graph.h"
#include "common/kernels/cpu/cpu.h"

#include <string.h>

static wf_status eye_like(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                          wf_err *err)
{
    int64_t k = wf_node_int(run->node, "k", 0), rows = out[0]->dims[0], columns = out[0]->dims[1];
    size_t size = wf_dtype_size(out[0]->dtype);
    char one[8];

    (void)in, (void)err;
    if (!rows || !columns)
        return WF_OK;
    wf_one_of(out[0]->dtype, one);
    memset(out[0]->data, 0, wf_tensor_bytes(out[0]));
    if (k <= -rows || k >= columns)
        return WF_OK;
    for (int64_t r = WF_MAX(-k, (int64_t)0); r < rows && r + k < columns; r++)
        memcpy((char *)out[0]->data + (size_t)(r * columns + r + k) * size, one, size);
    return WF_OK;
}

const wf_kernel wf_kernels_eye_like[] = {
    WF_ROW("EyeLike", WF_TYPES_ALL, eye_like, .typed_by = WF_TYPED_BY_OUTPUT),
    {0},
};
