/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/elementwise/cast.c - Cast and CastLike. */
#include "common/graph/emit.h"
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

/* Cast: to the dtype of attr to, which has ONNX's numbers (and ours). */

static wf_status infer_cast(wf_graph *g, wf_node *n, wf_err *err)
{
    int64_t to = wf_node_int(n, "to", 0);

    if (to <= 0 || to > 64 || !wf_dtype_computes((wf_dtype)to))
        return wf_fail(err, WF_UNSUPPORTED, NULL, "weft has no element type of ONNX's number %lld",
                       (long long)to);
    wf_out_like(n, 0, (wf_dtype)to, n->in[0]);
    return wf_carry_cast(g, n, err);
}

static wf_status grad(wf_grads *g, const wf_node *n, wf_err *err)
{
    (void)err;
    return wf_grads_add(
        g, n, 0, wf_emit_cast(wf_grads_emit(g), wf_grads_upstream(g, n, 0), n->in[0]->dtype));
}

/* From opset 19 attr saturate, and from 23 round_mode, which say how to round to 8-bit floats; weft
 * has none of those. */
static wf_status upgrade(wf_graph *g, wf_node *n, int64_t from, wf_err *err)
{
    (void)g, (void)from, (void)err;
    wf_node_drop_attr(n, "saturate");
    wf_node_drop_attr(n, "round_mode");
    return WF_OK;
}

static const wf_attr_row attrs[] = {{"to", WF_ATTR_INT, true}, {0}};

const wf_op wf_op_cast =
    WF_ELEMENTWISE(WF_DOMAIN_ONNX, "Cast", 13, 1, infer_cast, .keeps_order = true, .attrs = attrs,
                   .grad = grad, .upgrade = upgrade);

/* CastLike: input 0 with the dtype of input 1. */

static wf_status infer_cast_like(wf_graph *g, wf_node *n, wf_err *err)
{
    wf_out_like(n, 0, n->in[1]->dtype, n->in[0]);
    return wf_carry_cast(g, n, err);
}

const wf_op wf_op_cast_like =
    WF_ELEMENTWISE(WF_DOMAIN_ONNX, "CastLike", 15, 2, infer_cast_like, .no_grad_in = 1u << 1,
                   .grad = grad, .upgrade = upgrade);
