/* SPDX-License-Identifier: Apache-2.0 */
/* common/graph/ops/train/training.c - ai.weft Training() -> bool []: whether the graph trains. What
 * layers do in training alone is chosen by it; the compiler's mode pass knows, and takes the
 * branch. */
#include "common/graph/infer.h"
#include "common/graph/ops/ops.h"

static wf_status infer(wf_graph *g, wf_node *n, wf_err *err)
{
    (void)g;
    (void)err;
    wf_out_axes(n, 0, WF_BOOL, 0, NULL);
    return WF_OK;
}

const wf_op wf_op_training =
    WF_OPERATION(WF_DOMAIN_WEFT, "Training", 1, 0, 0, 1, 1, WF_OP_STATEFUL, infer,
                 .means = "() -> bool []; whether the graph trains; the compiler takes it out");
