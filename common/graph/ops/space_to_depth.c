/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/space_to_depth.c - SpaceToDepth: [n, c, h b, w b] to [n, b b c, h, w], with b
 * attr blocksize: what DepthToSpace (DCR) undoes. */
#include "common/graph/emit.h"
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    (void)g;
    return wf_infer_blocks(n, false, err);
}

static wf_status grad(wf_grads *g, const wf_node *n, wf_err *err)
{
    wf_value *dy = wf_grads_upstream(g, n, 0);
    wf_attr block = wf_attr_int("blocksize", wf_node_int(n, "blocksize", 0));

    (void)err;
    return wf_grads_add(g, n, 0, wf_emit_op(wf_grads_emit(g), "DepthToSpace", 1, &dy, 1, &block));
}

static const wf_attr_row attrs[] = {{"blocksize", WF_ATTR_INT, true}, {0}};

const wf_op wf_op_space_to_depth = {
    .name = "SpaceToDepth",
    .domain = WF_DOMAIN_ONNX,
    .since = 13,
    .n_in_min = 1,
    .n_in_max = 1,
    .n_out_min = 1,
    .n_out_max = 1,
    .flags = WF_OP_FOLDABLE,
    .attrs = attrs,
    .infer = infer,
    .grad = grad,
};
