/* SPDX-License-Identifier: Apache-2.0 */
/* common/kernels/cpu/shape/constant.c - ConstantOfShape: one value (attribute `value`, a tensor of
 * one element; 0.0f by default) in every place. Constant itself is a known value since import. */
#include "common/kernels/cpu/cpu.h"
#include "common/kernels/cpu/shape/move.h"

#include <string.h>

static wf_status constant_of_shape(const wf_run *run, const wf_tensor *const in[],
                                   wf_tensor *const out[], wf_err *err)
{
    const wf_attr *value = wf_node_attr(run->node, "value");
    wf_walk same = {.rank = 1, .n = 1, .elems = wf_elems(out[0]), .dims = {wf_elems(out[0])}};

    (void)in, (void)err;
    if (wf_tensor_bytes(out[0]) == 0)
        return WF_OK;
    if (value)
        wf_gather_walk(&same, wf_dtype_size(out[0]->dtype), value->t->data, out[0]->data);
    else
        memset(out[0]->data, 0, wf_tensor_bytes(out[0]));
    return WF_OK;
}

const wf_kernel wf_kernels_constant[] = {
    WF_ROW("ConstantOfShape", WF_TYPES_ALL, constant_of_shape, .typed_by = WF_TYPED_BY_OUTPUT),
    {0},
};
