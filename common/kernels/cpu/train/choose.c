/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/train/choose.c - Choose: copies the results of one branch. */
#include "common/graph/graph.h"
#include "common/kernels/cpu/cpu.h"

static wf_status choose(const wf_run *run, const wf_tensor *const in[], wf_tensor *const out[],
                        wf_err *err)
{
    uint32_t n = run->node->n_out, first;

    if (wf_elems(in[0]) != 1)
        return wf_fail(err, WF_SHAPE, NULL, "the condition must be one bool");
    first = wf_int_at(in[0], 0) ? 1 : 1 + n;
    for (uint32_t i = 0; i < n; i++) {
        if (!out[i])
            continue;
        if (wf_tensor_bytes(in[first + i]) != wf_tensor_bytes(out[i]))
            return wf_fail(err, WF_SHAPE, NULL, "result %u of the branch has another shape", i);
        wf_copy(out[i]->data, in[first + i]->data, wf_tensor_bytes(out[i]));
    }
    return WF_OK;
}

const wf_kernel wf_kernels_choose[] = {
    WF_ROW("Choose", WF_TYPES_ALL, choose, .domain = WF_DOMAIN_WEFT, .typed_by = 1),
    {0},
};
