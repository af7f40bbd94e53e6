/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/reduce_mean.c - ReduceMean over the axes of input 1; without one, over all.
 * Below opset 18 the axes are an attribute. */
#include "common/graph/emit.h"
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

/* dy divided by the number of elements that were averaged. */
static wf_value *shared_out(wf_emit *e, wf_value *dy, wf_value *x, uint32_t mask)
{
    wf_axis count = wf_axis_of(1);
    wf_value *product = NULL;

    for (int32_t i = 0; i < x->rank; i++)
        if (mask >> i & 1u)
            count = wf_axis_mul(&count, &x->axes[i]);
    if (count.size >= 0)
        return wf_emit_scale(e, dy, count.size ? 1.0 / (double)count.size : 0.0);
    for (int32_t i = 0; i < x->rank; i++) {
        wf_value *size;

        if (!(mask >> i & 1u))
            continue;
        size = wf_emit_dim_of(e, x, (uint32_t)i);
        product = product ? wf_emit_mul(e, product, size) : size;
    }
    product = wf_emit_cast(e, product, x->dtype);
    /* [1] to []: a scalar dy must stay one. */
    return wf_emit_div(e, dy, product ? wf_emit_reshape(e, product, 0, NULL) : NULL);
}

static wf_status grad(wf_grads *g, const wf_node *n, wf_err *err)
{
    wf_emit *e = wf_grads_emit(g);
    uint32_t mask;
    wf_value *dy = wf_grad_unreduce(g, n, &mask, err);

    if (!dy)
        return wf_emit_end(e);
    dy = shared_out(e, dy, n->in[0], mask);
    return wf_grads_add(g, n, 0, wf_emit_expand_like(e, dy, n->in[0]));
}

const wf_op wf_op_reduce_mean = {
    .name = "ReduceMean",
    .domain = WF_DOMAIN_ONNX,
    .since = 18,
    .n_in_min = 1,
    .n_in_max = 2,
    .n_out_min = 1,
    .n_out_max = 1,
    .flags = WF_OP_FOLDABLE,
    .no_grad_in = 1u << 1,
    .attrs = wf_reduce_attrs,
    .infer = wf_infer_reduce,
    .grad = grad,
    .upgrade = wf_upgrade_reduce,
};
