/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/size.c - Size: the number of elements, an int64 scalar. */
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    const wf_value *x = n->in[0];
    wf_elem count = wf_elem_of(1);

    wf_out_axes(n, 0, WF_I64, 0, NULL);
    if (x->rank < 0)
        return WF_OK;
    for (int32_t i = 0; i < x->rank; i++) {
        wf_elem size = wf_elem_of_axis(&x->axes[i]);

        count = wf_elem_mul(&count, &size);
    }
    return wf_out_carry(g, n, 0, 1, &count, err);
}

const wf_op wf_op_size = {
    .name = "Size",
    .domain = WF_DOMAIN_ONNX,
    .since = 13,
    .n_in_min = 1,
    .n_in_max = 1,
    .n_out_min = 1,
    .n_out_max = 1,
    .flags = WF_OP_FOLDABLE,
    .no_grad_in = 1u << 0,
    .infer = infer,
};
